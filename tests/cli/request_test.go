package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestOpenOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.shows("open")
}

func TestCloseResetAndHistoryOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.shows("close")
	w.shows("reset")
	w.shows("history")
}

func TestFreezeAndThawOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.Create(w.Kustomization("tools"))
	w.shows("freeze")
	if got := w.gate("list", "staging", "--no-headers"); !strings.Contains(got.out, "opened") {
		t.Errorf("after thaw: %+v", got)
	}
}

// The user may not open a Gate that another user has closed.
func TestThawKeepsOtherCloseRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	for _, args := range [][]string{{"close", "staging", "--for", "3h", "--reason", "incident 77"}, {"freeze", "--for", "1h", "--reason", "incident 78"}} {
		if got := w.gate(args...); got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	got := w.gate("thaw")
	if got.code != exitIncomplete || !strings.Contains(got.errOut, "staging: it stays frozen, because the close request of admin (incident 77) is also in force; to withdraw all requests: kubectl gate reset staging") {
		t.Errorf("%+v", got)
	}
	w.Opened("staging", "False")
}

func TestForbiddenRequestsNameTheMissingPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	stranger, viewer := w.as("stranger-"+w.Namespace), w.as("viewer-"+w.Namespace)
	for _, args := range [][]string{
		{"create", "role", "viewer", "--verb=get,list,watch", "--resource=gates.gating.toolkit.fluxcd.io"},
		{"create", "rolebinding", "viewer", "--role=viewer", "--user=viewer-" + w.Namespace},
	} {
		_, err := w.Kubectl(w.Context(), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	if got := viewer.gate("list", "-o", "name"); got.code != 0 || strings.Count(got.out, "\n") != 2 {
		t.Errorf("for a viewer: %+v", got)
	}
	for _, tc := range []struct {
		who  *world
		args []string
		want string
	}{
		{stranger, []string{"list"}, `error: you may not list gates in namespace "NS": that needs the verb "list", which the ClusterRole gate-viewer has`},
		{stranger, []string{"open", "staging"}, `error: you may not get gates in namespace "NS": that needs the verb "get", which the ClusterRole gate-opener has`},
		{stranger, []string{"history", "-A"}, `error: you may not list gates: that needs the verb "list", which the ClusterRole gate-viewer has`},
		{viewer, []string{"list", "-A"}, `error: you may not list gates: that needs the verb "list", which the ClusterRole gate-viewer has`},
		{viewer, []string{"close", "staging"}, `error: NS/staging: you may not patch gates in namespace "NS": that needs the verb "patch", which the ClusterRole gate-opener has`},
		{viewer, []string{"close", "staging", "--dry-run=server"}, `error: NS/staging: you may not patch gates in namespace "NS": that needs the verb "patch", which the ClusterRole gate-opener has`},
	} {
		got := tc.who.gate(tc.args...)
		if want := strings.ReplaceAll(tc.want, "NS", w.Namespace) + "\n"; got.code != 2 || got.errOut != want {
			t.Errorf("%v: %+v, want %q", tc.args, got, want)
		}
	}
	if g := w.Opened("staging", "True"); len(g.Status.Memory.HandledRequests) > 0 {
		t.Errorf("a request was made: %+v", g.Status.Memory.HandledRequests)
	}
}

func TestInvalidInputIsOneErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	for _, args := range [][]string{
		{"open"},
		{"open", "staging", "-l", "a=b"},
		{"open", "-l", "a=b"},
		{"open", "staging", "-A"},
		{"open", "staging", "--for", "1h", "--until", "17:30"},
		{"open", "staging", "--for", "500ms"},
		{"open", "staging", "--for", "-1h"},
		{"open", "staging", "--for", "soon"},
		{"open", "staging", "--until", "2020-01-01"},
		{"open", "staging", "--at", "2020-01-01"},
		{"open", "staging", "--at", "tomorrow 08:00", "--until", "tomorrow 07:00"},
		{"open", "staging", "--dry-run=client"},
		{"open", "staging", "--dry-run=server", "--wait"},
		{"open", "staging", "--timezone", "Mars/Base"},
		{"open", "stagin"},
		{"open", "nowhere/staging"},
		{"freeze"},
		{"freeze", "--for", "1h"},
		{"list", "-o", "pdf"},
		{"list", "--status-selector", "ready=maybe"},
		{"history", "--since", "someday"},
		{"history", "-o", "name"},
		{"lits"},
		{"open", "staging", "--kubeconfig", "/nowhere"},
		{"open", "staging", "--context", "nowhere"},
		{"open", "staging", "--server", "https://127.0.0.1:1"},
	} {
		got := w.gate(args...)
		if got.code != 2 || got.out != "" || strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "error: ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	for _, name := range []string{"staging", "production"} {
		if g := w.ReadGate(name); len(g.Status.Memory.HandledRequests) > 0 {
			t.Errorf("a request on %s was made: %+v", name, g.Status.Memory.HandledRequests)
		}
	}
}

func TestIneffectiveRequestsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.EditGate(w.ReadGate("production"), func(g *v1alpha1.Gate) { g.Spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny })
	w.EditGate(w.ReadGate("staging"), func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
	w.Decided(w.ReadGate("production"))
	w.expect(w.gate("open", "production", "--for=1h"), exitIncomplete, "closed, close period freeze",
		"error: "+w.Namespace+"/production: the request is accepted, but it does not open the gate: close period freeze decides, which has override: Deny; to open it, change that period: kubectl edit gate production")
	w.expect(w.gate("close", "staging"), exitError, "", "error: "+w.Namespace+"/staging: requests are not handled while spec.suspend is true\n")
	if value, ok := w.ReadGate("staging").Annotations[v1alpha1.CloseRequestedAtAnnotation]; ok {
		t.Errorf("the refused request left %s, which would take effect later", value)
	}
}

// In each of these cases, thaw once opened a Gate that another user had closed, or lost a planned request.
func TestThawWithdrawsOnlyFreeze(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after []string
		want          string
		state         v1alpha1.State
	}{
		"a shorter close by another user": {
			[]string{"close", "staging", "--for", "2h", "--reason", "migration"}, nil, "it stays frozen, because the close request of bob (migration) is also in force", v1alpha1.StateClosed,
		},
		"a reason that looks like a freeze": {
			nil, []string{"close", "staging", "--for", "30h", "--reason", "see the wiki (freeze by admin: x)"}, "is also in force", v1alpha1.StateClosed,
		},
		"a close that is planned": {[]string{"close", "staging", "--at", "in 10h", "--for", "2h"}, nil, "", v1alpha1.StateOpened},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
			bob := w.as("bob")
			w.hasExactly("bob", rule{"get,list,watch,patch", "gates.gating.toolkit.fluxcd.io"})
			if tc.before != nil {
				w.expect(bob.gate(tc.before...), 0, "", "")
			}
			w.expect(w.gate("freeze", "--for", "20h", "--reason", "incident"), 0, "closed, close request", "")
			if tc.after != nil {
				w.expect(bob.gate(tc.after...), 0, "", "")
			}
			got := w.gate("thaw")
			g := w.ReadGate("staging")
			if !strings.Contains(got.errOut, tc.want) || (tc.want == "") != (got.code == 0) || g.Status.LastTransition.State != tc.state {
				t.Errorf("%+v, the last transition is %+v", got, g.Status.LastTransition)
			}
			if name == "a close that is planned" && (g.Status.NextTransition == nil || g.Status.NextTransition.State != v1alpha1.StateClosed) {
				t.Errorf("the planned request is lost: %+v", g.Status.Requests)
			}
		})
	}
}

func TestResetWithdrawsUnhandledRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Suspend: true})
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339))
	w.expect(w.gate("reset", "staging"), exitError, "", "requests are not handled while spec.suspend is true")
	w.EditGate(w.ReadGate("staging"), func(g *v1alpha1.Gate) { g.Spec.Suspend = false })
	w.Opened("staging", "True")
	w.expect(w.gate("reset", "staging"), 0, "closed, default", "")
}

// A handled value does not count again, so the same arguments must produce another value.
func TestPlanIsIdempotent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	plan := []string{"open", "staging", "--at", "2027-01-05 08:00", "--for", "1h"}
	for range 3 {
		w.expect(w.gate(plan...), 0, "planned: open at 2027-01-05 08:00 UTC until 2027-01-05 09:00 UTC", "")
		if next := w.ReadGate("staging").Status.NextTransition; next == nil || next.State != v1alpha1.StateOpened {
			t.Fatalf("nothing is planned: %+v", w.ReadGate("staging").Status)
		}
		w.expect(w.gate("reset", "staging"), 0, "withdrawing the planned open request of admin", "")
	}
}

func TestFreezeListsObjectsThatAreNotFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("one"))
	w.Create(w.Kustomization("two"))
	target := func(name string) []v1alpha1.TargetReference {
		return []v1alpha1.TargetReference{{Kind: "Kustomization", Name: name}}
	}
	hour := v1alpha1.Duration{Duration: time.Hour}
	w.Gate("short", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: target("one"), Window: &hour})
	w.Gate("asleep", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: target("two"), Suspend: true})
	w.Decided(w.ReadGate("short"))
	got := w.gate("freeze", "--for", "20h", "--reason", "incident")
	w.expect(got, exitIncomplete, "Not frozen, because only other gates cover them:\n  Kustomization "+w.Namespace+"/two\n", "")
	w.expect(got, exitIncomplete, "", "/asleep: requests are not handled while spec.suspend is true")
	if strings.Contains(got.out, "hold every object") {
		t.Errorf("%+v", got)
	}
	w.hasExactly("few", rule{"get,list,patch", "gates.gating.toolkit.fluxcd.io"})
	few := w.as("few").gate("freeze", "short", "--for", "30m", "--reason", "incident")
	if strings.Contains(few.out, "hold every object") || !strings.Contains(few.errOut, "not checked, so these may not be frozen: you may not list") {
		t.Errorf("%+v", few)
	}
}
