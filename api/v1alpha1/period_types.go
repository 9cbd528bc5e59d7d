package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DayOfWeek is the English name of a day of the week.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type DayOfWeek string

// WeekOfMonth says which of the days of a name in a month is meant. First is
// one of the days 1 to 7, Second 8 to 14, Third 15 to 21, Fourth 22 to 28,
// and Last one of the last seven days.
// +kubebuilder:validation:Enum=First;Second;Third;Fourth;Last
type WeekOfMonth string

// +structType=atomic

// Period is a time in exactly one of four forms: weekly (start, end,
// optionally daysOfWeek and weeksOfMonth), cron (schedule, duration), dated
// (from, until) or calendar. It includes its beginning, but not its end.
//
// A wall-clock time that occurs twice, when clocks are set back, means its
// first occurrence. One that does not exist, when they are set forward, is
// read with the UTC offset in use before (RFC 5545, section 3.3.5). A cron
// whose hour field begins with * ticks in both occurrences of a repeated hour.
// +kubebuilder:validation:XValidation:rule="[has(self.start) || has(self.end) || has(self.daysOfWeek) || has(self.weeksOfMonth), has(self.schedule) || has(self.duration), has(self.from) || has(self.until), has(self.calendar)].exists_one(form, form) && has(self.start) == has(self.end) && has(self.schedule) == has(self.duration) && has(self.from) == has(self.until) && (has(self.start) || has(self.schedule) || has(self.from) || has(self.calendar))",message="a period must be exactly one of: weekly (start and end, optionally daysOfWeek and weeksOfMonth), cron (schedule and duration), dated (from and until), calendar"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || self.from < self.until",message="until must be later than from"
// +kubebuilder:validation:XValidation:rule="!has(self.weeksOfMonth) || !has(self.start) || !has(self.end) || has(self.daysOfWeek)",message="weeksOfMonth needs daysOfWeek: daysOfWeek [Sunday] and weeksOfMonth [First] mean the first Sunday of a month"
type Period struct {
	// Name of the period, such as nights: lower case letters, digits and dashes,
	// at most 63 characters. No other open or close period of the same Gate has
	// it, and no other window of the same GateException. Conditions, events and
	// previews name the period that decides.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower case letters, digits and dashes, and begin and end with a letter or digit"
	// +required
	Name string `json:"name"`

	// DaysOfWeek are the days on which a weekly period starts, such as [Monday,
	// Friday]. Defaults to all seven.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +optional
	DaysOfWeek []DayOfWeek `json:"daysOfWeek,omitempty"`

	// WeeksOfMonth say which daysOfWeek of a month count: [First] with [Sunday] is
	// the first Sunday, one of the days 1 to 7. Last is one of the last seven
	// days, which may be the Fourth. The month is that of the day on which the
	// period starts, in its time zone. Needs daysOfWeek. Defaults to all five.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=set
	// +optional
	WeeksOfMonth []WeekOfMonth `json:"weeksOfMonth,omitempty"`

	// Start of a weekly period: a time of day as HH:MM from 00:00 to 23:59, such
	// as "22:00".
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day from 00:00 to 23:59"
	// +optional
	Start *string `json:"start,omitempty"`

	// End of a weekly period: a time of day as HH:MM from 00:00 to 24:00, such as
	// "05:00". If it is not later than start, the period ends on the next day.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="end must be a time of day from 00:00 to 24:00"
	// +optional
	End *string `json:"end,omitempty"`

	// Schedule says when a cron period starts: a cron expression of five fields
	// (minute, hour, day of month, month, day of week), such as 0 22 * * FRI. In
	// an hour that occurs twice, because clocks are set back, it ticks both times
	// if the hour field begins with * or ?, otherwise only the first time. Time
	// zones in it (TZ=, CRON_TZ=) and descriptors (@every, @daily) are refused.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Schedule *string `json:"schedule,omitempty"`

	// Duration of a cron period after each tick, as elapsed time, from 1m to 8784h
	// (366 days), such as 8h. It may be longer than the time between two ticks.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="duration must be from 1m to 8784h (366 days), such as 24h"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// From is when a dated period starts: a time in RFC 3339, such as
	// 2026-12-19T00:00:00Z.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	From *metav1.Time `json:"from,omitempty"`

	// Until is when a dated period ends: a time in RFC 3339, later than from.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Calendar is an iCalendar file, such as one of holidays. Its events are the
	// period. Not in the windows of a GateException. While the file is missing or
	// cannot be read, a close period closes all the time, and an open period
	// never opens.
	// +optional
	Calendar *CalendarReference `json:"calendar,omitempty"`

	// TimeZone is the time zone of start, end and schedule, and of events of a
	// calendar that name none: a name of the IANA database, such as Europe/Oslo.
	// Defaults to spec.timeZone of the Gate.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// CalendarReference names an iCalendar file and says which of its events
// count.
type CalendarReference struct {
	// ConfigMapRef is the file.
	// +required
	ConfigMapRef ConfigMapKeyReference `json:"configMapRef"`

	// Categories limits the events to those that have one of these, such as
	// [freeze]. Their case does not matter. At most 32, each of at most 128
	// characters. If omitted, all events count.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	Categories []string `json:"categories,omitempty"`
}

// ConfigMapKeyReference names an entry of a ConfigMap in the namespace of the
// Gate.
type ConfigMapKeyReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Key of the entry in data or binaryData, such as holidays.ics.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// TimeZone is the name of a zone in the IANA database, such as Europe/Oslo.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="!self.contains(':') && self.lowerAscii() != 'local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="unknown time zone, use a name of the IANA database such as Europe/Oslo or UTC"
type TimeZone string

// Override says whether requests and exceptions open a Gate in a close period.
// +kubebuilder:validation:Enum=Allow;Deny
type Override string

const (
	// OverrideAllow lets requests and exceptions open the Gate in the close
	// period.
	OverrideAllow Override = "Allow"
	// OverrideDeny makes the close period a hard freeze: nothing opens the Gate.
	OverrideDeny Override = "Deny"
)

// +structType=atomic

// ClosePeriod is a period in which a Gate is closed. It has exactly one of
// four forms: weekly (start, end, optionally daysOfWeek and weeksOfMonth),
// cron (schedule, duration), dated (from, until) or calendar.
type ClosePeriod struct {
	Period `json:",inline"`

	// Override says whether open requests, emergencies, exceptions and passes open
	// the Gate in this period: Allow, or Deny for a hard freeze. Defaults to
	// Allow.
	// +optional
	Override Override `json:"override,omitempty"`
}
