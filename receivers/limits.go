package receivers

import "time"

// Bounds of what a sender may use, each with its reason. Where notification-controller has
// the same bound, the value is the same.
const (
	// maxBodyBytes is the largest body that is read, as in notification-controller.
	// Most senders send a few KiB; GitHub alone may send more, for pushes of
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

	// progressInterval is for the next progressBytes of a body, or for the rest of it. A
	// sender that stalls is cut off, and one that trickles has to pay for the connection.
	// Without it each of them would have readTimeout. It is enough for a packet that is
	// lost twice, and for any line that is fast enough for the largest body.
	progressInterval = 5 * time.Second
	progressBytes    = 16 << 10

	// writeTimeout is for a body and its answer: readTimeout, answerTimeout, and a
	// second to write.
	writeTimeout = readTimeout + responseTimeout + time.Second

	// idleTimeout is how long a connection is kept for the next request.
	idleTimeout = time.Minute

	// responseTimeout is how long a request that was read may take. GitHub, GitLab and
	// Alertmanager give up after 10s. If the request could not be written by then, the
	// answer is 503, while the sender still listens.
	responseTimeout = 8 * time.Second

	// retryInterval is how long to wait before asking the API server again.
	retryInterval = 100 * time.Millisecond

	// conflictInterval is how long to wait if somebody else has just written the Gate. It
	// is short, because the Gate is read again.
	conflictInterval = time.Millisecond

	// shutdownTimeout is for requests that are being answered when the process ends. It is
	// less than the terminationGracePeriodSeconds of config/manager without its preStop.
	shutdownTimeout = responseTimeout + time.Second

	// maxConnections bounds the memory for strangers: each connection may use
	// smallBodyBytes and maxHeaderBytes. More connections wait for their turn.
	maxConnections = 512

	// smallBodyBytes is what any body may have. Larger ones share maxLarge, so that a few
	// slow large ones do not keep out the usual ones. Flagger sends no larger ones.
	smallBodyBytes = 64 << 10

	// maxLarge is how many larger bodies are in memory at once: 30 MiB, and a few times
	// that as JSON, of the 1 GiB that config/manager gives. Only bodies on existing paths
	// are kept in memory. For a type whose headers prove the sender, only those of the
	// sender are.
	maxLarge = 10

	// maxLargeOfOne is how many of them are for one path, or for one receiver whose sender
	// is proven. So nobody keeps out the senders of other receivers with one path. Nor can
	// anybody find out whether a path exists by filling maxLarge with it: paths that do
	// not exist have the same bound. Somebody who fills the other half with paths of their
	// own could tell, but has to know a path to try, and gains no token.
	maxLargeOfOne = maxLarge / 2

	// requestsPerSecond and burst bound what a single receiver takes from verified
	// senders: a stranger must not use it up. Each request makes three calls to the API
	// server, and Flux's controllers allow themselves 50 per second. The burst is for a
	// fleet whose Kustomizations fail at the same time.
	requestsPerSecond = 20
	burst             = 200

	// replayWindow is how long a webhook that must not be taken twice is remembered.
	replayWindow = 10 * time.Minute

	// signedTimeTolerance is how far the time that a sender signed may be from ours,
	// either way. It is half of replayWindow: a webhook that was signed by a clock that is
	// ahead, and taken at once, is too old when it is forgotten.
	signedTimeTolerance = replayWindow / 2

	// maxDeliveries is how many webhooks of the replay window a Gate remembers for one
	// receiver, so that none takes what others need. It is more than the burst of a
	// receiver. When it is full, a webhook that opens is refused: taken and not
	// remembered, it could be sent again. One that closes is never refused. It takes the
	// place of the oldest one of its receiver that closed, because repeating that one only
	// closes once more. But where the action depends on headers, a webhook that closed may
	// open when it is repeated with other headers. So the Gate notes that it has forgotten
	// one. Until that one would have been forgotten anyway, it takes no webhook of that
	// receiver that opens.
	maxDeliveries = 256

	// maxDeliveriesBytes bounds the annotation with the webhooks of all receivers of a Gate:
	// 512 in the replay window even if each is from another receiver, and 850 from few
	// receivers. A webhook takes 19 bytes, and a receiver 10. A receiver uses at most half
	// of the bytes that the others leave. So two receivers can fill their quotas, and there
	// is always space for another one. The bound shrinks if the other annotations of the
	// Gate need more of the 256 KiB that the API server allows. A webhook that opens never
	// evicts a record in its replay window. A receiver without space for its note shares
	// one with all receivers, and then none of them opens.
	maxDeliveriesBytes = 16 << 10

	// maxRequestBytes is what a request may need besides what it remembers: two reasons,
	// two names of receivers of at most 330 bytes, two times, and the names of the
	// annotations.
	maxRequestBytes = 4 << 10

	// maxReason is how many bytes of a payload's reason go into an annotation. The status
	// keeps fewer.
	maxReason = 1024

	// oidcTimeout is for the discovery document and the keys of an issuer together. It is
	// less than answerTimeout, because the sender must hear of it.
	oidcTimeout = 5 * time.Second

	// oidcRefreshInterval is how old the keys of an issuer may be. After that time a
	// withdrawn key no longer works.
	oidcRefreshInterval = time.Hour

	// oidcRetryInterval is how soon an issuer is asked again that did not answer, or did
	// not have a key. Anybody can make up the name of a key.
	oidcRetryInterval = 10 * time.Second

	// maxOIDCBytes is the largest discovery document or key set. Real ones are a few
	// KiB.
	maxOIDCBytes = 1 << 20

	// maxKeys is how many keys an issuer may have: a token that names none is verified
	// with each. Real issuers have a few.
	maxKeys = 100

	// keyWorkPerSecond is how many signatures of tokens one replica verifies, one after
	// the other. The path of a receiver of type generic-oidc is not a secret, so anybody may
	// cause this work, and nothing tells a stranger's token beforehand. It is enough for
	// ten receivers at their full rate. It costs 2% of a core, or half of one with keys of
	// maxRSABits. Nobody is refused because of it, and strangers take nothing of what a
	// receiver takes: behind maxConnections of them a sender waits for three seconds.
	keyWorkPerSecond = 200

	// maxRSABits is the longest RSA key, as in TLS. Verifying with one takes milliseconds.
	// With one that fits into maxOIDCBytes it would take minutes, and nothing could stop
	// it.
	maxRSABits = 8192

	// maxIssuers is how many issuers are kept with their keys.
	maxIssuers = 256

	// maxTokenBytes is the length of a token that Flagger or a person may present. It
	// is compared with those of all receivers, so its length must cost little.
	maxTokenBytes = 4 << 10

	// cacheInterval is how often the cache is checked for a close that was requested a
	// moment ago. The cache hears of it within milliseconds.
	cacheInterval = time.Millisecond
)
