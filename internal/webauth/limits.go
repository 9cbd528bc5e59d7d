package webauth

import "time"

// Limits on the resources that viewers may use.
const (
	// reviewAge is how long the result of a review is cached. A revoked permission takes effect within that time.
	reviewAge = 10 * time.Second

	// reviewTimeout bounds one review. After that, the viewer gets an error.
	reviewTimeout = 5 * time.Second

	// maxReviews is the number of concurrent reviews; one user gets at most half of them. Further reviews wait, so that the API server has
	// capacity for the controller.
	maxReviews = 16

	// maxTokens and maxDecisions bound the memory for reviews: a few hundred bytes each.
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

	// maxNamespaces is the number of namespaces that are reviewed for a viewer who may not list the objects of all namespaces. The page
	// reports how many are left out.
	maxNamespaces = 500

	// maxNamed bounds how many of the visible namespaces a page names.
	maxNamed = 10

	// readTimeout bounds the wait for a ConfigMap whose watch has just begun, and readInterval is how often it is checked.
	readTimeout, readInterval = 5 * time.Second, 20 * time.Millisecond

	// maxRows bounds the targets in the snapshot of a Gate, and maxSources their sources: a page has fewer.
	maxRows, maxSources = 500, 200

	// maxSnapshots is the number of Gates whose targets are cached. A snapshot is valid for snapshotAge, or for agePerCost times the time that
	// it took to read, whichever is longer.
	maxSnapshots, snapshotAge, agePerCost = 16, 2 * time.Second, 20

	// readShare is the fraction of the time that reading targets may take in the long run. readBurst is the reading time after which viewers
	// have to wait. A single viewer gets half of both.
	readShare, readBurst = 0.05, 10 * time.Second

	// readPatience bounds how long a page waits until targets can be read. After that, the page is shown without targets.
	readPatience = 5 * time.Second

	// snapshotTimeout bounds the time to read the targets of a Gate. It is shorter than the timeout of a page.
	snapshotTimeout = 15 * time.Second

	// maxHeaderBytes is the largest size of the headers of a request: a token and what proxies add.
	maxHeaderBytes = 64 << 10

	// headerTimeout is for the headers of a request, and bodyTimeout for its body, which may have manifests.
	headerTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second

	// writeTimeout bounds the time to send a response, for pages that set no timeout of their own. idleTimeout is how long an idle connection
	// stays open.
	writeTimeout, idleTimeout = time.Minute, time.Minute

	// shutdownTimeout is how long the server waits for pages that are being rendered when the process ends.
	shutdownTimeout = 2 * time.Second

	// maxConnections bounds the memory for clients without a token. More connections wait.
	maxConnections = 512
)
