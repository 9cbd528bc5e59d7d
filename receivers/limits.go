package receivers

import "time"

// The bounds of what a sender may take of us, each with its reason. Where
// notification-controller has the same bound, the value is its own.
const (
	// maxBodyBytes is the largest body that is read, as in notification-controller.
	// What senders send is a few KiB; GitHub alone may send more, for pushes of
	// thousands of commits.
	maxBodyBytes = 3 << 20

	// maxHeaderBytes is the largest size of the headers of a request, as in
	// notification-controller.
	maxHeaderBytes = 256 << 10

	// readHeaderTimeout is for the headers of a request, as in
	// notification-controller.
	readHeaderTimeout = 10 * time.Second

	// readTimeout is for a whole body, as in notification-controller for the request.
	readTimeout = 30 * time.Second

	// progressInterval is for the next progressBytes of a body, or for the rest of it:
	// who stalls is cut off, and who trickles has to pay for the connection. The time
	// alone would give each of them readTimeout. It is enough for a packet that is lost
	// twice, and for the slowest line on which the largest body is not given up anyway.
	progressInterval = 5 * time.Second
	progressBytes    = 16 << 10

	// writeTimeout is for a body and its answer: readTimeout, answerTimeout, and a
	// second to write.
	writeTimeout = readTimeout + answerTimeout + time.Second

	// idleTimeout is how long a connection is kept for the next request.
	idleTimeout = time.Minute

	// answerTimeout is how long a request that was read may take. GitHub, GitLab and
	// Alertmanager give up after 10s: one that could not be written by then must be
	// answered with 503 while the sender listens.
	answerTimeout = 8 * time.Second

	// retryInterval is how long to wait before the API server is asked once more.
	retryInterval = 100 * time.Millisecond

	// conflictInterval is how long to wait if somebody else has just written the Gate:
	// hardly, it is read anew.
	conflictInterval = time.Millisecond

	// shutdownTimeout is for requests that are being answered when the process ends,
	// less than the terminationGracePeriodSeconds of config/manager without its preStop.
	shutdownTimeout = answerTimeout + time.Second

	// maxConnections bounds the memory for strangers: each may have smallBodyBytes and
	// maxHeaderBytes. More connections wait for their turn.
	maxConnections = 512

	// smallBodyBytes is what any body may have. Larger ones share maxLarge, so that a
	// few slow large ones keep no usual one out. Flagger sends no larger ones.
	smallBodyBytes = 64 << 10

	// maxLarge is how many larger bodies are in memory at once: 30 MiB, and as JSON a
	// few times that, of 1 GiB that config/manager gives. Only bodies on a path that
	// there is are, and of a type whose headers prove the sender, only the sender's.
	maxLarge = 10

	// maxLargeOfOne is how many of them are of one path, or of one receiver whose
	// sender is proven. So nobody keeps the senders of other receivers out with one
	// path, and nobody can try out whether there is a path by filling maxLarge with it:
	// paths that do not exist have the same bound. Who fills the other half with paths
	// of their own could tell, but has to know a path to try, and gains no token.
	maxLargeOfOne = maxLarge / 2

	// requestsPerSecond and burst bound what a single receiver takes of senders that are
	// verified: a stranger must not use it up. Each request is three calls of the API
	// server, of which Flux's controllers allow themselves 50 in a second. The burst is a
	// fleet whose Kustomizations fail at the same time.
	requestsPerSecond = 20
	burst             = 200

	// replayWindow is how long a webhook is remembered that must not be taken twice.
	replayWindow = 10 * time.Minute

	// signedTimeTolerance is how far the time that a sender signed may be from ours,
	// either way. Half of replayWindow: one that was signed by a clock that is ahead,
	// and taken at once, is too old when it is forgotten.
	signedTimeTolerance = replayWindow / 2

	// maxDeliveries is how many webhooks of the replay window a Gate remembers of one
	// receiver, so that none takes what others need: more than its burst. With it full,
	// a webhook that opens is refused: taken and not remembered, it could be sent once
	// more. One that closes never is. It takes the place of the oldest of its receiver
	// that closed, for to repeat that one only closes once more. But what closed may
	// open when it is repeated with other headers, where the action depends on them. So
	// the Gate notes that it has forgotten one, and takes none that opens of that
	// receiver until the one that it forgot would have been forgotten anyway.
	maxDeliveries = 256

	// maxDeliveriesBytes is for those of all receivers of a Gate, of which there may be
	// any number: 46 bytes each, so that eight may have their quota full. It leaves more
	// than half of the 256 KiB that the API server grants all annotations of an object;
	// there is less of it if the others need more. With it full, all receivers fare as
	// with their quota full. One that has not even room for its note shares one with
	// all, and then none of them opens.
	maxDeliveriesBytes = 96 << 10

	// maxRequestBytes is what a request may need beside what it remembers: two reasons,
	// two names of receivers of at most 330 bytes, two times, and the names of the
	// annotations.
	maxRequestBytes = 4 << 10

	// maxReason is how many bytes of a payload's reason are put into an annotation.
	// The status keeps fewer.
	maxReason = 1024

	// oidcTimeout is for the discovery document and the keys of an issuer together,
	// less than answerTimeout: the sender must hear of it.
	oidcTimeout = 5 * time.Second

	// oidcRefreshInterval is how old keys of an issuer may be. One that is withdrawn is
	// good for nothing after that time.
	oidcRefreshInterval = time.Hour

	// oidcRetryInterval is how soon an issuer is asked again that did not answer, or
	// for a key that it did not have. Anybody can make up the name of a key.
	oidcRetryInterval = 10 * time.Second

	// maxOIDCBytes is the largest discovery document or key set. Real ones are a few
	// KiB.
	maxOIDCBytes = 1 << 20

	// maxKeys is how many keys an issuer may have: a token that names none is verified
	// with each. Real issuers have a few.
	maxKeys = 100

	// keyWorkPerSecond is how many signatures of tokens one replica verifies, one after
	// the other. The path of a receiver of type generic-oidc is no secret, so anybody
	// may cause it, and nothing tells a stranger's token before. Ten receivers may be
	// sent as much as each of them takes, and it costs 2% of a core, or half of one with
	// keys of maxRSABits. Nobody is refused for it, and strangers take nothing of what a
	// receiver takes: behind maxConnections of them a sender waits for three seconds.
	keyWorkPerSecond = 200

	// maxRSABits is the longest RSA key, as in TLS. To verify with one takes
	// milliseconds; with one that fits into maxOIDCBytes it would take minutes, and
	// nothing could stop it.
	maxRSABits = 8192

	// maxIssuers is how many issuers are kept with their keys.
	maxIssuers = 256

	// maxTokenBytes is the length of a token that Flagger or a person may present. It
	// is compared with those of all receivers, so its length must cost little.
	maxTokenBytes = 4 << 10

	// cacheInterval is how often the cache is looked at for a close that was requested
	// a moment ago: it hears of it within milliseconds.
	cacheInterval = time.Millisecond
)
