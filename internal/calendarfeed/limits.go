package calendarfeed

import "time"

// Limits, each with the reason.
const (
	// maxGates bounds the number of Gates in a calendar. spec.gateRefs has the same limit.
	maxGates = 100

	// maxEvents bounds the number of events in a calendar. With more events, calendar programs become slow.
	maxEvents = 2000

	// maxBytes bounds the size of all events. Some programs reject calendars of more than 1 MiB.
	maxBytes = 1<<20 - 8<<10

	// checkInterval is how often the objects of a calendar are checked for changes. Between checks, clients get the same content.
	checkInterval = 10 * time.Second

	// idleFactor limits how often a calendar is computed. For example, if that takes a second, the calendar is not computed again for 20
	// seconds.
	idleFactor = 20

	// responseTimeout bounds the time for a response if the calendar must be computed or has to wait for other calendars. After that, the
	// response is 503.
	responseTimeout = 8 * time.Second

	// readTimeout is how long to wait for a ConfigMap that is watched for the first time.
	readTimeout = 5 * time.Second

	// readInterval is the polling interval for readTimeout.
	readInterval = 20 * time.Millisecond

	// requestsPerSecond and burst limit the requests of all clients of one calendar together. Calendar programs request a calendar every 15
	// minutes to every few hours, so this is enough for thousands of clients.
	requestsPerSecond = 10
	burst             = 100

	// maxAge is how long programs may cache a calendar, in seconds.
	maxAge = "300"

	// maxHeaderBytes bounds the size of the headers of a request. A GET request has few headers.
	maxHeaderBytes = 16 << 10

	// headerTimeout bounds the time to read the headers of a request, and to read a body, which is ignored.
	headerTimeout = 10 * time.Second

	// writeTimeout bounds the time for a response. It is the sum of responseTimeout and the time in which a slow client can read a calendar.
	writeTimeout = responseTimeout + 30*time.Second

	// idleTimeout is how long an idle connection is kept.
	idleTimeout = time.Minute

	// shutdownTimeout bounds the time for open requests when the process terminates. It is shorter than the grace period in config/manager.
	shutdownTimeout = responseTimeout + time.Second

	// maxConnections bounds the memory for unauthenticated clients. Additional connections wait.
	maxConnections = 256
)
