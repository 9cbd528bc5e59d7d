/*
Package schedule computes from a compiled [Plan] whether a gate is opened or
closed at an instant, why, and when that changes. It has no clock, no client and
no configuration.

Every period is a set of half-open intervals [start, end) on the time line.
[Plan.Decide], [Plan.Intervals] and all other results come from the same search,
so that status, preview and metrics can never disagree.

Wall-clock times follow RFC 5545 section 3.3.5: a time that occurs twice means
its first occurrence, and a time that does not exist is read with the UTC offset
in use before the gap. The standard library guarantees neither, see [time.Date].
A cron expression whose hour field begins with a star ticks in both occurrences,
as in cron daemons.

Instants have a resolution of one second: fractions of a second are cut off.
*/
package schedule
