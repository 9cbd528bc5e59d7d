package api_test

import (
	"fmt"
	"strings"
)

// periods returns n open periods as YAML, each with its own name.
func periods(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{name: p%d, start: "08:00", end: "09:00"}`, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// categories returns the names of n categories.
func categories(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("c%d", i))
	}
	return strings.Join(all, ", ")
}

// waves returns n waves as YAML.
func waves(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{name: w%d, matchLabels: {wave: w%d}, soak: 30m}`, i, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// watches returns n watches as YAML, each of another object.
func watches(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{kind: Kustomization, name: w%d}`, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// badSpec is a spec that the API server must refuse, at a path and for a cause in terms of users. With an empty cause, only the controller
// can detect the fault.
type badSpec struct {
	name, spec  string
	path, cause string
}

const (
	causeZone     = "unknown time zone, use a name of the IANA database such as Europe/Oslo or UTC"
	causeForm     = "a period must be exactly one of: weekly (start and end, optionally on some days), cron (schedule and duration), dated (from and until), calendar"
	causeWeeks    = "weeksOfMonth needs daysOfWeek: daysOfWeek [Sunday] and weeksOfMonth [First] mean the first Sunday of a month"
	causeDay      = "must be a day of the month from 1 to 31, or from -1 (the last day) to -31"
	causeWorkday  = "must be a workday of the month from 1 to 23, or from -1 (the last workday) to -23"
	causeOneDays  = "only one of weeksOfMonth, daysOfMonth, workdaysOfMonth and everyWeeks is allowed: write a period for each"
	causeNoDays   = "daysOfWeek is not allowed with daysOfMonth or workdaysOfMonth: remove daysOfWeek, or use weeksOfMonth"
	causeAnchor   = "everyWeeks and anchor must be set together"
	causeDate     = "must be a date such as 2026-12-07"
	causeDateTime = "must be a date such as 2026-12-24, a local time such as 2026-12-24T08:00, or a time in RFC 3339 such as 2026-12-24T08:00:00Z"
	causeSecond   = "must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	causeSameForm = "from and until must have the same form"
	causeLater    = "until must be later than from, or the same date"
	causeStart    = "start must be a time of day from 00:00 to 23:59"
	causeEnd      = "end must be a time of day from 00:00 to 24:00"
	causeDuration = "duration must be from 1m to 8784h (366 days), such as 24h"
	causeWindow   = "window must be a duration from 1s to 8784h (366 days), such as 1h"
	causeInterval = "interval must be a duration of at least 10s, such as 1m"
	causeNotice   = "must be a duration from 1m to 720h (30 days), such as 24h"
	causeCount    = "a gate can have at most 100 open and close periods together"
	causeTwice    = `Duplicate value: {"name":"a"}`
	causeBoth     = "an open period and a close period must not have the same name"
	causeWatch    = "an object can be listed only once"
	causeName     = "name must consist of lower case letters, digits and dashes, and begin and end with a letter or digit"
)

var badSpecs = []badSpec{
	{"no default", `{interval: 1m}`, "spec.default", "Required value"},
	{"an unknown default", `{default: open}`, "spec.default", `supported values: "closed", "opened"`},

	{"an unknown zone of the gate", `{default: closed, timeZone: Europe/Atlantis}`, "spec.timeZone", causeZone},
	{"a zone in lower case", `{default: closed, timeZone: europe/oslo}`, "spec.timeZone", causeZone},
	{"the zone Local", `{default: closed, timeZone: Local}`, "spec.timeZone", causeZone},
	{"an offset instead of a zone", `{default: closed, timeZone: "+01:00"}`, "spec.timeZone", causeZone},
	{"an unknown zone of a window", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00", timeZone: Mars/Olympus}]}`, "spec.openPeriods[0].timeZone", causeZone},
	{"an unknown zone of a close period", `{default: closed, closePeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, timeZone: local}]}`, "spec.closePeriods[0].timeZone", causeZone},

	{"an offset as zone of a window", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00", timeZone: "+01:00"}]}`, "spec.openPeriods[0].timeZone", causeZone},
	{"an offset as zone of a close period", `{default: closed, closePeriods: [{name: a, start: "08:00", end: "09:00", timeZone: "-01:00"}]}`, "spec.closePeriods[0].timeZone", causeZone},

	{"25:00 as start", `{default: closed, openPeriods: [{name: a, start: "25:00", end: "05:00"}]}`, "spec.openPeriods[0].start", causeStart},
	{"24:00 as start", `{default: closed, openPeriods: [{name: a, start: "24:00", end: "05:00"}]}`, "spec.openPeriods[0].start", causeStart},
	{"8:00 as start", `{default: closed, openPeriods: [{name: a, start: "8:00", end: "09:00"}]}`, "spec.openPeriods[0].start", causeStart},
	{"24:01 as end", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "24:01"}]}`, "spec.openPeriods[0].end", causeEnd},
	{"10:60 as end", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:60"}]}`, "spec.openPeriods[0].end", causeEnd},
	{"an unknown day", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Fri]}]}`, "spec.openPeriods[0].daysOfWeek[0]", "supported values"},
	{"a day twice", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday, Friday]}]}`, "spec.openPeriods[0].daysOfWeek[1]", "Duplicate value"},
	{"an unknown week", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], weeksOfMonth: [Sixth]}]}`, "spec.openPeriods[0].weeksOfMonth[0]", "supported values"},
	{"a week twice", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], weeksOfMonth: [Last, First, Last]}]}`, "spec.openPeriods[0].weeksOfMonth[2]", "Duplicate value"},
	{"weeks without days", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", weeksOfMonth: [First]}]}`, "spec.openPeriods[0]", causeWeeks},
	{"day 0 of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [1, 0]}]}`, "spec.openPeriods[0].daysOfMonth[1]", causeDay},
	{"day 32 of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [32]}]}`, "spec.openPeriods[0].daysOfMonth[0]", causeDay},
	{"day -32 of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [-32]}]}`, "spec.openPeriods[0].daysOfMonth[0]", causeDay},
	{"a day of the month twice", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [1, 1]}]}`, "spec.openPeriods[0].daysOfMonth[1]", "Duplicate value"},
	{"32 days of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [-1, ` + strings.Trim(list(32, "%d"), "[]0, ") + `]}]}`, "spec.openPeriods[0].daysOfMonth", "must have at most 31 items"},
	{"24 workdays of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: [-1, ` + strings.TrimPrefix(list(24, "%d"), "[0, ") + `}]}`, "spec.openPeriods[0].workdaysOfMonth", "must have at most 23 items"},
	{"no day of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: []}]}`, "spec.openPeriods[0].daysOfMonth", "should have at least 1 items"},
	{"no workday of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: []}]}`, "spec.openPeriods[0].workdaysOfMonth", "should have at least 1 items"},
	{"no day of the week", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: []}]}`, "spec.openPeriods[0].daysOfWeek", "should have at least 1 items"},
	{"no week of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Monday], weeksOfMonth: []}]}`, "spec.openPeriods[0].weeksOfMonth", "should have at least 1 items"},
	{"a day of the month in words", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [first]}]}`, "spec.openPeriods[0].daysOfMonth[0]", "must be of type integer"},
	{"workday 0", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: [0]}]}`, "spec.openPeriods[0].workdaysOfMonth[0]", causeWorkday},
	{"workday 24", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: [24]}]}`, "spec.openPeriods[0].workdaysOfMonth[0]", causeWorkday},
	{"workday -24", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: [-24]}]}`, "spec.openPeriods[0].workdaysOfMonth[0]", causeWorkday},
	{"a workday twice", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", workdaysOfMonth: [-1, -1]}]}`, "spec.openPeriods[0].workdaysOfMonth[1]", "Duplicate value"},
	{"every week", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", everyWeeks: 1, anchor: "2026-12-07"}]}`, "spec.openPeriods[0].everyWeeks", "should be greater than or equal to 2"},
	{"every 27 weeks", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", everyWeeks: 27, anchor: "2026-12-07"}]}`, "spec.openPeriods[0].everyWeeks", "should be less than or equal to 26"},
	{"an anchor that does not exist", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", everyWeeks: 2, anchor: "2026-02-30"}]}`, "spec.openPeriods[0].anchor", causeDate},
	{"an anchor of one digit", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", everyWeeks: 2, anchor: "2026-12-7"}]}`, "spec.openPeriods[0].anchor", causeDate},
	{"everyWeeks without an anchor", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", everyWeeks: 2}]}`, "spec.openPeriods[0]", causeAnchor},
	{"an anchor without everyWeeks", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", anchor: "2026-12-07"}]}`, "spec.openPeriods[0]", causeAnchor},
	{"days and workdays of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [1], workdaysOfMonth: [1]}]}`, "spec.openPeriods[0]", causeOneDays},
	{"days of the month and every 2 weeks", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfMonth: [1], everyWeeks: 2, anchor: "2026-12-07"}]}`, "spec.openPeriods[0]", causeOneDays},
	{"weeks of the month and every 2 weeks", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], weeksOfMonth: [First], everyWeeks: 2, anchor: "2026-12-07"}]}`, "spec.openPeriods[0]", causeOneDays},
	{"Fridays and days of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], daysOfMonth: [13]}]}`, "spec.openPeriods[0]", causeNoDays},
	{"Fridays and workdays of the month", `{default: closed, openPeriods: [{name: a, start: "22:00", end: "10:00", daysOfWeek: [Friday], workdaysOfMonth: [1]}]}`, "spec.openPeriods[0]", causeNoDays},
	{"days of the month without times", `{default: closed, openPeriods: [{name: a, daysOfMonth: [1]}]}`, "spec.openPeriods[0]", causeForm},
	{"cron on workdays of the month", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, workdaysOfMonth: [1]}]}`, "spec.openPeriods[0]", causeForm},
	{"cron every 2 weeks", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, everyWeeks: 2}]}`, "spec.openPeriods[0]", causeForm},
	{"cron with an anchor", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, anchor: "2026-12-07"}]}`, "spec.openPeriods[0]", causeForm},
	{"dated every 2 weeks", `{default: closed, openPeriods: [{name: a, from: "2026-12-01T00:00:00Z", until: "2026-12-02T00:00:00Z", everyWeeks: 2, anchor: "2026-12-07"}]}`, "spec.openPeriods[0]", causeForm},
	{"weeks of a close period without days", `{default: closed, closePeriods: [{name: a, start: "22:00", end: "10:00", weeksOfMonth: [First]}]}`, "spec.closePeriods[0]", causeWeeks},

	{"a duration of 0s", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 0s}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of -1h", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: -1h}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of 59s", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 59s}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of 367 days", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 8808h}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of 367 days in days", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 367d}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of 53 weeks", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 53w}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration of no days", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 0d}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration in days and hours", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1d12h}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration in parts of days", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1.5d}]}`, "spec.openPeriods[0].duration", causeDuration},
	{"a duration in days of five digits", `{default: closed, interval: 10000d}`, "spec.interval", causeInterval},
	{"a margin that is not a duration", `{default: closed, certificates: {safetyMargin: long}}`, "spec.certificates.safetyMargin", "safetyMargin must be a duration"},
	{"a margin of no days", `{default: closed, certificates: {safetyMargin: 0d}}`, "spec.certificates.safetyMargin", "safetyMargin must be a duration"},
	{"a margin of 367 days", `{default: closed, certificates: {safetyMargin: 367d}}`, "spec.certificates.safetyMargin", "safetyMargin must be a duration"},
	{"a window of no days", `{default: closed, window: 0d}`, "spec.window", causeWindow},
	{"a window of 367 days in days", `{default: closed, window: 367d}`, "spec.window", causeWindow},
	{"a margin of 30s", `{default: closed, certificates: {safetyMargin: 30s}}`, "spec.certificates.safetyMargin", "safetyMargin must be a duration"},
	{"a duration of a close period", `{default: closed, closePeriods: [{name: a, schedule: "0 0 * * *", duration: 0s}]}`, "spec.closePeriods[0].duration", causeDuration},
	{"a window of 0s", `{default: closed, window: 0s}`, "spec.window", causeWindow},
	{"a window of -1h", `{default: closed, window: -1h}`, "spec.window", causeWindow},
	{"a window of 367 days", `{default: closed, window: 8808h}`, "spec.window", causeWindow},
	{"a window that is not a duration", `{default: closed, window: long}`, "spec.window", causeWindow},
	{"an interval of 9.9s", `{default: closed, interval: 9.9s}`, "spec.interval", causeInterval},
	{"an interval of 34 characters", `{default: closed, interval: ` + strings.Repeat("1m", 17) + `}`, "spec.interval", "32"},
	{"an interval of 0s", `{default: closed, interval: 0s}`, "spec.interval", causeInterval},
	{"an interval of -1m", `{default: closed, interval: -1m}`, "spec.interval", causeInterval},

	{"open periods of a gate opened by default", `{default: opened, openPeriods: [{name: a, start: "08:00", end: "09:00"}]}`, "spec", "openPeriods need default: closed; with default: opened use closePeriods"},
	{"notAfter before notBefore", `{default: closed, notBefore: "2026-12-02T00:00:00Z", notAfter: "2026-12-01T00:00:00Z"}`, "spec", "notAfter must be later than notBefore"},
	{"notAfter equal to notBefore", `{default: closed, notBefore: "2026-12-02T00:00:00Z", notAfter: "2026-12-02T01:00:00+01:00"}`, "spec", "notAfter must be later than notBefore"},
	{"notBefore that is not a time", `{default: closed, notBefore: tomorrow}`, "spec.notBefore", "date-time"},
	{"notBefore in the year 0", `{default: closed, notBefore: "0000-12-31T00:00:00Z"}`, "spec.notBefore", causeSecond},
	{"notAfter in the year 0", `{default: closed, notAfter: "0000-12-31T00:00:00Z"}`, "spec.notAfter", causeSecond},
	{"until before from", `{default: closed, openPeriods: [{name: a, from: "2026-12-02T00:00:00Z", until: "2026-12-01T00:00:00Z"}]}`, "spec.openPeriods[0]", "until must be later than from"},
	{"until equal to from", `{default: closed, closePeriods: [{name: a, from: "2026-12-02T00:00:00Z", until: "2026-12-02T00:00:00Z"}]}`, "spec.closePeriods[0]", "until must be later than from"},

	{"30 February", `{default: closed, openPeriods: [{name: a, from: "2026-02-01T00:00:00Z", until: "2026-02-30T00:00:00Z"}]}`, "spec.openPeriods[0].until", causeDateTime},
	{"a date that does not exist", `{default: closed, openPeriods: [{name: a, from: "2026-02-01", until: "2026-02-30"}]}`, "spec.openPeriods[0].until", causeDateTime},
	{"the year 0 as from", `{default: closed, openPeriods: [{name: a, from: "0000-02-01", until: "2026-02-28"}]}`, "spec.openPeriods[0].from", causeDateTime},
	{"24:00 of a local time", `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00", until: "2026-12-24T24:00"}]}`, "spec.openPeriods[0].until", causeDateTime},
	{"a date before from", `{default: closed, openPeriods: [{name: a, from: "2026-12-24", until: "2026-12-23"}]}`, "spec.openPeriods[0]", causeLater},
	{"a local time equal to from", `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00", until: "2026-12-24T08:00"}]}`, "spec.openPeriods[0]", causeLater},
	{"a date and a local time", `{default: closed, openPeriods: [{name: a, from: "2026-12-24", until: "2026-12-24T08:00"}]}`, "spec.openPeriods[0]", causeSameForm},
	{"a local time and RFC 3339", `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00", until: "2026-12-24T09:00:00Z"}]}`, "spec.openPeriods[0]", causeSameForm},
	{"RFC 3339 and a local time", `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00:00Z", until: "2026-12-24T09:00"}]}`, "spec.openPeriods[0]", causeSameForm},
	{"a period without a form", `{default: closed, openPeriods: [{name: a}]}`, "spec.openPeriods[0]", causeForm},
	{"weekly and cron", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00", schedule: "0 0 * * *", duration: 1h}]}`, "spec.openPeriods[0]", causeForm},
	{"weekly and dated", `{default: closed, closePeriods: [{name: a, start: "08:00", end: "09:00", from: "2026-12-01T00:00:00Z", until: "2026-12-02T00:00:00Z"}]}`, "spec.closePeriods[0]", causeForm},
	{"cron and dated", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, from: "2026-12-01T00:00:00Z", until: "2026-12-02T00:00:00Z"}]}`, "spec.openPeriods[0]", causeForm},
	{"cron on days of the week", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *", duration: 1h, daysOfWeek: [Friday]}]}`, "spec.openPeriods[0]", causeForm},
	{"start and duration", `{default: closed, openPeriods: [{name: a, start: "08:00", duration: 1h}]}`, "spec.openPeriods[0]", causeForm},
	{"start without end", `{default: closed, openPeriods: [{name: a, start: "08:00"}]}`, "spec.openPeriods[0]", causeForm},
	{"end without start", `{default: closed, openPeriods: [{name: a, end: "08:00"}]}`, "spec.openPeriods[0]", causeForm},
	{"cron in weeks of the month", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * SUN", duration: 1h, weeksOfMonth: [First]}]}`, "spec.openPeriods[0]", causeForm},
	{"dated in weeks of the month", `{default: closed, openPeriods: [{name: a, from: "2026-12-01T00:00:00Z", until: "2026-12-02T00:00:00Z", weeksOfMonth: [First]}]}`, "spec.openPeriods[0]", causeForm},
	{"days and weeks alone", `{default: closed, openPeriods: [{name: a, daysOfWeek: [Monday], weeksOfMonth: [First]}]}`, "spec.openPeriods[0]", causeForm},
	{"days alone", `{default: closed, openPeriods: [{name: a, daysOfWeek: [Monday]}]}`, "spec.openPeriods[0]", causeForm},
	{"schedule without duration", `{default: closed, openPeriods: [{name: a, schedule: "0 0 * * *"}]}`, "spec.openPeriods[0]", causeForm},
	{"duration without schedule", `{default: closed, openPeriods: [{name: a, duration: 1h}]}`, "spec.openPeriods[0]", causeForm},
	{"from without until", `{default: closed, openPeriods: [{name: a, from: "2026-12-01T00:00:00Z"}]}`, "spec.openPeriods[0]", causeForm},
	{"until without from", `{default: closed, closePeriods: [{name: a, until: "2026-12-01T00:00:00Z"}]}`, "spec.closePeriods[0]", causeForm},

	{"calendar and weekly", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00", calendar: {configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0]", causeForm},
	{"calendar and days of the week", `{default: closed, closePeriods: [{name: a, daysOfWeek: [Friday], calendar: {configMapRef: {name: days, key: no.ics}}}]}`, "spec.closePeriods[0]", causeForm},
	{"calendar and from", `{default: closed, openPeriods: [{name: a, from: "2026-12-01T00:00:00Z", calendar: {configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0]", causeForm},
	{"calendar and duration", `{default: closed, openPeriods: [{name: a, duration: 1h, calendar: {configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0]", causeForm},
	{"a calendar without a ConfigMap", `{default: closed, openPeriods: [{name: a, calendar: {}}]}`, "spec.openPeriods[0].calendar.configMapRef", "Required value"},
	{"a calendar without a name", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {key: no.ics}}}]}`, "spec.openPeriods[0].calendar.configMapRef.name", "Required value"},
	{"a calendar without a key", `{default: closed, closePeriods: [{name: a, calendar: {configMapRef: {name: days}}}]}`, "spec.closePeriods[0].calendar.configMapRef.key", "Required value"},
	{"a calendar with an empty key", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: days, key: ""}}}]}`, "spec.openPeriods[0].calendar.configMapRef.key", "key must be the key of a ConfigMap"},
	{"a calendar with a long key", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: days, key: ` + strings.Repeat("a", 254) + `}}}]}`, "spec.openPeriods[0].calendar.configMapRef.key", "253"},
	{"a calendar with a long name", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: ` + strings.Repeat("a", 254) + `, key: a}}}]}`, "spec.openPeriods[0].calendar.configMapRef.name", "253"},
	{"a calendar with no categories", `{default: closed, openPeriods: [{name: a, calendar: {categories: [], configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.categories", "should have at least 1 items"},
	{"a calendar with an empty category", `{default: closed, openPeriods: [{name: a, calendar: {categories: [""], configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.categories[0]", "should be at least 1 chars long"},
	{"a calendar with a long category", `{default: closed, openPeriods: [{name: a, calendar: {categories: [` + strings.Repeat("ä", 129) + `], configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.categories[0]", "128"},
	{"a calendar with a category twice", `{default: closed, openPeriods: [{name: a, calendar: {categories: [a, a], configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.categories[1]", "Duplicate value"},
	{"a calendar with 33 categories", `{default: closed, openPeriods: [{name: a, calendar: {categories: [` + categories(33) + `], configMapRef: {name: days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.categories", "must have at most 32 items"},

	{"101 windows", `{default: closed, openPeriods: ` + periods(101) + `}`, "spec.openPeriods", "must have at most 100 items"},
	{"100 windows and a close period", `{default: closed, openPeriods: ` + periods(100) + `, closePeriods: [{name: x, start: "08:00", end: "09:00"}]}`, "spec", causeCount},
	{"101 close periods", `{default: closed, closePeriods: ` + periods(101) + `}`, "spec.closePeriods", "must have at most 100 items"},
	{"two windows of one name", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00"}, {name: b, start: "08:00", end: "09:00"}, {name: a, start: "10:00", end: "11:00"}]}`, "spec.openPeriods[2]", causeTwice},
	{"two close periods of one name", `{default: closed, closePeriods: [{name: a, start: "08:00", end: "09:00"}, {name: a, start: "10:00", end: "11:00"}]}`, "spec.closePeriods[1]", causeTwice},
	{"a window and a close period of one name", `{default: closed, openPeriods: [{name: a, start: "08:00", end: "09:00"}], closePeriods: [{name: a, start: "10:00", end: "11:00"}]}`, "spec", causeBoth},
	{"a period without a name", `{default: closed, openPeriods: [{start: "08:00", end: "09:00"}]}`, "spec.openPeriods[0].name", "Required value"},
	{"a period whose name has a blank", `{default: closed, openPeriods: [{name: "No Friday", start: "08:00", end: "09:00"}]}`, "spec.openPeriods[0].name", causeName},
	{"a period whose name is too long", `{default: closed, openPeriods: [{name: ` + strings.Repeat("a", 64) + `, start: "08:00", end: "09:00"}]}`, "spec.openPeriods[0].name", "63"},
	{"an unknown override", `{default: closed, closePeriods: [{name: a, start: "08:00", end: "09:00", override: Never}]}`, "spec.closePeriods[0].override", `supported values: "Allow", "Deny"`},

	{"a target without a kind", `{default: closed, targets: [{name: a}]}`, "spec.targets[0].kind", "Required value"},
	{"a target without a name", `{default: closed, targets: [{kind: Kustomization}]}`, "spec.targets[0].name", "Required value"},
	{"expressions of a target with a name", `{default: closed, targets: [{kind: Kustomization, name: a, matchExpressions: [{key: a, operator: Exists}]}]}`, "spec.targets[0]", "matchExpressions needs name: '*'"},
	{"a namespace and a selector of namespaces", `{default: closed, targets: [{kind: Kustomization, name: "*", namespace: "*", namespaceSelector: {matchLabels: {a: b}}}]}`, "spec.targets[0]", "a namespace or a namespaceSelector, not both"},
	{"an unknown mode", `{default: closed, mode: DryRun}`, "spec.mode", `supported values: "Enforce", "Lenient", "Audit"`},
	{"an announcement less than a minute before", `{default: closed, notifyBefore: [24h, 59s]}`, "spec.notifyBefore[1]", causeNotice},
	{"an announcement too long before", `{default: closed, notifyBefore: [721h]}`, "spec.notifyBefore[0]", causeNotice},
	{"an announcement 31 days before", `{default: closed, notifyBefore: [31d]}`, "spec.notifyBefore[0]", causeNotice},
	{"an announcement -1h before", `{default: closed, notifyBefore: [-1h]}`, "spec.notifyBefore[0]", causeNotice},
	{"a duration twice", `{default: closed, notifyBefore: [60m, 24h, 1h]}`, "spec.notifyBefore", "a duration can be listed only once"},
	{"a duration twice in different units", `{default: closed, notifyBefore: [168h, 1h, 1w]}`, "spec.notifyBefore", "a duration can be listed only once"},
	{"an announcement that is not a duration", `{default: closed, notifyBefore: [1h, 1y]}`, "spec.notifyBefore[1]", causeNotice},
	{"too many announcements", `{default: closed, notifyBefore: [1h, 2h, 3h, 4h, 5h, 6h]}`, "spec.notifyBefore", "must have at most 5 items"},
	{"an empty release", `{default: closed, release: {}}`, "spec.release", "release needs perMinute or waves"},
	{"a wave with no labels", `{default: closed, release: {waves: [{name: a, matchLabels: {}}]}}`, "spec.release.waves[0]", "a wave needs matchLabels or matchExpressions"},
	{"a wave with no expressions", `{default: closed, release: {waves: [{name: a, matchExpressions: []}]}}`, "spec.release.waves[0]", "a wave needs matchLabels or matchExpressions"},
	{"a release with no waves", `{default: closed, release: {waves: []}}`, "spec.release", "release needs perMinute or waves"},
	{"a pace of 60,001 a minute", `{default: closed, release: {perMinute: 60001}}`, "spec.release.perMinute", "less than or equal to 60000"},
	{"a negative pace", `{default: closed, release: {perMinute: -1}}`, "spec.release.perMinute", "greater than or equal to 1"},
	{"a wave without a name", `{default: closed, release: {waves: [{matchLabels: {a: b}}]}}`, "spec.release.waves[0].name", "Required value"},
	{"a wave with the reserved name of the last wave", `{default: closed, release: {waves: [{name: the rest, matchLabels: {a: b}}]}}`, "spec.release.waves[0].name", causeName},
	{"two waves of one name", `{default: closed, release: {waves: [{name: a, matchLabels: {a: b}}, {name: a, matchLabels: {a: c}}]}}`, "spec.release.waves[1]", causeTwice},
	{"a wave without a selector", `{default: closed, release: {waves: [{name: a}]}}`, "spec.release.waves[0]", "a wave needs matchLabels or matchExpressions"},
	{"a soak of eight days", `{default: closed, release: {waves: [{name: a, matchLabels: {a: b}, soak: 192h}]}}`, "spec.release.waves[0].soak", "soak must be a duration from 0s to 168h (7 days), such as 30m"},
	{"a soak of no unit", `{default: closed, release: {waves: [{name: a, matchLabels: {a: b}, soak: "5"}]}}`, "spec.release.waves[0].soak", "soak must be a duration"},
	{"17 waves", `{default: closed, release: {waves: ` + waves(17) + `}}`, "spec.release.waves", "16"},
	{"a wave with an unknown operator", `{default: closed, release: {waves: [{name: a, matchExpressions: [{key: a, operator: Around}]}]}}`, "spec.release.waves[0].matchExpressions[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
	{"labels of a target with a name", `{default: closed, targets: [{kind: Kustomization, name: a, matchLabels: {a: b}}]}`, "spec.targets[0]", "matchLabels needs name: '*'"},

	{"approvals without a rule", `{default: closed, approvals: {}}`, "spec.approvals", "approvals must have openRequests or exceptions: write openRequests: {required: 1}, or remove approvals"},
	{"a rule without a number", `{default: closed, approvals: {openRequests: {}}}`, "spec.approvals.openRequests.required", "Required value"},
	{"-1 approvals", `{default: closed, approvals: {openRequests: {required: -1}}}`, "spec.approvals.openRequests.required", "should be greater than or equal to 0"},
	{"11 approvals", `{default: closed, approvals: {exceptions: {required: 11}}}`, "spec.approvals.exceptions.required", "should be less than or equal to 10"},

	{"a watch without a kind", `{default: closed, dependsOn: [{name: a}]}`, "spec.dependsOn[0].kind", "Required value"},
	{"a watch without a name", `{default: closed, dependsOn: [{kind: Kustomization}]}`, "spec.dependsOn[0].name", "Required value"},
	{"17 watches", `{default: closed, dependsOn: ` + watches(17) + `}`, "spec.dependsOn", "must have at most 16 items"},
	{"an object that is watched twice", `{default: closed, dependsOn: [{kind: Kustomization, name: a}, {kind: Kustomization, name: b}, {kind: Kustomization, name: a, readyExpr: "true"}]}`, "spec.dependsOn", causeWatch},
	{"an object elsewhere that is watched twice", `{default: closed, dependsOn: [{kind: Kustomization, name: a, namespace: b}, {apiVersion: x/v1, kind: Kustomization, name: a, namespace: b}]}`, "spec.dependsOn", causeWatch},
	{"a readyExpr that is too long", `{default: closed, dependsOn: [{kind: Kustomization, name: a, readyExpr: "` + strings.Repeat(" ", 4093) + `true"}]}`, "spec.dependsOn[0].readyExpr", "4096"},
	{"a readyExpr that is not CEL", `{default: closed, dependsOn: [{kind: Kustomization, name: a, readyExpr: "dep.status ="}]}`, "spec.dependsOn[0].readyExpr", ""},
	{"a readyExpr that is not a bool", `{default: closed, dependsOn: [{kind: Kustomization, name: a, readyExpr: "dep.status.phase"}]}`, "spec.dependsOn[0].readyExpr", ""},

	{"a cron that never fires, which only the controller detects", `{default: closed, openPeriods: [{name: a, schedule: "0 0 31 4-6/2 *", duration: 1h}]}`, "spec.openPeriods[0].schedule", ""},
}

// goodSpecs must be accepted.
var goodSpecs = map[string]string{
	"calendars":      `{default: closed, openPeriods: [{name: a, timeZone: Europe/Oslo, calendar: {configMapRef: {name: days, key: no.ics}, categories: [` + categories(32) + `]}}], closePeriods: [{name: b, override: Deny, calendar: {configMapRef: {name: days, key: no.ics}, categories: [` + strings.Repeat("ä", 128) + `]}}]}`,
	"only a default": `{default: opened}`,
	"the example of DESIGN.md": `
interval: 1m
default: closed
window: 1h
timeZone: Europe/Oslo
notBefore: "2026-12-01T00:00:00Z"
notAfter: "2027-06-01T00:00:00Z"
openPeriods:
- {name: nights, daysOfWeek: [Monday, Tuesday, Wednesday, Thursday, Friday], start: "22:00", end: "05:00"}
closePeriods:
- {name: no-deploy-friday, schedule: "0 0 * * FRI", duration: 24h, timeZone: UTC}
- {name: year-end, from: "2026-12-19T00:00:00Z", until: "2027-01-04T00:00:00Z", override: Deny}
targets:
- {kind: Kustomization, name: apps}
- {kind: HelmRelease, name: "*", matchLabels: {tier: critical}}
- {apiVersion: cert-manager.io/v1, kind: Certificate, name: "*", namespace: shop}
mode: Lenient
suspend: false`,
	"100 periods":                          `{default: closed, openPeriods: ` + periods(100) + `}`,
	"all weeks of the month":               `{default: closed, openPeriods: [{name: a, start: "00:00", end: "24:00", daysOfWeek: [Sunday, Monday], weeksOfMonth: [First, Second, Third, Fourth, Last]}]}`,
	"days of the month":                    `{default: closed, openPeriods: [{name: a, start: "22:00", end: "05:00", daysOfMonth: [1, 15, -1, 31, -31]}]}`,
	"workdays of the month":                `{default: closed, openPeriods: [{name: a, start: "22:00", end: "05:00", workdaysOfMonth: [-1, 23, -23]}]}`,
	"the fifth Friday":                     `{default: closed, openPeriods: [{name: a, start: "22:00", end: "05:00", daysOfWeek: [Friday], weeksOfMonth: [Fifth]}]}`,
	"every other week":                     `{default: closed, openPeriods: [{name: a, start: "22:00", end: "05:00", everyWeeks: 2, anchor: "2026-12-07"}]}`,
	"every 26th Tuesday":                   `{default: closed, openPeriods: [{name: a, start: "22:00", end: "05:00", daysOfWeek: [Tuesday], everyWeeks: 26, anchor: "1999-12-31"}]}`,
	"a close period on the last Friday":    `{default: opened, closePeriods: [{name: a, start: "00:00", end: "24:00", daysOfWeek: [Friday], weeksOfMonth: [Last], override: Deny}]}`,
	"24:00 as end":                         `{default: closed, openPeriods: [{name: a, start: "00:00", end: "24:00"}]}`,
	"start equal to end":                   `{default: closed, openPeriods: [{name: a, start: "08:00", end: "08:00"}]}`,
	"bounds of a duration":                 `{default: closed, openPeriods: [{name: a, schedule: "* * * * *", duration: 1m}, {name: b, schedule: "0 0 29 2 *", duration: 8784h}]}`,
	"bounds of a window":                   `{default: closed, window: 8784h, interval: 10s}`,
	"the least durations":                  `{default: closed, interval: 10s, window: 1s, notifyBefore: [1m], certificates: {safetyMargin: 1m}}`,
	"the least days":                       `{default: closed, interval: 1d, window: 1d, notifyBefore: [1d], certificates: {safetyMargin: 1d}, closePeriods: [{name: a, schedule: "0 0 1 * *", duration: 1d}]}`,
	"the most days":                        `{default: closed, window: 366d, certificates: {safetyMargin: 366d}, closePeriods: [{name: a, schedule: "0 0 1 * *", duration: 366d}]}`,
	"the longest margin":                   `{default: closed, certificates: {safetyMargin: 8784h}}`,
	"notBefore alone":                      `{default: closed, notBefore: "2026-12-02T00:00:00Z"}`,
	"notAfter alone":                       `{default: closed, notAfter: "2026-12-02T00:00:00Z"}`,
	"a duration of several units":          `{default: closed, window: 1h30m}`,
	"durations in days and weeks":          `{default: closed, interval: 1d, window: 366d, notifyBefore: [30d, 4w], certificates: {safetyMargin: 52w}, closePeriods: [{name: a, schedule: "0 0 1 * *", duration: 2w}], release: {waves: [{name: a, matchLabels: {a: b}, soak: 7d}]}}`,
	"zones of all kinds":                   `{default: closed, timeZone: UTC, openPeriods: [{name: a, start: "08:00", end: "09:00", timeZone: America/Argentina/Buenos_Aires}, {name: b, start: "08:00", end: "09:00", timeZone: Etc/GMT+5}]}`,
	"close periods with default opened":    `{default: opened, closePeriods: [{name: a, start: "08:00", end: "09:00", override: Deny}]}`,
	"empty lists":                          `{default: opened, openPeriods: [], closePeriods: [], targets: []}`,
	"one date":                             `{default: closed, openPeriods: [{name: a, from: "2026-12-24", until: "2026-12-24", timeZone: Europe/Oslo}]}`,
	"dates":                                `{default: closed, openPeriods: [{name: a, from: "2026-12-24", until: "2027-01-02", timeZone: Europe/Oslo}]}`,
	"local times":                          `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00", until: "2026-12-24T08:01", timeZone: Europe/Oslo}]}`,
	"fractions of a second":                `{default: closed, openPeriods: [{name: a, from: "2026-12-24T08:00:00Z", until: "2026-12-24T10:00:00.123456789+01:30", timeZone: Europe/Oslo}]}`,
	"until in another zone than from":      `{default: closed, openPeriods: [{name: a, from: "2026-12-02T00:00:00+01:00", until: "2026-12-01T23:30:00Z"}]}`,
	"all targets of a kind by expressions": `{default: closed, targets: [{kind: Kustomization, name: "*", matchExpressions: [{key: a, operator: NotIn, values: [b]}]}]}`,
	"all namespaces":                       `{default: closed, targets: [{kind: Kustomization, name: "*", namespace: "*"}]}`,
	"namespaces by their labels":           `{default: closed, targets: [{kind: Kustomization, name: apps, namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: tier, operator: Exists}]}}]}`,
	"announcements":                        `{default: closed, notifyBefore: [720h, 24h, 90m, 1h, 1m]}`,
	"no announcements":                     `{default: closed, notifyBefore: []}`,
	"all targets of a kind by labels":      `{default: closed, targets: [{kind: Kustomization, name: "*", matchLabels: {a: b}}]}`,
	"approvals of exceptions only":         `{default: closed, approvals: {openRequests: {required: 0}, exceptions: {required: 2}}}`,
	"no approvals":                         `{default: closed, approvals: {openRequests: {required: 0}}}`,
	"10 approvals":                         `{default: opened, approvals: {exceptions: {required: 10}}}`,
	"16 waves":                             `{default: closed, release: {waves: ` + waves(16) + `}}`,
	"waves with a pace, without a soak":    `{default: closed, release: {perMinute: 60000, waves: [{name: a, matchExpressions: [{key: a, operator: Exists}], soak: 0s}, {name: b, matchLabels: {b: c}, soak: 168h}]}}`,
	"16 watches":                           `{default: closed, dependsOn: ` + watches(16) + `}`,
	"watches with the same name":           `{default: opened, dependsOn: [{kind: Kustomization, name: a}, {kind: HelmRelease, name: a}, {kind: Kustomization, name: a, namespace: b}]}`,
	"a watch with an expression":           `{default: opened, dependsOn: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: a, readyExpr: "dep.metadata.generation == dep.status.observedGeneration"}]}`,
	"an unsupported kind":                  `{default: closed, targets: [{kind: Deployment, name: a}]}`,
}
