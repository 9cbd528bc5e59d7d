package cli

import "time"

// timeHeader returns the header of a column with times: its name and the zone that the times are in.
func timeHeader(name string, now time.Time) string { return name + " (" + now.Format("MST") + ")" }
