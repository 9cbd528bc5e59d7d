package ical_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// FuzzRead checks that no text causes a panic or takes long, that the form of line ends and the range that is read make no difference, and
// that each error has its line. Further seeds are in testdata/fuzz.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"google.ics", "outlook.ics", "apple.ics"} {
		f.Add(file(f, name))
	}
	for _, tt := range rfcExamples {
		f.Add(calendar(event("DTSTART;TZID=America/New_York:"+tt.start+"T090000", "DURATION:PT1H", "RRULE:"+tt.rule)))
	}
	for _, all := range vtimezones {
		for _, vtimezone := range all {
			f.Add(calendar(vtimezone, event(`DTSTART;TZID="(UTC) Here, there":20260601T100000`, "DURATION:P1DT1H")))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		o := options()
		c, err := ical.Read(text, o)
		if took := time.Since(start); took > 20*time.Second {
			t.Fatalf("it took %s", took)
		}
		other, otherErr := ical.Read(strings.ReplaceAll(text, "\r\n", "\n"), o)
		if err != nil {
			checkError(t, text, err, otherErr)
			return
		}
		if otherErr != nil || !slices.Equal(c.Occurrences, other.Occurrences) || !slices.Equal(c.NotCounted, other.NotCounted) {
			t.Fatalf("with other line ends it is %+v, %v instead of %+v", other, otherErr, c)
		}
		checkOccurrences(t, c, o)
		// Reading the interval in two parts must not change the result.
		middle := utc("2026-10-25T00:30:00Z")
		var parts []ical.Occurrence
		for _, part := range []ical.Options{{Zone: o.Zone, From: o.From, Until: middle}, {Zone: o.Zone, From: middle, Until: o.Until}} {
			c := mustRead(t, text, part)
			parts = append(parts, slices.DeleteFunc(c.Occurrences, func(o ical.Occurrence) bool {
				return part.From.Equal(middle) && o.Start.Before(middle)
			})...)
		}
		if !slices.Equal(parts, c.Occurrences) {
			t.Fatalf("in two parts it is\n%+v, in one\n%+v", parts, c.Occurrences)
		}
	})
}

func checkError(t *testing.T, text string, err, other error) {
	t.Helper()
	if len(text) > ical.MaxText {
		return
	}
	at := new(ical.Error)
	switch {
	case !errors.As(err, &at) || at.Line < 1 || at.Line > strings.Count(text, "\n")+1:
		t.Fatalf("%v is nowhere", err)
	case other == nil || other.Error() != err.Error():
		t.Fatalf("with other line ends it is %v instead of %v", other, err)
	case strings.Contains(err.Error(), "\n") || !utf8.ValidString(err.Error()) || len(err.Error()) > 1000:
		t.Fatalf("%q is not a sentence", err)
	}
}

func checkOccurrences(t *testing.T, c *ical.Calendar, o ical.Options) {
	t.Helper()
	for i, at := range c.Occurrences {
		switch {
		case !at.Start.Before(at.End), !at.Start.Before(o.Until), !at.End.After(o.From):
			t.Fatalf("%+v has no part in the time that is asked for", at)
		case i > 0 && at.Start.Before(c.Occurrences[i-1].Start):
			t.Fatalf("%+v comes after %+v", at, c.Occurrences[i-1])
		}
	}
	if len(c.Occurrences) > ical.MaxOccurrences {
		t.Fatalf("%d occurrences", len(c.Occurrences))
	}
}
