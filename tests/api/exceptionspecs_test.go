package api_test

import "strings"

const (
	causeOrder    = "validUntil must be later than validFrom"
	causeTooLong  = "an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
	causeLead     = "leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	causeLeadType = "leadTime is for type suspend only: the others start nothing before their windows"
	causeWindows  = "an exception needs windows, except one of type replace: without any it keeps the gate in its default state"
	causeSeconds  = "must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	causeKept     = "ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
)

// exception returns the spec of an exception that is good except for what is added.
func exception(more string) string {
	return `{gateRef: {name: production}, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"` + more + `}`
}

// windowed returns the spec of an exception with windows.
func windowed(windows string) string { return exception(`, type: extend, windows: ` + windows) }

// lasting returns the spec of an exception between two times.
func lasting(from, until string) string {
	return `{gateRef: {name: production}, type: replace, validFrom: "` + from + `", validUntil: "` + until + `"}`
}

const oneWindow = `, windows: [{name: a, start: "08:00", end: "09:00"}]`

var badExceptions = []badSpec{
	{"no gate", `{type: replace, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef", "Required value"},
	{"a gate without a name", `{gateRef: {}, type: replace, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "Required value"},
	{"a gate whose name is empty", `{gateRef: {name: ""}, type: replace, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "should be at least 1 chars long"},
	{"a gate whose name is too long", `{gateRef: {name: ` + strings.Repeat("a", 254) + `}, type: replace, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "253"},
	{"no type", exception(oneWindow), "spec.type", "Required value"},
	{"an unknown type", exception(`, type: Extend` + oneWindow), "spec.type", `supported values: "extend", "suspend", "replace"`},

	{"no validFrom", `{gateRef: {name: production}, type: replace, validUntil: "2026-12-02T00:00:00Z"}`, "spec.validFrom", "Required value"},
	{"no validUntil", `{gateRef: {name: production}, type: replace, validFrom: "2026-12-02T00:00:00Z"}`, "spec.validUntil", "Required value"},
	{"validUntil before validFrom", lasting("2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"), "spec", causeOrder},
	{"validUntil equal to validFrom", lasting("2026-12-02T00:00:00Z", "2026-12-02T01:00:00+01:00"), "spec", causeOrder},
	{"90 days and a second", lasting("2026-12-01T00:00:00Z", "2027-03-01T00:00:01Z"), "spec", causeTooLong},
	{"thousands of years", lasting("2026-12-01T00:00:00Z", "9999-12-31T23:59:59Z"), "spec", causeTooLong},
	{"validFrom that is not a time", lasting("tomorrow", "2026-12-02T00:00:00Z"), "spec.validFrom", "date-time"},
	{"validUntil that is not a time", lasting("2026-12-01T00:00:00Z", "never"), "spec.validUntil", "date-time"},
	{"validFrom with a fraction", lasting("2026-12-01T00:00:00.5Z", "2026-12-02T00:00:00Z"), "spec.validFrom", causeSeconds},
	{"validUntil with a fraction", lasting("2026-12-01T00:00:00Z", "2026-12-02T00:00:00.001Z"), "spec.validUntil", causeSeconds},
	{"validFrom with a fraction of a millisecond", lasting("2026-12-01T00:00:00.0001Z", "2026-12-02T00:00:00Z"), "spec.validFrom", causeSeconds},
	{"validUntil with a nanosecond", lasting("2026-12-01T00:00:00Z", "2026-12-02T00:00:00.000000001Z"), "spec.validUntil", causeSeconds},

	{"the zero time of Go", lasting("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"), "spec.validFrom", causeSeconds},

	{"a lead for extend", exception(`, type: extend, leadTime: 1h` + oneWindow), "spec", causeLeadType},
	{"a lead for replace", exception(`, type: replace, leadTime: 1h` + oneWindow), "spec", causeLeadType},
	{"a lead of 0s", exception(`, type: suspend, leadTime: 0s` + oneWindow), "spec.leadTime", causeLead},
	{"a lead of 999ms", exception(`, type: suspend, leadTime: 999ms` + oneWindow), "spec.leadTime", causeLead},
	{"a lead of -1h", exception(`, type: suspend, leadTime: -1h` + oneWindow), "spec.leadTime", causeLead},
	{"a lead of more than 90 days", exception(`, type: suspend, leadTime: 2160h1s` + oneWindow), "spec.leadTime", causeLead},
	{"a lead of 91 days", exception(`, type: suspend, leadTime: 91d` + oneWindow), "spec.leadTime", causeLead},
	{"a lead that is not a duration", exception(`, type: suspend, leadTime: 1y` + oneWindow), "spec.leadTime", causeLead},
	{"ttlAfterExpired of -1h", exception(`, type: replace, ttlAfterExpired: -1h`), "spec.ttlAfterExpired", causeKept},
	{"ttlAfterExpired of more than ten years", exception(`, type: replace, ttlAfterExpired: 87600h1s`), "spec.ttlAfterExpired", causeKept},
	{"ttlAfterExpired in years", exception(`, type: replace, ttlAfterExpired: 3y`), "spec.ttlAfterExpired", causeKept},

	{"extend without windows", exception(`, type: extend`), "spec", causeWindows},
	{"suspend without windows", exception(`, type: suspend`), "spec", causeWindows},
	{"suspend with an empty list of windows", exception(`, type: suspend, windows: []`), "spec", causeWindows},
	{"101 windows", windowed(periods(101)), "spec.windows", "must have at most 100 items"},
	{"two windows of one name", windowed(`[{name: a, start: "08:00", end: "09:00"}, {name: b, start: "08:00", end: "09:00"}, {name: a, start: "10:00", end: "11:00"}]`), "spec.windows[2]", causeTwice},
	{"a window without a name", windowed(`[{start: "08:00", end: "09:00"}]`), "spec.windows[0].name", "Required value"},
	{"a window whose name has a blank", windowed(`[{name: "No Friday", start: "08:00", end: "09:00"}]`), "spec.windows[0].name", causeName},
	{"a window without a form", windowed(`[{name: a}]`), "spec.windows[0]", causeForm},
	{"a window of two forms", windowed(`[{name: a, start: "08:00", end: "09:00", schedule: "0 0 * * *", duration: 1h}]`), "spec.windows[0]", causeForm},
	{"a window that is a calendar", windowed(`[{name: a, calendar: {configMapRef: {name: days, key: no.ics}}}]`), "spec.windows", "a window of an exception has no calendar, give it start and end, a schedule, or from and until"},
	{"25:00 as start", windowed(`[{name: a, start: "25:00", end: "05:00"}]`), "spec.windows[0].start", causeStart},
	{"24:01 as end", windowed(`[{name: a, start: "22:00", end: "24:01"}]`), "spec.windows[0].end", causeEnd},
	{"an unknown day", windowed(`[{name: a, start: "22:00", end: "10:00", daysOfWeek: [Fri]}]`), "spec.windows[0].daysOfWeek[0]", "supported values"},
	{"an unknown week", windowed(`[{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], weeksOfMonth: [last]}]`), "spec.windows[0].weeksOfMonth[0]", "supported values"},
	{"weeks without days", windowed(`[{name: a, start: "22:00", end: "10:00", weeksOfMonth: [First]}]`), "spec.windows[0]", causeWeeks},
	{"a duration of 59s", windowed(`[{name: a, schedule: "0 0 * * *", duration: 59s}]`), "spec.windows[0].duration", causeDuration},
	{"until before from", windowed(`[{name: a, from: "2026-12-02T00:00:00Z", until: "2026-12-01T00:00:00Z"}]`), "spec.windows[0]", "until must be later than from"},
	{"an unknown zone of a window", windowed(`[{name: a, start: "08:00", end: "09:00", timeZone: Mars/Olympus}]`), "spec.windows[0].timeZone", causeZone},

	{"TZ= in a cron", windowed(`[{name: a, schedule: "TZ=UTC 0 0 * * *", duration: 1h}]`), "spec.windows[0].schedule", ""},
	{"a cron that never fires", windowed(`[{name: a, schedule: "0 0 30 2 *", duration: 1h}]`), "spec.windows[0].schedule", ""},
}

var goodExceptions = map[string]string{
	"the example of DESIGN.md": `
gateRef: {name: production}
type: suspend
validFrom: "2026-12-19T00:00:00Z"
validUntil: "2027-01-04T00:00:00Z"
leadTime: 1h
windows:
- {name: nights, daysOfWeek: [Monday, Tuesday], start: "22:00", end: "05:00"}
- {name: patching, daysOfWeek: [Sunday], weeksOfMonth: [First, Last], start: "02:00", end: "05:00"}
- {name: cron, schedule: "0 0 * * FRI", duration: 24h, timeZone: UTC}
- {name: year-end, from: "2026-12-19T00:00:00Z", until: "2027-01-04T00:00:00Z"}`,
	"replace without windows":                exception(`, type: replace`),
	"replace with an empty list of windows":  exception(`, type: replace, windows: []`),
	"replace with a window":                  exception(`, type: replace` + oneWindow),
	"extend":                                 exception(`, type: extend` + oneWindow),
	"suspend without a lead":                 exception(`, type: suspend` + oneWindow),
	"90 days exactly":                        lasting("2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"),
	"90 days by the clocks of two zones":     lasting("2026-12-01T00:00:00+01:00", "2027-02-28T23:00:00Z"),
	"the end of time":                        lasting("9999-12-31T00:00:00Z", "9999-12-31T23:59:59Z"),
	"a second":                               lasting("2026-12-01T00:00:00Z", "2026-12-01T00:00:01Z"),
	"whole seconds that are written as .000": lasting("2026-12-01T00:00:00.000Z", "2026-12-02T00:00:00.0Z"),
	"times before 1970":                      lasting("1969-12-01T00:00:01Z", "1969-12-02T00:00:00Z"),
	"the bounds of a lead":                   exception(`, type: suspend, leadTime: 1s` + oneWindow),
	"the other bound of a lead":              exception(`, type: suspend, leadTime: 2160h` + oneWindow),
	"a lead of several units":                exception(`, type: suspend, leadTime: 1h30m` + oneWindow),
	"deleted at once when it is over":        exception(`, type: replace, ttlAfterExpired: 0s`),
	"kept for ten years":                     exception(`, type: replace, ttlAfterExpired: 87600h`),
	"a lead in days and kept for weeks":      exception(`, type: suspend, leadTime: 90d, ttlAfterExpired: 4w` + oneWindow),
	"100 windows":                            windowed(periods(100)),
	"a gate of the longest name":             strings.Replace(exception(`, type: replace`), "production", strings.Repeat("a", 253), 1),
	"windows, with each default of the gate": windowed(`[{name: a, from: "2026-12-02T00:00:00+01:00", until: "2026-12-01T23:30:00Z"}]`),
}
