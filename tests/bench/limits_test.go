package main

import (
	"strings"
	"testing"
	"time"
)

// refused is a turn in which the controller had to write some again.
func refused(t turn, n float64) turn {
	for _, edge := range t.controller {
		edge.used.conflicts = calls{{"APPLY", "kustomizations", ""}: n}
	}
	return t
}

// turnOf is one of 1000 targets, the same both ways: seconds until the first target and
// until all is written, those of the yardstick, and how often both have written.
func turnOf(first, written, bare, ours, theirs float64) turn {
	hold := func(n float64) calls { return calls{{"APPLY", "kustomizations", ""}: n} }
	t := turn{controller: map[bool]*transition{}, bare: map[bool]map[bool]spent{false: {}, true: {}}}
	for _, closed := range []bool{true, false} {
		t.controller[closed] = &transition{
			arrivals: []time.Duration{seconds(first), seconds(written)}, written: seconds(written),
			used: usage{calls: hold(ours), server: seconds(written)},
		}
		for _, all := range t.bare {
			all[closed] = spent{took: seconds(bare), last: seconds(bare), writes: hold(theirs)}
		}
	}
	return t
}

func TestEachLimitThatATurnMissesIsTold(t *testing.T) {
	good := turnOf(0.1, 59, 58, 2000, 2000)
	for name, c := range map[string]struct {
		turns []turn
		want  string
		hard  bool
	}{
		"all is well":                       {[]turn{good}, "", false},
		"on the limits":                     {[]turn{turnOf(0, 55, 50, 2000, 2019)}, "", false},
		"early in one turn":                 {[]turn{good, turnOf(-0.002, 59, 58, 2000, 2000), good}, "0.002 s early", true},
		"one write too many":                {[]turn{good, turnOf(0.1, 59, 58, 2001, 2000), good}, "2.001 writes per target, the limit is 2", true},
		"only what was refused is more":     {[]turn{refused(turnOf(0.1, 59, 58, 2400, 2000), 400)}, "2.4 writes per target with those that were refused", false},
		"a yardstick that writes less":      {[]turn{turnOf(0.1, 59, 58, 2000, 1979)}, "sent 1.979 writes per target, the controller 2 without", true},
		"a yardstick that writes more":      {[]turn{turnOf(0.1, 59, 58, 1900, 2000)}, "sent 2 writes per target, the controller 1.9 without", true},
		"slower than the yardstick":         {[]turn{turnOf(0.1, 58, 50, 2000, 2000)}, "all written to the yardstick 1.16, the limit is 1.10", false},
		"slower in one turn of three":       {[]turn{good, turnOf(0.1, 80, 50, 2000, 2000), good}, "", false},
		"as slow as the limit":              {[]turn{turnOf(0.1, 60, 59, 2000, 2000)}, "all written after 60 s, the limit is less than 60 s. The bare client needs 59", false},
		"slow, as the yardstick is as well": {[]turn{turnOf(0.1, 166, 168, 2000, 2000)}, "no client that writes as much keeps the limit", false},
	} {
		r := &result{}
		r.compared("One gate", 1000, c.turns)
		page := section(made, "On an abacus.", r)
		if c.want == "" {
			if len(r.missed) != 0 || strings.Contains(page, "Missed") {
				t.Errorf("%s: %s", name, page)
			}
			continue
		}
		found := map[string]bool{}
		for _, m := range r.missed {
			for _, edge := range []string{"close", "open"} {
				if strings.HasPrefix(m.text, "One gate, "+edge+": ") && strings.Contains(m.text, c.want) && m.hard == c.hard {
					found[edge] = true
				}
			}
		}
		if strings.HasPrefix(name, "only") && len(r.missed) != 2 || len(found) != 2 || !strings.Contains(page, "\nMissed:\n\n- One gate, close: ") || !strings.Contains(page, c.want) {
			t.Errorf("%s: %s", name, page)
		}
		if err := r.failure("turns"); (err != nil) != c.hard || err != nil && !strings.Contains(err.Error(), "turns: One gate, close: ") {
			t.Errorf("%s: the failure is %v", name, err)
		}
	}
}

func TestWhatIsMissedStandsBelowTheTables(t *testing.T) {
	r := results
	r.miss(true, "Too much.")
	r.miss(false, "Too slow.")
	page := section(made, "On an abacus.", &r)
	if want := "| 10 | 0.5 |\n\nMissed:\n\n- Too much. *The run failed for this.*\n- Too slow.\n\n![A <line>]"; !strings.Contains(page, want) {
		t.Errorf("the page is %s", page)
	}
	if !strings.Contains(r.text(), "Too slow.") {
		t.Errorf("who runs it is told: %s", r.text())
	}
}

func TestWhatIsBeyondALimitIsSeenToBe(t *testing.T) {
	for value, want := range map[float64]string{2.0001: "2.0001", 1.150049: "1.15005", 2.1: "2.1", 0.000321: "0.000321"} {
		if got := exactly(value); got != want {
			t.Errorf("%g: got %s, want %s", value, got, want)
		}
	}
}

func TestThreeDigitsAreEnoughForWhatIsFarBeyondALimit(t *testing.T) {
	for value, want := range map[float64]string{1.68928: "1.69", 1.1501: "1.1501"} {
		if got := beyond(value, 1.15); got != want {
			t.Errorf("%g: got %s, want %s", value, got, want)
		}
	}
}

func TestWhatGrowsFasterThanItMayIsTold(t *testing.T) {
	r := &result{}
	r.grown("Exponent of a round", 1.15)
	if len(r.missed) > 0 {
		t.Errorf("on the limit: %v", r.missed)
	}
	r.grown("Exponent of a round", 1.16)
	if len(r.missed) != 1 || r.missed[0] != (miss{"Exponent of a round: 1.16, the limit is 1.15.", false}) {
		t.Errorf("beyond the limit: %v", r.missed)
	}
}

func TestWhatIsWrittenWithoutNeedFails(t *testing.T) {
	r := &result{}
	r.unwritten("An hour", calls{})
	if len(r.missed) > 0 {
		t.Errorf("nothing was written: %v", r.missed)
	}
	r.unwritten("An hour", calls{{"PATCH", "gates", "status"}: 1})
	if err := r.failure("idle"); err == nil || err.Error() != "idle: An hour: 1 writes, the limit is none: 1 PATCH gates/status." {
		t.Error(err)
	}
}

func TestWhatBoundsATransitionIsTakenFromTheRun(t *testing.T) {
	const share = "used 300 s of the processor, 75 % of 2 cores for that time, "
	if got := bound(200, 100, 300, 2); !strings.Contains(got, share+"so that on this machine no client") || !strings.HasPrefix(got, "The bare client needs 100 s") {
		t.Error(got)
	}
	if got := bound(200, 59, 300, 2); !strings.Contains(got, share+"so that it is the controller") {
		t.Error(got)
	}
}
