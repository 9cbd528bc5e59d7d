package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
)

const (
	// maxWritesPerTarget is for one transition of a target that one Gate governs.
	maxWritesPerTarget = 2
	// maxRatio is of the controller to the yardstick.
	maxRatio = 1.10
	// maxWritten is how many seconds it may take until all is written.
	maxWritten = 60
	// maxClose is how many seconds it may take until the one target of a Gate is held while others write thousands.
	maxClose = 1
	// maxExponent is of a cost against what grows.
	maxExponent = 1.15
	// fewWrites are by how many writes per target the yardstick may differ from the
	// controller, without those that were refused because of a conflict.
	fewWrites = 0.02
)

// miss is a limit that was not kept, in words.
type miss struct {
	text string
	// hard ones fail the run once they are on the page, the others are only told.
	hard bool
}

func (r *result) miss(hard bool, format string, args ...any) {
	r.missed = append(r.missed, miss{fmt.Sprintf(format, args...), hard})
}

// failure returns the hard limits that were not kept, if any.
func (r *result) failure(name string) error {
	var all []error
	for _, m := range r.missed {
		if m.hard {
			all = append(all, fmt.Errorf("%s: %s", name, m.text))
		}
	}
	return errors.Join(all...)
}

// misses are the lines of the page about what was not kept.
func (r *result) misses() string {
	if len(r.missed) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Missed:\n\n")
	for _, m := range r.missed {
		b.WriteString("- " + m.text)
		if m.hard {
			b.WriteString(" *The run failed for this.*")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// unwritten notes writes where there must be none.
func (r *result) unwritten(what string, writes calls) {
	if n := writes.total(); n != 0 {
		r.miss(true, "%s: %s writes, the limit is none: %s.", what, digits(n), writes)
	}
}

// punctual notes if a target came before the instant. A watch only tells of what has
// happened, so that its error is not an excuse.
func (r *result) punctual(what string, first float64) {
	if first < 0 {
		r.miss(true, "%s: the first target was %s s early, none may be.", what, exactly(-first))
	}
}

// perTarget is how many of some calls were about each target.
func perTarget(c calls, targets int) float64 {
	return c.of(kustomizations.Resource).total() / float64(targets)
}

// thrifty notes if there were more writes than a target may cost. Refused writes changed
// nothing, so that they are only told.
func (r *result) thrifty(what string, used usage, targets int) {
	if accepted := perTarget(used.accepted(), targets); accepted > maxWritesPerTarget {
		r.miss(true, "%s: %s writes per target, the limit is %d.", what, exactly(accepted), maxWritesPerTarget)
	} else if sent := perTarget(used.calls.writes(), targets); sent > maxWritesPerTarget {
		r.miss(false, "%s: %s writes per target with those that were refused because it had changed, the limit is %d.", what, exactly(sent), maxWritesPerTarget)
	}
}

// grown notes if a cost grows faster than it may.
func (r *result) grown(what string, exponent float64) {
	if exponent > maxExponent {
		r.miss(false, "%s: %s, the limit is %s.", what, beyond(exponent, maxExponent), digits(maxExponent))
	}
}

// compared notes which limits the turns of a comparison did not keep. Each turn has to keep
// the hard ones, the medians the others.
func (r *result) compared(name string, targets int, turns []turn) {
	for _, closed := range []bool{true, false} {
		what := fmt.Sprintf("%s, %s", name, edgeName(closed))
		for _, t := range turns {
			r.punctual(what, t.controller[closed].first().Seconds())
			r.thrifty(what, t.controller[closed].used, targets)
			ours := t.controller[closed].used.accepted()
			for watches, bare := range t.bare {
				r.alike(what, yardstickName(watches), bare[closed].writes, ours, targets)
			}
		}
		for _, watches := range yardsticks(0) {
			r.slower(what, "all written to the "+yardstickName(watches), medianOf(turns, closed, writtenTo(watches)))
			r.slower(what, "last target to that of the "+yardstickName(watches), medianOf(turns, closed, lastTo(watches)))
		}
		if took := medianOf(turns, closed, written); took >= maxWritten {
			bare := medianOf(turns, closed, func(t turn, closed bool) float64 { return t.bare[false][closed].took.Seconds() })
			server := medianOf(turns, closed, func(t turn, closed bool) float64 { return t.controller[closed].used.server.Seconds() })
			r.miss(false, "%s: all written after %s s, the limit is less than %d s. %s", what, digits(took), maxWritten, bound(took, bare, server, runtime.NumCPU()))
		}
	}
}

// alike notes if a yardstick did not write what the controller wrote.
func (r *result) alike(what, which string, theirs, ours calls, targets int) {
	if a, b := perTarget(theirs, targets), perTarget(ours, targets); math.Abs(a-b) > fewWrites {
		r.miss(true, "%s: the %s sent %s writes per target, the controller %s without refused ones, so that their times do not compare.",
			what, which, exactly(a), exactly(b))
	}
}

// bound says what keeps a transition from being faster, from what was measured: the
// seconds that it took, those of a bare client, and the processor time of the API server.
func bound(took, bare, server float64, cores int) string {
	who := "so that it is the controller that does not keep the limit"
	if bare >= maxWritten {
		who = "so that on this machine no client that writes as much keeps the limit"
	}
	return fmt.Sprintf("The bare client needs %s s itself, and the API server, without etcd, used %s s of the processor, %.0f %% of %d cores for that time, %s.",
		digits(bare), digits(server), 100*server/(float64(cores)*took), cores, who)
}

// slower notes if the controller took longer than it may, as a ratio to a yardstick.
func (r *result) slower(what, which string, ratio float64) {
	if ratio > maxRatio {
		r.miss(false, "%s: %s %s, the limit is %s.", what, which, beyond(ratio, maxRatio), digits(maxRatio))
	}
}

// writtenTo is when all was written, as a ratio to a yardstick.
func writtenTo(watches bool) func(turn, bool) float64 {
	return func(t turn, closed bool) float64 { return written(t, closed) / t.bare[watches][closed].took.Seconds() }
}

// lastTo is when the last target was held or released, as a ratio to a yardstick.
func lastTo(watches bool) func(turn, bool) float64 {
	return func(t turn, closed bool) float64 {
		return t.controller[closed].last().Seconds() / t.bare[watches][closed].last.Seconds()
	}
}

func medianOf(turns []turn, closed bool, value func(turn, bool) float64) float64 {
	return median(valuesOf(turns, closed, value))
}

func valuesOf(turns []turn, closed bool, value func(turn, bool) float64) []float64 {
	var values []float64
	for _, t := range turns {
		values = append(values, value(t, closed))
	}
	return values
}

// beyond writes a value such that it is not the same as the limit.
func beyond(value, limit float64) string {
	if text := digits(value); text != digits(limit) {
		return text
	}
	return exactly(value)
}

// exactly writes a value such that what is beyond a limit is seen to be: 2.0001 is not 2.
func exactly(value float64) string {
	return strconv.FormatFloat(value, 'g', 6, 64)
}
