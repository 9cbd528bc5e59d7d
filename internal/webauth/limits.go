package webauth

import "time"

// Limits on the resources that viewers may use.
const (
	// reviewAge is how long a review by the API server counts, positive or negative. A revoked right takes effect within that time.
	reviewAge = 10 * time.Second

	// reviewTimeout bounds one review. Without a response, the viewer sees nothing.
	reviewTimeout = 5 * time.Second

	// maxReviews is the number of concurrent reviews, half of it for one user. More wait, so that the web UI leaves the API server to the controller.
	maxReviews = 16

	// maxTokens and maxDecisions bound the memory for reviews: some hundreds of bytes each.
	maxTokens, maxDecisions = 1000, 20000

	// knownAge is how long a token that was valid once is exempt from the limits for unknown tokens, and how long the rate of a user is
	// stored.
	knownAge = time.Hour

	// unknownPerSecond and unknownBurst bound the reviews of tokens that were not valid before: a client can send any number of them.
	unknownPerSecond, unknownBurst = 20, 100

	// accessPerSecond and accessBurst bound the access reviews for one user, so that requests with invented names do not exhaust the API
	// server's capacity for the controller. A page for a user with rights in maxNamespaces single namespaces takes about a thousand.
	accessPerSecond, accessBurst = 100, 2000

	// maxToken is the length of a token, in bytes. Those with many groups have some thousands.
	maxToken = 32 << 10

	// maxNamespaces is the number of namespaces that are reviewed for a viewer who may not list in all. The page shows how many are left out.
	maxNamespaces = 500

	// maxNamed bounds how many of the visible namespaces a page names.
	maxNamed = 10

	// readTimeout bounds the wait for a ConfigMap whose watch has just begun, and readInterval is how often it is checked.
	readTimeout, readInterval = 5 * time.Second, 20 * time.Millisecond

	// maxRows bounds the targets in the snapshot of a Gate, and maxSources their sources: a page has fewer.
	maxRows, maxSources = 500, 200

	// maxSnapshots is the number of Gates with a snapshot of their targets. A snapshot counts for snapshotAge, or longer if it took long:
	// agePerCost times that.
	maxSnapshots, snapshotAge, agePerCost = 16, 2 * time.Second, 20

	// readShare is the part of the time that reading targets takes in the long run, and readBurst the time before any viewer waits. One
	// viewer has half of both.
	readShare, readBurst = 0.05, 10 * time.Second

	// readPatience bounds how long a page waits to read targets. Then it is shown without them.
	readPatience = 5 * time.Second

	// snapshotTimeout bounds reading the targets of a Gate. It is less than a page may take.
	snapshotTimeout = 15 * time.Second

	// maxHeaderBytes is the largest size of the headers of a request: a token and what proxies add.
	maxHeaderBytes = 64 << 10

	// headerTimeout is for the headers of a request, and bodyTimeout for its body, which may have manifests.
	headerTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second

	// writeTimeout is for a response whose page has no specific timeout. idleTimeout is how long a connection is kept for the next request.
	writeTimeout, idleTimeout = time.Minute, time.Minute

	// shutdownTimeout is for pages that are being rendered when the process ends.
	shutdownTimeout = 2 * time.Second

	// maxConnections bounds the memory for clients without a token. More connections wait.
	maxConnections = 512
)
