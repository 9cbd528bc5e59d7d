package v1alpha1

import "time"

// DayOfWeek is the English name of a day of the week.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type DayOfWeek string

// WeekOfMonth selects an occurrence of a weekday in a month. First is on one
// of the days 1 to 7, Second on 8 to 14, Third on 15 to 21, Fourth on 22 to
// 28, Fifth on 29 to 31, and Last on one of the last seven days.
// +kubebuilder:validation:Enum=First;Second;Third;Fourth;Fifth;Last
type WeekOfMonth string

// DayOfMonth is a day of the month from 1 to 31, or from -1 to -31 counted
// from the end: -1 is the last day, -2 the day before it.
// +kubebuilder:validation:XValidation:rule="self != 0 && self >= -31 && self <= 31",message="must be a day of the month from 1 to 31, or from -1 (the last day) to -31"
type DayOfMonth int32

// WorkdayOfMonth is a workday (Monday to Friday) of the month from 1 to 23, or
// from -1 to -23 counted from the end: -1 is the last workday.
// +kubebuilder:validation:XValidation:rule="self != 0 && self >= -23 && self <= 23",message="must be a workday of the month from 1 to 23, or from -1 (the last workday) to -23"
type WorkdayOfMonth int32

// Date is a calendar date, such as 2026-12-07.
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:XValidation:rule="!format.date().validate(self).hasValue()",message="must be a date such as 2026-12-07"
type Date string

// DateTime is a date such as 2026-12-24, a local time such as
// 2026-12-24T08:00, or a time in RFC 3339 such as 2026-12-24T08:00:00Z.
// +kubebuilder:validation:MaxLength=35
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9-]{10}(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?)?$') && !self.startsWith('0000') && !format.date().validate(self.substring(0, 10)).hasValue()",message="must be a date such as 2026-12-24, a local time such as 2026-12-24T08:00, or a time in RFC 3339 such as 2026-12-24T08:00:00Z"
type DateTime string

// NewDateTime returns a pointer to t in RFC 3339, without fractions of a
// second, for optional fields.
func NewDateTime(t time.Time) *DateTime {
	d := DateTime(t.UTC().Format(time.RFC3339))
	return &d
}

// Time returns the time of a DateTime in RFC 3339. It returns the zero time
// for the other forms.
func (d DateTime) Time() time.Time {
	t, err := time.Parse(time.RFC3339, string(d))
	if err != nil {
		return time.Time{}
	}
	return t
}

// +structType=atomic

