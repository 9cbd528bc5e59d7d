package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// says reconciles a Gate, and checks its state.
func says(t *testing.T, g *v1alpha1.Gate, at string, want v1alpha1.State) {
	t.Helper()
	handle(g, utc(at))
	if d := gate.Decide(g, utc(at)); d.State != want {
		t.Errorf("at %s it is %s: %s", at, d.State, d.Message)
	}
}

func TestACloseThatIsOverWhenItIsSeenWasThere(t *testing.T) {
	t.Run("for an open in force, and another one that is new at once", func(t *testing.T) {
		g := closed()
		asked(t, g, open("2026-11-23T11:50:00Z"), "bob")
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m")
		annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:30Z")
		says(t, g, "2026-11-23T12:30:00Z", isClosed)
	})
	t.Run("although it may last by another clock", func(t *testing.T) {
		g := closed()
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m")
		annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z")
		says(t, g, "2026-11-23T12:10:30Z", isClosed)
	})
	t.Run("for an open that was planned before it and began meanwhile", func(t *testing.T) {
		g := closed()
		asked(t, g, open("2026-11-23T12:05:00Z").seen("2026-11-23T11:00:00Z"), "rel")
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m") // the controller is down from 12:00 to 12:30
		says(t, g, "2026-11-23T12:30:00Z", isClosed)
	})
	t.Run("not for an open that was planned to begin after it", func(t *testing.T) {
		g := closed()
		asked(t, g, open("2026-11-23T12:15:00Z").seen("2026-11-23T11:00:00Z"), "rel")
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m")
		says(t, g, "2026-11-23T12:30:00Z", isOpened)
	})
	t.Run("by the clock of a replica that is ahead", func(t *testing.T) {
		g := closed()
		asked(t, g, open("2026-11-23T11:50:00Z/40m"), "bob")
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m")
		handle(g, utc("2026-11-23T12:30:10Z"))
		says(t, g, "2026-11-23T12:29:30Z", isClosed)
	})
}

// With one close more than there is room for, a Gate is no less closed.
func TestOneCloseTooMany(t *testing.T) {
	for _, n := range []int{8, 9} {
		g := opened()
		for i := range n {
			at := noon.Add(time.Duration(i) * 2 * time.Minute)
			asked(t, g, shut(stamp(at)+"/"+(48*time.Hour-time.Duration(i)*time.Hour).String()).seen(stamp(at)), fmt.Sprint("p", i))
		}
		newest := noon.Add(time.Duration(n-1) * 2 * time.Minute)
		annotate(g, v1alpha1.RequestOpen, stamp(newest.Add(-time.Minute))) // older than that, and not handled before
		says(t, g, stamp(newest.Add(time.Minute)), isClosed)

		g = opened(window(time.Hour))
		asked(t, g, shut("2026-11-23T12:00:00Z"), "alice")
		for i := 1; i < n; i++ {
			at := noon.Add(time.Duration(i) * time.Minute)
			asked(t, g, shut(stamp(at)+"/"+(3*time.Hour-time.Duration(i)*10*time.Minute).String()).seen(stamp(at)), fmt.Sprint("p", i))
		}
		g.Spec.Window = nil
		says(t, g, "2026-11-23T15:30:00Z", isClosed)
	}
}

// The API server refuses a status with more, and then nothing is decided any more.
func TestAllRecordsFitIntoAnnotation(t *testing.T) {
	const room = 48
	t.Run("pairs by hand", func(t *testing.T) {
		for _, actions := range [][2]v1alpha1.RequestAction{
			{v1alpha1.RequestClose, v1alpha1.RequestOpen}, {v1alpha1.RequestOpen, v1alpha1.RequestClose},
		} {
			g := closed()
			for i := range 2 * room {
				at := noon.Add(time.Duration(i) * 5 * time.Minute)
				annotate(g, actions[0], stamp(at))
				annotate(g, actions[1], stamp(at.Add(61*time.Second)))
				for _, h := range handle(g, at.Add(2*time.Minute)) {
					if h.Err != nil {
						t.Fatal(h.Err)
					}
				}
			}
			if n := len(g.Status.Requests); n > 4 {
				t.Errorf("%d requests are remembered", n)
			}
		}
	})
	t.Run("pairs of webhooks within a minute", func(t *testing.T) {
		g := opened()
		for i := range 2 * room {
			at := noon.Add(time.Duration(i) * time.Second / 2)
			for j, a := range []v1alpha1.RequestAction{v1alpha1.RequestClose, v1alpha1.RequestOpen} {
				r := hook(a)
				r.Window = duration(time.Hour)
				if err := ledger.WriteRequest(g, r, at.Add(time.Duration(j)*100*time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
			handle(g, at.Add(200*time.Millisecond))
		}
		if n := len(g.Status.Requests); n > 2*8+1 {
			t.Errorf("%d requests are remembered", n)
		}
	})
}

func TestForecastIncludesEffectOfPlannedOpen(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T12:00:00Z"), "alice")
	asked(t, g, shut("2026-11-23T14:00:00Z").seen("2026-11-23T12:10:00Z"), "bob")
	asked(t, g, open("2026-11-23T15:00:00Z").seen("2026-11-23T12:20:00Z"), "rel")
	if next := nextOf(gate.Decide(g, utc("2026-11-23T12:20:00Z"))); next.at != "2026-11-23T15:00:00Z" {
		t.Errorf("it is to open at %q", next.at)
	}
	says(t, g, "2026-11-23T15:00:00Z", isOpened)
}

func TestAnOldOpenByTheClockOfAReplicaThatIsBehind(t *testing.T) {
	g := closed()
	asked(t, g, open("2026-11-23T12:00:50Z/1m"), "bob") // by a replica that is ahead
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T11:00:00Z/5h")
	handle(g, utc("2026-11-23T12:00:10Z"))
	says(t, g, "2026-11-23T13:00:00Z", isClosed)
}

// It could not be remembered, to know it again if Flux puts it back.
func TestRequestFitsIntoAnnotation(t *testing.T) {
	g := closed()
	long := "2026-11-23T12:00:00.00000000000000000000000000000000000000000000000000000000000000000000Z"
	if refused := asked(t, g, request{v1alpha1.RequestOpen, long, "2026-11-23T12:00:00Z"}, "git"); refused == "" {
		t.Error("it is accepted")
	}
}

func TestAPlannedOpenIsOverByTheWindowOfItsPlan(t *testing.T) {
	g := closed(window(time.Hour))
	asked(t, g, open("2026-11-23T13:00:00Z").seen("2026-11-23T12:00:00Z"), "bob")
	g.Spec.Window = duration(24 * time.Hour) // not reconciled since
	says(t, g, "2026-11-23T15:00:00Z", isClosed)
}

// With config/policies another reason makes it a request of bob, though its time is that of alice.
func TestSameCloseByAnotherUserIsAnotherRequest(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T17:00:00Z").seen("2026-11-23T12:00:00Z"), "alice")
	annotate(g, v1alpha1.RequestClose, "2026-11-23T17:00:00Z")
	by(g, v1alpha1.RequestClose, "bob", "freeze of mine")
	if n := len(handle(g, utc("2026-11-23T12:10:00Z"))); n != 1 {
		t.Errorf("%d requests are told", n)
	}
	asked(t, g, shut("2026-11-23T20:00:00Z").seen("2026-11-23T12:20:00Z"), "alice")
	says(t, g, "2026-11-23T17:30:00Z", isClosed)
}
