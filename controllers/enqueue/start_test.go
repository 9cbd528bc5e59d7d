package enqueue

import "time"

// start is when the clocks of these tests begin.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
