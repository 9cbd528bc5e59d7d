package webauth

import "time"

// Bounds of what viewers may use, each with its reason.
const (
	// remembered is how long an answer of the API server counts, who somebody is or what they may do, also if it is a no. So late takes
	// effect what is revoked.
	remembered = 10 * time.Second

	// reviewTimeout is for an answer of the API server. Without one, the viewer sees nothing.
	reviewTimeout = 5 * time.Second

	// maxReviews is how many reviews there are at once. Others wait, so that pages do not use up what the API server has for the controller.
	maxReviews = 16

	// maxTokens and maxDecisions bound the memory for answers: some hundreds of bytes each.
	maxTokens, maxDecisions = 1000, 20000

	// strangersPerSecond and strangersAtOnce bound the reviews of tokens that were not good before: somebody may send any number of them.
	strangersPerSecond, strangersAtOnce = 20, 100

	// accessPerSecond and accessAtOnce bound the reviews for one person, so that a loop over made-up names does not use up what the API
	// server has for the controller. A page for somebody who sees maxNamespaces one by one takes about a thousand.
	accessPerSecond, accessAtOnce = 100, 2000

	// maxToken is the length of a token, in bytes. Those with many groups have some thousands.
	maxToken = 32 << 10

	// maxNamespaces is how many namespaces a viewer is asked for who may not see those of all. A page says how many are left out.
	maxNamespaces = 500

	// maxNamed is up to how many namespaces a page names of those that a viewer may see.
	maxNamed = 10

	// readTimeout is how long a ConfigMap is waited for that is watched for the first time, and readInterval how often it is looked for.
	readTimeout, readInterval = 5 * time.Second, 20 * time.Millisecond

	// maxLooked is how many targets of a Gate are looked at, and maxSources how many of their sources: a page has less.
	maxLooked, maxSources = 500, 200

	// maxLooks is for how many Gates the targets are kept, and lookInterval for how long. One Gate is looked at after the other.
	maxLooks, lookInterval = 16, 2 * time.Second

	// lookShare is how much of the time looking takes in the long run, and lookBurst how much before anybody waits: what takes a second is
	// not done again for 20.
	lookShare, lookBurst = 0.05, 10 * time.Second

	// lookPatience is how long a page waits until its Gate may be looked at. Without that, it says so.
	lookPatience = 3 * time.Second

	// lookTimeout is for looking at a Gate, with the wait for the turn. It is less than a page may take.
	lookTimeout = 15 * time.Second

	// maxHeaderBytes is the largest size of the headers of a request: a token and what proxies add.
	maxHeaderBytes = 64 << 10

	// headerTimeout is for the headers of a request, and bodyTimeout for its body, which may have manifests.
	headerTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second

	// writeTimeout is for an answer whose page has no time of its own, and idleTimeout how long a connection is kept for the next request.
	writeTimeout, idleTimeout = time.Minute, time.Minute

	// shutdownTimeout is for pages that are being made when the process ends.
	shutdownTimeout = 2 * time.Second

	// maxConnections bounds the memory for strangers. More connections wait for their turn.
	maxConnections = 512
)
