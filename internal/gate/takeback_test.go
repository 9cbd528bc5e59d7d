package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ask annotates a Gate as somebody, has it handled, and returns why it is refused.
func ask(t *testing.T, g *v1alpha1.Gate, action v1alpha1.RequestAction, value, who string, now time.Time) string {
	t.Helper()
	annotate(g, action, value)
	by(g, action, who, "")
	for _, r := range handle(g, now) {
		if r.Err != nil && r.Action == action {
			return r.Err.Error()
		}
	}
	return ""
}

func TestARequestOfNoTimeTakesOthersBack(t *testing.T) {
	type asks struct {
		action     v1alpha1.RequestAction
		value, who string
	}
	shut, open := v1alpha1.RequestClose, v1alpha1.RequestOpen
	for name, tc := range map[string]struct {
		gate    *v1alpha1.Gate
		before  []asks
		reset   asks
		refused string
		// now and later are what the Gate is at once and at 14:00.
		now, later v1alpha1.State
	}{
		"an open":                          {closed(), []asks{{open, "2026-11-23T11:00:00Z", "alice"}}, asks{shut, "2026-11-23T12:00:00Z/0s", "bob"}, "", "closed", "closed"},
		"a close":                          {opened(), []asks{{shut, "2026-11-23T11:00:00Z", "alice"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "", "opened", "opened"},
		"a close opens nothing by itself":  {closed(), []asks{{shut, "2026-11-23T11:00:00Z", "alice"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "", "closed", "closed"},
		"an open closes nothing by itself": {opened(), []asks{{open, "2026-11-23T11:00:00Z", "alice"}}, asks{shut, "2026-11-23T12:00:00Z/0s", "bob"}, "", "opened", "opened"},
		"with a part of a second":          {opened(), []asks{{open, "2026-11-23T11:00:00.5Z", "alice"}}, asks{shut, "2026-11-23T12:00:00.2Z/0s", "bob"}, "", "opened", "opened"},
		"a close that is newer":            {opened(), []asks{{shut, "2026-11-23T11:59:00Z", "alice"}}, asks{open, "2026-11-23T11:58:00Z/0s", "bob"}, "its time is not later", "closed", "closed"},
		"nothing":                          {opened(), nil, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "there is no close request to take back", "opened", "opened"},
		"an open leaves a close":           {opened(), []asks{{shut, "2026-11-23T11:00:00Z", "alice"}}, asks{shut, "2026-11-23T12:00:00Z/0s", "bob"}, "there is no open request to take back", "closed", "closed"},
		"a close leaves an open":           {closed(), []asks{{open, "2026-11-23T11:00:00Z", "alice"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "there is no close request to take back", "opened", "opened"},
		"a planned open":                   {closed(), []asks{{open, "2026-11-23T13:00:00Z", "alice"}}, asks{shut, "2026-11-23T12:00:00Z/0s", "bob"}, "", "closed", "closed"},
		"a planned close of their own":     {opened(), []asks{{shut, "2026-11-23T13:00:00Z", "bob"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "", "opened", "opened"},
		"a planned close of another":       {opened(), []asks{{shut, "2026-11-23T13:00:00Z", "alice"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "there is no close request to take back", "opened", "closed"},
		"a close, not the planned one of another": {
			opened(), []asks{{shut, "2026-11-23T13:00:00Z", "alice"}, {shut, "2026-11-23T11:00:00Z", "carol"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "", "opened", "closed",
		},
		"a close, and not what the same person has planned": {
			opened(), []asks{{shut, "2026-11-23T13:00:00Z", "bob"}, {shut, "2026-11-23T11:00:00Z", "bob"}}, asks{open, "2026-11-23T12:00:00Z/0s", "bob"}, "", "opened", "closed",
		},
		"an open, and not the planned one": {
			closed(), []asks{{open, "2026-11-23T13:00:00Z", "alice"}, {open, "2026-11-23T11:00:00Z", "bob"}}, asks{shut, "2026-11-23T12:00:00Z/0s", "bob"}, "", "closed", "opened",
		},
		"a planned close, by an old value": {
			opened(), []asks{{shut, "2026-11-23T13:00:00Z", "bob"}}, asks{open, "2026-11-23T11:00:00Z/0s", "bob"}, "there is no close request to take back", "opened", "closed",
		},
		"by a clock that is ahead": {opened(), []asks{{shut, "2026-11-23T11:00:00Z", "alice"}}, asks{open, "2026-11-23T12:00:30Z/0s", "bob"}, "", "closed", "opened"},
		"in the future":            {opened(), []asks{{shut, "2026-11-23T11:00:00Z", "alice"}}, asks{open, "2026-11-23T12:02:00Z/0s", "bob"}, "must not be in the future", "closed", "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := tc.gate
			for _, b := range tc.before {
				if why := ask(t, g, b.action, b.value, b.who, noon.Add(-time.Minute/2)); why != "" {
					t.Fatalf("%+v is refused: %s", b, why)
				}
			}
			why := ask(t, g, tc.reset.action, tc.reset.value, tc.reset.who, noon)
			if (why == "") != (tc.refused == "") || !strings.Contains(why, tc.refused) {
				t.Errorf("refused: %q, want %q", why, tc.refused)
			}
			for _, at := range []struct {
				when time.Time
				want v1alpha1.State
			}{{noon, tc.now}, {noon.Add(2 * time.Hour), tc.later}} {
				handle(g, at.when)
				if d := gate.Decide(g, at.when); d.State != at.want {
					t.Errorf("at %s it is %s: %s; %+v", stamp(at.when), d.State, d.Message, g.Status.Requests)
				}
			}
		})
	}
}

func TestWhatIsTakenBackIsPutIntoWords(t *testing.T) {
	g := opened()
	ask(t, g, v1alpha1.RequestClose, "2026-11-23T11:00:00Z", "alice", noon)
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/0s")
	by(g, v1alpha1.RequestOpen, "bob", "false alarm")
	handled := handle(g, noon)
	if len(handled) != 1 || handled[0].String() != "close requests taken back at 2026-11-23T12:00:00Z by bob: false alarm" {
		t.Errorf("%v", handled)
	}
}
