package receivers

import "time"

// Limits per sender, each with the reason. Limits that also exist in notification-controller have the same value.
const (
	// maxBodyBytes bounds the size of a body, as in notification-controller. Most senders send a few KiB. Only GitHub may send more, for
	// pushes of thousands of commits.
	maxBodyBytes = 3 << 20

	// maxHeaderBytes bounds the size of the headers of a request, as in notification-controller.
	maxHeaderBytes = 256 << 10

	// readHeaderTimeout bounds the time to read the headers of a request, as in notification-controller.
	readHeaderTimeout = 10 * time.Second

	// readTimeout bounds the time to read a whole body, like the limit for a request in notification-controller.
	readTimeout = 30 * time.Second

	// progressInterval bounds the time for the next progressBytes of a body, or for the rest of it, so that a stalled sender is disconnected
	// long before readTimeout. It is long enough for a packet that is lost twice, and for any connection that is fast enough for the largest
	// body.
	progressInterval = 5 * time.Second
	progressBytes    = 16 << 10

	// writeTimeout bounds the time for a body and the response. It is the sum of readTimeout, responseTimeout, and a second to write.
	writeTimeout = readTimeout + responseTimeout + time.Second

	// idleTimeout is how long an idle connection stays open.
	idleTimeout = time.Minute

	// responseTimeout bounds the time to handle a request after its body has been read. GitHub, GitLab and Alertmanager give up after 10s.
	// If the request could not be written to the Gate by then, the response is 503, before the sender gives up.
	responseTimeout = 8 * time.Second

	// retryInterval is how long to wait before trying again.
	retryInterval = 100 * time.Millisecond

	// conflictInterval is the delay after a conflict with another client. It is short, because only the Gate has to be read again.
	conflictInterval = time.Millisecond

	// shutdownTimeout bounds the time for open requests when the process terminates. It is shorter than the terminationGracePeriodSeconds in
	// config/manager minus the preStop hook.
	shutdownTimeout = responseTimeout + time.Second

	// maxConnections bounds the memory for unverified senders, because each connection may use smallBodyBytes and maxHeaderBytes. Additional
	// connections wait.
	maxConnections = 512

	// smallBodyBytes is the size that any body may have. Larger bodies share maxLarge, so that a few slow large bodies do not block typical
	// ones. Flagger never sends larger bodies.
	smallBodyBytes = 64 << 10

	// maxLarge bounds how many larger bodies are in memory at once. They take 30 MiB, and a few times that as JSON, of the 1 GiB in
	// config/manager. Only bodies to existing paths are kept in memory. If the type of the receiver verifies the sender by headers, only
	// bodies of verified senders are kept.
	maxLarge = 10

	// maxLargeOfOne bounds how many larger bodies are for one path, or for one receiver with a verified sender, so that a client with one
	// path cannot block the senders of other receivers. Unknown paths have the same limit, so a client cannot find out whether a path exists
	// by filling maxLarge with requests to it. A client that fills the other half with its own paths could find out, but it must already
	// know the path and does not obtain a token.
	maxLargeOfOne = maxLarge / 2

	// requestsPerSecond and burst limit how many requests from verified senders a receiver accepts. Unverified senders cannot use up this
	// limit. Each request makes three calls to the API server, and Flux controllers limit themselves to 50 calls per second. The burst
	// allows for a fleet whose Kustomizations fail at the same time.
	requestsPerSecond = 20
	burst             = 200

	// replayWindow is how long a webhook that must not be repeated is recorded.
	replayWindow = 10 * time.Minute

	// signedTimeTolerance bounds the difference between a signed time and the current time, in both directions. It is half of replayWindow.
	// Even if the clock of the sender is ahead and its webhook is accepted at once, the webhook is too old by the time its record expires.
	signedTimeTolerance = replayWindow / 2

	// maxDeliveries bounds the number of webhooks in the replay window that a Gate records for one receiver, so that a receiver does not use
	// up the space of others. It is greater than the burst of a receiver. If the limit is reached, a webhook that opens is refused, because
	// it could be repeated if it were not recorded. A webhook that closes is never refused. It replaces the oldest webhook of its receiver
	// that closed, because repeating that webhook would only close again. However, if the action depends on headers, a webhook that closed
	// may open when it is repeated with other headers. Therefore, the Gate records that it has dropped one. Until that record expires, it
	// accepts no webhook of that receiver that opens.
	maxDeliveries = 256

	// maxDeliveriesBytes bounds the annotation with the webhooks of all receivers of a Gate. It has space for 512 webhooks in the replay
	// window if each is from a different receiver, and for 850 from few receivers, because a webhook takes 19 bytes, and a receiver 10. A
	// receiver uses at most half of the bytes that the others leave free, so two receivers can fill their quotas, and there is always space
	// for another one. The limit is lower if the other annotations of the Gate need more of the 256 KiB that the API server allows. A
	// webhook that opens never evicts a record in its replay window. Receivers without space for their own dropped item share one, and then
	// none of them can open.
	maxDeliveriesBytes = 16 << 10

	// maxRequestBytes is the space that a request may need in addition to its record: two reasons, two names of receivers of at most 330
	// bytes, two times, and the names of the annotations.
	maxRequestBytes = 4 << 10

	// maxReason bounds the bytes of a reason from a payload in an annotation. The status stores fewer bytes.
	maxReason = 1024

	// oidcTimeout bounds the time to read the discovery document and the keys of an issuer. It is shorter than responseTimeout, so that the
	// sender receives the error.
	oidcTimeout = 5 * time.Second

	// oidcRefreshInterval is the maximum age of the keys of an issuer. After that time, a withdrawn key no longer works.
	oidcRefreshInterval = time.Hour

	// oidcRetryInterval is the delay before requesting the keys again from an issuer that has failed or lacked a key. The delay is needed
	// because any client can make up the name of a key.
	oidcRetryInterval = 10 * time.Second

	// maxOIDCBytes bounds the size of a discovery document or key set. Typical ones have a few KiB.
	maxOIDCBytes = 1 << 20

	// maxKeys bounds the number of keys of an issuer, because a token without a key ID is verified with each of them. Typical issuers have a
	// few keys.
	maxKeys = 100

	// keyWorkPerSecond limits how many signatures of tokens one replica verifies, one after the other. The path of a receiver of type
	// generic-oidc is not secret, so any client can cause this work, and invalid tokens cannot be recognized beforehand. The limit is high
	// enough for ten receivers at their full rate. It costs 2% of a core, or half a core with keys of maxRSABits. No request is refused
	// because of this limit. A sender behind maxConnections of unverified senders waits for three seconds.
	keyWorkPerSecond = 200

	// maxRSABits bounds the length of RSA keys, as in TLS. Verifying a signature with such a key takes milliseconds. With the longest key
	// that fits into maxOIDCBytes, it would take minutes and could not be stopped.
	maxRSABits = 8192

	// maxIssuers bounds the number of issuers whose keys are cached.
	maxIssuers = 256

	// maxTokenBytes bounds the length of a token sent by Flagger or a user. The token is compared with the tokens of all receivers, so the
	// comparison must be cheap.
	maxTokenBytes = 4 << 10

	// cacheInterval is how often the cache is checked for a close that was just requested. The close arrives in the cache within
	// milliseconds.
	cacheInterval = time.Millisecond
)
