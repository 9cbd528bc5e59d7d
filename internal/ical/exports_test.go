package ical_test

import (
	"os"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/ical"
)

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExports reads calendars as Google, Outlook and Apple export them.
func TestExports(t *testing.T) {
	for _, tt := range []struct {
		name       string
		categories []string
		want       []string
		notCounted []ical.NotCounted
	}{
		{
			"google.ics", nil,
			[]string{
				"2026-10-16T13:00Z/2026-10-16T21:59Z No releases on Friday afternoon",
				"2026-10-22T13:00Z/2026-10-22T16:00Z No releases on Thursday afternoon",
				"2026-11-06T14:00Z/2026-11-06T22:59Z No releases on Friday afternoon",
				"2026-11-13T14:00Z/2026-11-13T22:59Z No releases on Friday afternoon",
				"2026-12-20T23:00Z/2027-01-03T23:00Z Christmas freeze",
			},
			[]ical.NotCounted{{Line: 74, Summary: "Halloween", UID: "halloween1a1a1a1a1a1a1a1a1@google.com", Cause: "TRANSP is TRANSPARENT: it is shown as free"}},
		},
		{
			"outlook.ics", []string{"change freeze"},
			[]string{
				"2026-09-29T22:00Z/2026-10-02T22:00Z Kvartalsslutt",
				"2026-11-03T11:00Z/2026-11-04T04:00Z Election day",
				"2026-12-29T23:00Z/2027-01-01T23:00Z Kvartalsslutt",
				"2027-03-29T22:00Z/2027-04-01T22:00Z Kvartalsslutt",
				"2027-06-29T22:00Z/2027-07-02T22:00Z Kvartalsslutt",
			},
			[]ical.NotCounted{{Line: 88, Summary: "Lunch", UID: "lunch", Cause: "it has none of the selected categories"}},
		},
		{
			"apple.ics", nil,
			[]string{
				// DTEND is nine hours later, because that night has an additional hour.
				"2026-11-01T02:00Z/2026-11-01T11:00Z Vedlikehold av databasene i Virginia, med en tittel som er så lang at den brettes",
				"2026-11-09T03:00Z/2026-11-09T11:00Z Vedlikehold, flyttet til søndag",
				"2026-11-22T03:00Z/2026-11-22T11:00Z Vedlikehold av databasene i Virginia, med en tittel som er så lang at den brettes",
				"2026-12-05T07:00Z/2026-12-05T11:00Z Flytende",
			},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustRead(t, file(t, tt.name), options(tt.categories...))
			if got := show(c); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
			if !slices.Equal(c.NotCounted, tt.notCounted) {
				t.Errorf("not counted are\n%+v, want\n%+v", c.NotCounted, tt.notCounted)
			}
		})
	}
}
