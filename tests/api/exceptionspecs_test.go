package api_test

import "strings"

const (
	causeOrder    = "validUntil must be later than validFrom"
	causeTooLong  = "an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
	causeLead     = "leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	causeEffect   = "an exception must have openPeriods, closePeriods or a default: to keep the gate closed throughout, write default: closed"
	causeLeadRest = "leadTime must not be set together with default, because default replaces the schedule that leadTime would delay: remove leadTime or default"
	causeLeadOne  = "leadTime needs exactly one of openPeriods and closePeriods: write two exceptions, or remove leadTime"
	causeShared   = "openPeriods and closePeriods must not have a name in common: rename one of the periods"
	causeMany     = "an exception can have at most 100 openPeriods and closePeriods together"
	causeZoned    = " with start, schedule, dates or local times need a time zone, because an exception does not use that of the gate: set timeZone, such as timeZone: Europe/Oslo"
	causeNoFeed   = " of an exception must not have a calendar: write start and end, schedule and duration, or from and until"
	causeSeconds  = "must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	causeKept     = "ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
)

// exception returns the spec of an exception that is valid without the added fields.
func exception(more string) string {
	return `{gateRef: {name: production}, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"` + more + `}`
}

// opening returns the spec of an exception with open periods.
func opening(periods string) string {
	return exception(`, timeZone: Europe/Oslo, openPeriods: ` + periods)
}

// closing returns the spec of an exception with close periods.
func closing(periods string) string {
	return exception(`, timeZone: Europe/Oslo, closePeriods: ` + periods)
}

// lasting returns the spec of an exception between two times.
func lasting(from, until string) string {
	return `{gateRef: {name: production}, default: closed, validFrom: "` + from + `", validUntil: "` + until + `"}`
}

const (
	opensOnce  = `, timeZone: UTC, openPeriods: [{name: a, start: "08:00", end: "09:00"}]`
	closesOnce = `, timeZone: UTC, closePeriods: [{name: b, start: "08:00", end: "09:00"}]`
	dated      = `[{name: a, from: "2026-12-01T08:00:00Z", until: "2026-12-01T09:00:00Z"}]`
)

