package webauth

import "time"

// Limits on the resources that viewers may use.
const (
	// reviewAge is how long the result of a review is cached. Revoking a permission takes effect within that time.
	reviewAge = 10 * time.Second

	// reviewTimeout bounds the time for one review. After that, the viewer gets an error.
	reviewTimeout = 5 * time.Second

	// maxReviews bounds the number of concurrent reviews. One user gets at most half of them. Further reviews wait, so that the API server
	// has capacity for the controller.
	maxReviews = 16

	// maxTokens and maxDecisions bound the memory for the results of reviews. Each takes a few hundred bytes.
	maxTokens, maxDecisions = 1000, 20000

	// knownAge is how long a token that was once valid is exempt from the limits for unknown tokens, and how long the rate of a user is
	// stored.
	knownAge = time.Hour

	// unknownPerSecond and unknownBurst bound the reviews of tokens that have not been valid before, because a client can send any number of
	// them.
	unknownPerSecond, unknownBurst = 20, 100

	// accessPerSecond and accessBurst bound the access reviews for one user, so that requests with invented names do not exhaust the
	// capacity that the API server needs for the controller. A page for a user with permissions in maxNamespaces single namespaces takes
	// about a thousand access reviews.
	accessPerSecond, accessBurst = 100, 2000

	// maxToken bounds the length of a token, in bytes. Tokens with many groups have several thousand bytes.
	maxToken = 32 << 10

	// maxNamespaces bounds how many namespaces are reviewed for a viewer who may not list the objects of all namespaces. The page reports
	// how many are left out.
	maxNamespaces = 500

	// maxNamed bounds how many of the visible namespaces a page names.
	maxNamed = 10

	// readTimeout bounds the wait for a ConfigMap whose watch has just begun, and readInterval is how often it is checked.
	readTimeout, readInterval = 5 * time.Second, 20 * time.Millisecond

	// maxRows bounds the number of targets in the snapshot of a Gate, and maxSources the number of their sources. A page shows fewer.
	maxRows, maxSources = 500, 200

	// maxSnapshots is the number of Gates whose targets are cached. A snapshot is valid for snapshotAge, or for agePerCost times the time it
	// took to read, whichever is longer.
	maxSnapshots, snapshotAge, agePerCost = 16, 2 * time.Second, 20

	// readShare is the fraction of the time that reading targets may take in the long run. readBurst is the reading time after which viewers
	// have to wait. A single viewer gets half of both.
	readShare, readBurst = 0.05, 10 * time.Second

	// readPatience bounds how long a page waits until targets can be read. After that, the page is shown without targets.
	readPatience = 5 * time.Second

	// snapshotTimeout bounds the time to read the targets of a Gate. It is shorter than the timeout of a page.
	snapshotTimeout = 15 * time.Second

	// maxHeaderBytes bounds the size of the headers of a request, which contain a token and the headers that
	// proxies add.
	maxHeaderBytes = 64 << 10

	// headerTimeout bounds the time to read the headers of a request, and bodyTimeout the time to read its body, which may contain
	// manifests.
	headerTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second

	// writeTimeout bounds the time for sending a response, for pages that set no timeout of their own. idleTimeout is how long an idle
	// connection stays open.
	writeTimeout, idleTimeout = time.Minute, time.Minute

	// shutdownTimeout is how long the server waits for pages that are being rendered when the process terminates.
	shutdownTimeout = 2 * time.Second

	// maxConnections bounds the memory for clients without a token. Additional connections wait.
	maxConnections = 512
)