// Period has exactly one of four forms: weekly (start and end, optionally on
// some days), cron (schedule and duration), dated (from and until) or
// calendar. It includes its start, but not its end.
//
// If a local time occurs twice, because clocks are set back, it means the
// first occurrence. If it does not exist, because clocks are set forward, it
// is read with the UTC offset before the change (RFC 5545, section 3.3.5). A
// cron schedule whose hour field begins with * starts the period in both
// occurrences of a repeated hour.
// +kubebuilder:validation:XValidation:rule="[has(self.start) || has(self.end) || has(self.daysOfWeek) || has(self.weeksOfMonth) || has(self.daysOfMonth) || has(self.workdaysOfMonth) || has(self.everyWeeks) || has(self.anchor), has(self.schedule) || has(self.duration), has(self.from) || has(self.until), has(self.calendar)].exists_one(form, form) && has(self.start) == has(self.end) && has(self.schedule) == has(self.duration) && has(self.from) == has(self.until) && (has(self.start) || has(self.schedule) || has(self.from) || has(self.calendar))",message="a period must be exactly one of: weekly (start and end, optionally on some days), cron (schedule and duration), dated (from and until), calendar"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || self.from.size() == self.until.size() || self.from.size() > 16 && self.until.size() > 16",message="from and until must have the same form: both a date such as 2026-12-24, a local time such as 2026-12-24T08:00, or a time in RFC 3339"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || (self.from.size() > 16 && self.until.size() > 16 ? timestamp(self.from) < timestamp(self.until) || [self.from, self.until].exists(t, format.date().validate(t.substring(0, 10)).hasValue()) : self.from.size() != self.until.size() || self.from < self.until || self.from.size() == 10 && self.from == self.until)",message="until must be later than from, or the same date"
// +kubebuilder:validation:XValidation:rule="!has(self.weeksOfMonth) || !has(self.start) || !has(self.end) || has(self.daysOfWeek)",message="weeksOfMonth needs daysOfWeek: daysOfWeek [Sunday] and weeksOfMonth [First] mean the first Sunday of a month"
// +kubebuilder:validation:XValidation:rule="[has(self.weeksOfMonth), has(self.daysOfMonth), has(self.workdaysOfMonth), has(self.everyWeeks)].filter(form, form).size() <= 1",message="only one of weeksOfMonth, daysOfMonth, workdaysOfMonth and everyWeeks is allowed: write a period for each"
// +kubebuilder:validation:XValidation:rule="!has(self.daysOfWeek) || !has(self.daysOfMonth) && !has(self.workdaysOfMonth)",message="daysOfWeek is not allowed with daysOfMonth or workdaysOfMonth: remove daysOfWeek, or use weeksOfMonth"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || has(self.everyWeeks) == has(self.anchor)",message="everyWeeks and anchor must be set together: everyWeeks 2 and anchor 2026-12-07 mean every second week, such as the one from 7 December 2026"
type Period struct {
	// name is the name of the period in conditions, events and previews, such as
	// nights. It must be unique among the open and close periods of the Gate or
	// GateException. Lower case letters, digits and dashes, at most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower case letters, digits and dashes, and begin and end with a letter or digit"
	// +required
	Name string `json:"name"`

	// daysOfWeek lists the days on which a weekly period starts, such as [Monday,
	// Friday]. Defaults to all days.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +optional
	DaysOfWeek []DayOfWeek `json:"daysOfWeek,omitempty"`

	// weeksOfMonth limits daysOfWeek to some occurrences in a month. For example,
	// [First] with daysOfWeek: [Sunday] means the first Sunday. Last can be the
	// Fourth or the Fifth. Some months have no Fifth. The month is that of the day
	// on which the period starts, in its time zone. Requires daysOfWeek. Defaults
	// to all occurrences.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=set
	// +optional
	WeeksOfMonth []WeekOfMonth `json:"weeksOfMonth,omitempty"`

	// daysOfMonth lists the days of the month on which a weekly period starts,
	// such as [1, 15, -1]. From 1 to 31, or from -1 (the last day) to -31. Days
	// that a month does not have are skipped. Cannot be combined with daysOfWeek.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=31
	// +listType=set
	// +optional
	DaysOfMonth []DayOfMonth `json:"daysOfMonth,omitempty"`

	// workdaysOfMonth lists the workdays (Monday to Friday) of the month on which
	// a weekly period starts, such as [-1]. From 1 to 23, or from -1 (the last
	// workday) to -23. Holidays count as workdays. Workdays that a month does not
	// have are skipped. Cannot be combined with daysOfWeek.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=23
	// +listType=set
	// +optional
	WorkdaysOfMonth []WorkdayOfMonth `json:"workdaysOfMonth,omitempty"`

	// everyWeeks is the number of weeks from one week in which a weekly period
	// starts to the next, from 2 to 26. For example, 2 means every other week.
	// Weeks begin on Monday. Requires anchor. If omitted, the period starts every
	// week.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=26
	// +optional
	EveryWeeks *int32 `json:"everyWeeks,omitempty"`

	// anchor is any date in a week in which the period starts, such as 2026-12-07.
	// Weeks are counted from it in both directions. Requires everyWeeks.
	// +optional
	Anchor *Date `json:"anchor,omitempty"`

	// start is the time of day when a weekly period starts, as HH:MM from 00:00 to
	// 23:59, such as "22:00".
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day from 00:00 to 23:59"
	// +optional
	Start *string `json:"start,omitempty"`

	// end is the time of day when a weekly period ends, as HH:MM from 00:00 to
	// 24:00, such as "05:00". If it is not later than start, the period ends on
	// the next day.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="end must be a time of day from 00:00 to 24:00"
	// +optional
	End *string `json:"end,omitempty"`

	// schedule is a cron expression with five fields (minute, hour, day of month,
	// month, day of week), such as 0 22 * * FRI. A cron period starts at each of
	// its times. In an hour that occurs twice, because clocks are set back, it
	// starts both times if the hour field begins with * or ?, and otherwise only
	// the first time. Time zones (TZ=, CRON_TZ=) and descriptors (@every, @daily)
	// are not allowed.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('=')",message="schedule must not contain a time zone (TZ= or CRON_TZ=): use the field timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="schedule must have five fields: descriptors such as @every or @daily are not supported"
	// +kubebuilder:validation:XValidation:rule="self.contains('=') || self.contains('@') || self.upperAscii().matches('^\\\\s*([*?]|[0-5]?[0-9](-[0-5]?[0-9])?)(/([1-9]|[1-5][0-9]|60))?(,([*?]|[0-5]?[0-9](-[0-5]?[0-9])?)(/([1-9]|[1-5][0-9]|60))?)*\\\\s+([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/(1?[1-9]|10|2[0-4]))?(,([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/(1?[1-9]|10|2[0-4]))?)*\\\\s+([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/([1-9]|[12][0-9]|3[01]))?(,([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/([1-9]|[12][0-9]|3[01]))?)*\\\\s+([*?]|(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)(-(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC))?)(/([1-9]|1[0-2]))?(,([*?]|(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)(-(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC))?)(/([1-9]|1[0-2]))?)*\\\\s+([*?]|([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(-([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT))?)(/[1-7])?(,([*?]|([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(-([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT))?)(/[1-7])?)*\\\\s*$')",message="schedule must have five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 (Sunday is 0 or 7) or SUN-SAT; each is *, a value, a range or a list, with a step of at most its number of values, such as 0 22 * * MON-FRI"
	// +kubebuilder:validation:XValidation:rule="!self.upperAscii().matches('^\\\\s*\\\\S+\\\\s+\\\\S+\\\\s+(3[01]([-,/]3[01])*\\\\s+(0?2|FEB)|31([-,/]31)*\\\\s+(0?[2469]|11|FEB|APR|JUN|SEP|NOV)(,(0?[2469]|11|FEB|APR|JUN|SEP|NOV))*)\\\\s+[*?]\\\\s*$')",message="schedule never occurs: February has no days 30 and 31, and April, June, September and November have no day 31; for the last day of a month use daysOfMonth: [-1] with start and end"
	// +optional
	Schedule *string `json:"schedule,omitempty"`

	// duration is the length of a cron period, in elapsed time. From 1m to 8784h
	// (366 days), such as 8h. It may be longer than the time between two starts.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="duration must be from 1m to 8784h (366 days), such as 24h"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// from is the start of a dated period. A date such as 2026-12-24 or a local
	// time such as 2026-12-24T08:00, both in the time zone of the period, or a
	// time in RFC 3339 such as 2026-12-24T08:00:00Z.
	// +optional
	From *DateTime `json:"from,omitempty"`

	// until is the end of a dated period, in the same form as from. It must be
	// later than from, or the same date. A date includes the whole day.
	// +optional
	Until *DateTime `json:"until,omitempty"`

	// calendar refers to an iCalendar file, such as a calendar of holidays. The
	// period lasts during its events. While the file is missing or cannot be read,
	// a close period keeps the Gate closed all the time, and an open period does
	// not open it. Not allowed in a GateException.
	// +optional
	Calendar *CalendarReference `json:"calendar,omitempty"`

	// timeZone is the time zone of start, end, schedule, dates and local times,
	// and of calendar events without a time zone. It is a name in the IANA
	// database, such as Europe/Oslo. Defaults to spec.timeZone of the Gate or
	// GateException.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// CalendarReference refers to an iCalendar file and selects its events.
type CalendarReference struct {
	// configMapRef refers to the iCalendar file.
	// +required
	ConfigMapRef ConfigMapKeyReference `json:"configMapRef"`

	// categories selects the events that have at least one of these categories,
	// such as [freeze], ignoring case. At most 32, each with at most 128
	// characters. If omitted, all events are selected.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	Categories []string `json:"categories,omitempty"`
}

// ConfigMapKeyReference refers to a key of a ConfigMap in the namespace of the
// Gate.
type ConfigMapKeyReference struct {
	// name is the name of the ConfigMap.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of a ConfigMap, such as holidays: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`

	// key is the key in data or binaryData, such as holidays.ics.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="key must be the key of a ConfigMap, such as holidays.ics: letters, digits, dashes, underscores and dots"
	// +required
	Key string `json:"key"`
}

// TimeZone is the name of a time zone in the IANA database, such as
// Europe/Oslo.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="!self.contains(':') && self.lowerAscii() != 'local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="unknown time zone, use a name of the IANA database such as Europe/Oslo or UTC"
type TimeZone string

// Override determines whether requests and exceptions can open a Gate in a
// close period.
// +kubebuilder:validation:Enum=Allow;Deny
type Override string

const (
	// OverrideAllow means that requests and exceptions can open the Gate in the
	// close period.
	OverrideAllow Override = "Allow"
	// OverrideDeny means that nothing can open the Gate in the close period. This
	// is a hard freeze.
	OverrideDeny Override = "Deny"
)

// +structType=atomic

// ClosePeriod is a period in which a Gate is closed. It has exactly one of
// four forms: weekly (start and end, optionally on some days), cron (schedule
// and duration), dated (from and until) or calendar.
type ClosePeriod struct {
	Period `json:",inline"`

	// override determines whether open requests, also in emergencies, and
	// exceptions can open the Gate in this period, and whether passes are granted:
	// Allow, or Deny for a hard freeze. Defaults to Allow.
	// +optional
	Override Override `json:"override,omitempty"`
}
