/*
Package ical reads iCalendar texts (RFC 5545) and returns the times of
their events. It has no client and no clock.

No event is skipped silently. An event is read, it is listed as one that does not count, or
the whole text is refused with an [Error] that contains the line.

These events do not count: those with STATUS:CANCELLED or TRANSP:TRANSPARENT, those
without one of the selected categories, and older versions of an event if the text has a
later one. Errors in the times of an event that does not count are ignored. VTODO and VJOURNAL are
not events. A VFREEBUSY is an event that lasts for its busy times. METHOD, alarms and unknown
properties are ignored.

Where RFC 5545 leaves a choice:

  - A TZID is the name of an IANA zone, otherwise of a Windows zone, otherwise of a VTIMEZONE of
    the same VCALENDAR, otherwise of an IANA zone after a prefix. Dates and floating times are in
    the zone of the reader. In an event whose DTSTART has a zone, however, floating times are in
    that zone. Wall-clock times are resolved as in package schedule.
  - DTSTART is always an occurrence and counts towards COUNT, even if the rule does not match it.
  - In DURATION, weeks and days are calendar days, which may have 23 or 25 hours.
  - An event without a duration is an error, because it would close nothing.
  - An EXDATE that is a date removes the occurrences that start on that day in the time zone of
    the event. An EXDATE without an occurrence causes a warning.
  - In a series of dates, an EXDATE, RECURRENCE-ID or UNTIL with a time means its date
    in its own time zone.
  - An event with RECURRENCE-ID is one occurrence and counts at its own time, even if the
    series has no such occurrence. Its RRULE, RDATE and EXDATE are ignored, with a warning.
  - An UNTIL that is a date includes that day. An UNTIL without a zone is in the time zone of the
    event.
  - Of events with the same UID and RECURRENCE-ID, the one with the highest SEQUENCE counts, then
    the one with the latest DTSTAMP, as in RFC 5546. If both are equal, the events must be equal, too.
    If events without RECURRENCE-ID have the same SEQUENCE and start at different times, they may be
    different events of a program that gives all of them the same UID. In that case, all of them
    count in close periods, and only the one with the latest DTSTAMP counts in open periods.
  - Categories are compared without regard to case.

One rule differs from RFC 5545. There, DTEND gives all occurrences the same elapsed time, so a
freeze from 22:00 to 06:00 would end at 05:00 in the night in which clocks are set back. Calendar
programs show 06:00, and other periods of a Gate end at 06:00, too. Therefore, an occurrence ends at
the time of day of DTEND if DTEND is in the zone of DTSTART.

These are errors: rules by the hour, minute or second; RSCALE; EXRULE; two RRULEs; RANGE.

The package parses the text and expands the rules itself. Parser libraries do not return the
line of an error. rrule-go searches until the year 9999 to find that a rule has no occurrence,
which takes a third of a second for each such rule.
*/
package ical
