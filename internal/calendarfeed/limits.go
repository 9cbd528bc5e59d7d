package calendarfeed

import "time"

// Limits per client, each with its reason.
const (
	// maxGates bounds the Gates of a calendar. spec.gateRefs has the same limit.
	maxGates = 100

	// maxEvents bounds the events of a calendar. Calendar programs get slow with more.
	maxEvents = 2000

	// maxBytes is the size of all events. Some programs refuse calendars of more than 1 MiB.
	maxBytes = 1<<20 - 8<<10

	// checkInterval is how often a calendar checks for changes. In between, clients get the same content.
	checkInterval = 10 * time.Second

	// idleFactor bounds the time for computing a calendar: if it takes a second, it is not computed again for 20.
	idleFactor = 20

	// responseTimeout bounds the time for a calendar that must be computed, or waits for others. After that, the response is 503.
	responseTimeout = 8 * time.Second

	// readTimeout is how long to wait for a ConfigMap that is watched for the first time.
	readTimeout = 5 * time.Second

	// readInterval is the polling interval during that time.
	readInterval = 20 * time.Millisecond

	// requestsPerSecond and burst limit all clients of one calendar together. Programs request it every 15 minutes to every few hours, so
	// that suffices for thousands of them.
	requestsPerSecond = 10
	burst             = 100

	// maxAge is how long programs may cache a calendar, in seconds.
	maxAge = "300"

	// maxHeaderBytes bounds the headers of a request. A GET has few.
	maxHeaderBytes = 16 << 10

	// headerTimeout bounds the time for the headers of a request, and for a body, which is ignored.
	headerTimeout = 10 * time.Second

	// writeTimeout bounds the time for a response: responseTimeout, and the time in which the slowest client reads a calendar.
	writeTimeout = responseTimeout + 30*time.Second

	// idleTimeout is how long an idle connection is kept.
	idleTimeout = time.Minute

	// shutdownTimeout bounds the time for open requests when the process ends. It is shorter than the grace period in config/manager.
	shutdownTimeout = responseTimeout + time.Second

	// maxConnections bounds the memory for unauthenticated clients. More connections wait.
	maxConnections = 256
)