var badExceptions = []badSpec{
	{"no gate", `{default: closed, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef", "Required value"},
	{"a gate without a name", `{gateRef: {}, default: closed, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "Required value"},
	{"a gate whose name is empty", `{gateRef: {name: ""}, default: closed, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "name must be the name of a Gate"},
	{"a gate whose name is too long", `{gateRef: {name: ` + strings.Repeat("a", 254) + `}, default: closed, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"}`, "spec.gateRef.name", "253"},
	{"an unknown default", exception(`, default: open`), "spec.default", `supported values: "closed", "opened"`},

	{"no validFrom", `{gateRef: {name: production}, default: closed, validUntil: "2026-12-02T00:00:00Z"}`, "spec.validFrom", "Required value"},
	{"no validUntil", `{gateRef: {name: production}, default: closed, validFrom: "2026-12-02T00:00:00Z"}`, "spec.validUntil", "Required value"},
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

	{"a lead with a default", exception(`, default: opened, leadTime: 1h` + closesOnce), "spec", causeLeadRest},
	{"a lead with both lists", exception(`, leadTime: 1h` + opensOnce + `, closePeriods: ` + strings.Replace(dated, "name: a", "name: b", 1)), "spec", causeLeadOne},
	{"a lead with a default alone", exception(`, default: closed, leadTime: 1h`), "spec", causeLeadRest},
	{"a lead of 0s", exception(`, leadTime: 0s` + closesOnce), "spec.leadTime", causeLead},
	{"a lead of 999ms", exception(`, leadTime: 999ms` + closesOnce), "spec.leadTime", causeLead},
	{"a lead of -1h", exception(`, leadTime: -1h` + closesOnce), "spec.leadTime", causeLead},
	{"a lead of more than 90 days", exception(`, leadTime: 2160h1s` + closesOnce), "spec.leadTime", causeLead},
	{"a lead of 91 days", exception(`, leadTime: 91d` + closesOnce), "spec.leadTime", causeLead},
	{"a lead that is not a duration", exception(`, leadTime: 1y` + closesOnce), "spec.leadTime", causeLead},
	{"ttlAfterExpired of -1h", exception(`, default: closed, ttlAfterExpired: -1h`), "spec.ttlAfterExpired", causeKept},
	{"ttlAfterExpired of more than ten years", exception(`, default: closed, ttlAfterExpired: 87600h1s`), "spec.ttlAfterExpired", causeKept},
	{"ttlAfterExpired in years", exception(`, default: closed, ttlAfterExpired: 3y`), "spec.ttlAfterExpired", causeKept},

	{"neither periods nor a default", exception(``), "spec", causeEffect},
	{"a time zone alone", exception(`, timeZone: UTC`), "spec", causeEffect},
	{"empty lists of periods", exception(`, openPeriods: [], closePeriods: []`), "spec", causeEffect},
	{"51 open and 50 close periods", exception(`, timeZone: UTC, openPeriods: ` + periods(51) + `, closePeriods: ` + strings.ReplaceAll(periods(50), "name: ", "name: c")), "spec", causeMany},
	{"an open and a close period of one name", exception(opensOnce + `, closePeriods: ` + dated), "spec", causeShared},
	{"open periods by weekday without a time zone", exception(`, openPeriods: [{name: a, start: "08:00", end: "09:00"}]`), "spec", "openPeriods" + causeZoned},
	{"open periods by cron without a time zone", exception(`, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h}]`), "spec", "openPeriods" + causeZoned},
	{"close periods by weekday without a time zone", exception(`, closePeriods: [{name: a, start: "08:00", end: "09:00"}]`), "spec", "closePeriods" + causeZoned},
	{"close periods by cron without a time zone", exception(`, default: opened, closePeriods: [{name: a, schedule: "0 0 * * *", duration: 1h}]`), "spec", "closePeriods" + causeZoned},
	{"open periods by date without a time zone", exception(`, openPeriods: [{name: a, from: "2026-12-01", until: "2026-12-01"}]`), "spec", "openPeriods" + causeZoned},
	{"close periods by local time without a time zone", exception(`, closePeriods: [{name: a, from: "2026-12-01T08:00", until: "2026-12-01T09:00"}]`), "spec", "closePeriods" + causeZoned},
	{"open periods by local time without a time zone", exception(`, openPeriods: [{name: a, from: "2026-12-01T08:00", until: "2026-12-01T09:00"}]`), "spec", "openPeriods" + causeZoned},
	{"one of two periods without a time zone", exception(`, openPeriods: [{name: a, start: "08:00", end: "09:00", timeZone: UTC}, {name: b, start: "08:00", end: "09:00"}]`), "spec", "openPeriods" + causeZoned},
	{"an unknown zone", exception(`, timeZone: Mars/Olympus, openPeriods: ` + dated), "spec.timeZone", causeZone},
	{"101 open periods", opening(periods(101)), "spec.openPeriods", "must have at most 100 items"},
	{"101 close periods", closing(periods(101)), "spec.closePeriods", "must have at most 100 items"},
	{"two periods of one name", opening(`[{name: a, start: "08:00", end: "09:00"}, {name: b, start: "08:00", end: "09:00"}, {name: a, start: "10:00", end: "11:00"}]`), "spec.openPeriods[2]", causeTwice},
	{"two close periods of one name", closing(`[{name: a, start: "08:00", end: "09:00"}, {name: a, start: "10:00", end: "11:00"}]`), "spec.closePeriods[1]", causeTwice},
	{"a period without a name", opening(`[{start: "08:00", end: "09:00"}]`), "spec.openPeriods[0].name", "Required value"},
	{"a period whose name has a blank", opening(`[{name: "No Friday", start: "08:00", end: "09:00"}]`), "spec.openPeriods[0].name", causeName},
	{"a period without a form", opening(`[{name: a}]`), "spec.openPeriods[0]", causeForm},
	{"a period of two forms", opening(`[{name: a, start: "08:00", end: "09:00", schedule: "0 0 * * *", duration: 1h}]`), "spec.openPeriods[0]", causeForm},
	{"an open period with a calendar", opening(`[{name: a, calendar: {configMapRef: {name: days, key: no.ics}}}]`), "spec.openPeriods", "openPeriods" + causeNoFeed},
	{"a close period with a calendar", closing(`[{name: a, calendar: {configMapRef: {name: days, key: no.ics}}}]`), "spec.closePeriods", "closePeriods" + causeNoFeed},
	{"25:00 as start", opening(`[{name: a, start: "25:00", end: "05:00"}]`), "spec.openPeriods[0].start", causeStart},
	{"24:01 as end", opening(`[{name: a, start: "22:00", end: "24:01"}]`), "spec.openPeriods[0].end", causeEnd},
	{"an unknown day", opening(`[{name: a, start: "22:00", end: "10:00", daysOfWeek: [Fri]}]`), "spec.openPeriods[0].daysOfWeek[0]", "supported values"},
	{"an unknown week", opening(`[{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], weeksOfMonth: [last]}]`), "spec.openPeriods[0].weeksOfMonth[0]", "supported values"},
	{"weeks without days", opening(`[{name: a, start: "22:00", end: "10:00", weeksOfMonth: [First]}]`), "spec.openPeriods[0]", causeWeeks},
	{"a duration of 59s", opening(`[{name: a, schedule: "0 0 * * *", duration: 59s}]`), "spec.openPeriods[0].duration", causeDuration},
	{"until before from", opening(`[{name: a, from: "2026-12-02T00:00:00Z", until: "2026-12-01T00:00:00Z"}]`), "spec.openPeriods[0]", "until must be later than from"},
	{"an unknown zone of a period", opening(`[{name: a, start: "08:00", end: "09:00", timeZone: Mars/Olympus}]`), "spec.openPeriods[0].timeZone", causeZone},

	{"TZ= in a cron", opening(`[{name: a, schedule: "TZ=UTC 0 0 * * *", duration: 1h}]`), "spec.openPeriods[0].schedule", "use the field timeZone"},
	{"a cron that never fires", opening(`[{name: a, schedule: "0 0 30 2 *", duration: 1h}]`), "spec.openPeriods[0].schedule", causeNever},
}

var goodExceptions = map[string]string{
	"the example of DESIGN.md": `
gateRef: {name: production}
timeZone: Europe/Oslo
validFrom: "2026-12-19T00:00:00Z"
validUntil: "2027-01-04T00:00:00Z"
leadTime: 1h
closePeriods:
- {name: nights, daysOfWeek: [Monday, Tuesday], start: "22:00", end: "05:00"}
- {name: patching, daysOfWeek: [Sunday], weeksOfMonth: [First, Last], start: "02:00", end: "05:00"}
- {name: cron, schedule: "0 0 * * FRI", duration: 24h, timeZone: UTC}
- {name: year-end, from: "2026-12-19T00:00:00Z", until: "2027-01-04T00:00:00Z"}`,
	"closed throughout":                      exception(`, default: closed`),
	"opened throughout, with empty lists":    exception(`, default: opened, openPeriods: [], closePeriods: []`),
	"open periods and a default":             exception(`, default: closed` + opensOnce),
	"open periods":                           exception(opensOnce),
	"close periods":                          exception(closesOnce),
	"open and close periods, with a default": exception(`, default: opened` + opensOnce + `, closePeriods: ` + strings.Replace(dated, "name: a", "name: b", 1)),
	"dated periods without a time zone":      exception(`, openPeriods: ` + dated),
	"dates and local times":                  opening(`[{name: a, from: "2026-12-01", until: "2026-12-01"}, {name: b, from: "2026-12-01T08:00", until: "2026-12-01T09:00"}]`),
	"periods with their own time zones":      exception(`, closePeriods: [{name: a, start: "08:00", end: "09:00", timeZone: UTC}, {name: b, schedule: "0 0 * * *", duration: 1h, timeZone: Europe/Oslo}]`),
	"a lead before open periods":             exception(`, leadTime: 1h` + opensOnce),
	"close periods at times without a zone":  exception(`, closePeriods: ` + dated),
	"a lead, with no close periods":          exception(`, leadTime: 1d, ttlAfterExpired: 3650d, closePeriods: []` + opensOnce),
	"a lead, with the other list empty":      exception(`, leadTime: 1h, openPeriods: []` + closesOnce),
	"90 days exactly":                        lasting("2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"),
	"90 days by the clocks of two zones":     lasting("2026-12-01T00:00:00+01:00", "2027-02-28T23:00:00Z"),
	"the end of time":                        lasting("9999-12-31T00:00:00Z", "9999-12-31T23:59:59Z"),
	"a second":                               lasting("2026-12-01T00:00:00Z", "2026-12-01T00:00:01Z"),
	"whole seconds that are written as .000": lasting("2026-12-01T00:00:00.000Z", "2026-12-02T00:00:00.0Z"),
	"times before 1970":                      lasting("1969-12-01T00:00:01Z", "1969-12-02T00:00:00Z"),
	"the bounds of a lead":                   exception(`, leadTime: 1s` + closesOnce),
	"the other bound of a lead":              exception(`, leadTime: 2160h` + closesOnce),
	"a lead of several units":                exception(`, leadTime: 1h30m` + closesOnce),
	"deleted as soon as it expires":          exception(`, default: closed, ttlAfterExpired: 0s`),
	"kept for ten years":                     exception(`, default: closed, ttlAfterExpired: 87600h`),
	"a lead in days and kept for weeks":      exception(`, leadTime: 90d, ttlAfterExpired: 4w` + closesOnce),
	"100 periods":                            opening(periods(100)),
	"a gate of the longest name":             strings.Replace(exception(`, default: closed`), "production", strings.Repeat("a", 253), 1),
	"a period of times in two zones":         opening(`[{name: a, from: "2026-12-02T00:00:00+01:00", until: "2026-12-01T23:30:00Z"}]`),
}
