package calendarfeed

import "time"

// Bounds of what a reader may use, each with its reason.
const (
	// maxGates bounds the Gates of a calendar. spec.gateRefs has the same limit.
	maxGates = 100

	// maxEvents is how many events a calendar has. Programs that show calendars get slow with more.
	maxEvents = 2000

	// maxBytes is the size of all events. Some programs refuse calendars of more than 1 MiB.
	maxBytes = 1<<20 - 8<<10

	// checkInterval is how often a calendar looks whether something has changed. In between, its readers get what it had.
	checkInterval = 10 * time.Second

	// idleFactor is of how many parts of its time a calendar uses one for computing itself: what takes a second is not done again for 20.
	idleFactor = 20

	// responseTimeout is for a calendar that has to be computed, or waits for its turn. Then the answer is 503.
	responseTimeout = 8 * time.Second

	// readTimeout is how long a ConfigMap is waited for that is watched for the first time.
	readTimeout = 5 * time.Second

	// readInterval is how often it is looked for in that time.
	readInterval = 20 * time.Millisecond

	// requestsPerSecond and burst bound what all readers of one calendar get. Programs ask every 15 minutes to every few hours: it is enough for
	// thousands of them.
	requestsPerSecond = 10
	burst             = 100

	// maxAge is for how long a program may show what it has without asking.
	maxAge = "300"

	// maxHeaderBytes is the largest size of the headers of a request. A GET has few.
	maxHeaderBytes = 16 << 10

	// headerTimeout is for the headers of a request, and for a body, which nobody reads.
	headerTimeout = 10 * time.Second

	// writeTimeout is for an answer: answerTimeout, and what the slowest reader needs for a calendar.
	writeTimeout = responseTimeout + 30*time.Second

	// idleTimeout is how long a connection is kept for the next request.
	idleTimeout = time.Minute

	// shutdownTimeout is for requests that are being answered when the process ends. It is less than config/manager waits.
	shutdownTimeout = responseTimeout + time.Second

	// maxConnections bounds the memory for strangers. More connections wait for their turn.
	maxConnections = 256
)
