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

	// readTimeout is for a whole request, as in notification-controller.
	readTimeout = 30 * time.Second

	// writeTimeout is for a request and its answer: readTimeout, answerTimeout, and a
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

	// smallBodyBytes is what any body may have. Larger ones share maxLargeBytes, so
	// that a few slow large ones keep no usual one out.
	smallBodyBytes = 64 << 10

	// maxLargeBytes bounds the memory for what is larger: 10 of the largest bodies. As
	// JSON they are a few times larger, of 1 GiB that config/manager gives.
	maxLargeBytes = 32 << 20

	// requestsPerSecond and burst bound what a single receiver takes. Each request is
	// three calls of the API server, of which Flux's controllers allow themselves 50 in a
	// second. The burst is a fleet whose Kustomizations fail at the same time.
	requestsPerSecond = 20
	burst             = 200

	// replayWindow is how long a webhook is remembered that must not be taken twice.
	replayWindow = 10 * time.Minute

	// signedTimeTolerance is how far the time that a sender signed may be from ours,
	// either way. Half of replayWindow: one that was signed by a clock that is ahead,
	// and taken at once, is too old when it is forgotten.
	signedTimeTolerance = replayWindow / 2

	// maxDeliveries is how many webhooks of the replay window one Gate remembers, in
	// about 40 bytes each of the 256 KiB that annotations may have. More are refused.
	maxDeliveries = 1024

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
