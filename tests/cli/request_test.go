package cli

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestOpenShowsWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.shows("open")
}

func TestCloseResetAndHistoryShowWhatTheyDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.shows("close")
	w.shows("reset")
	w.shows("history")
}

func TestFreezeAndThawShowWhatTheyDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.Create(w.Kustomization("tools"))
	w.shows("freeze")
	if got := w.gate("list", "staging", "--no-headers"); !strings.Contains(got.out, "opened") {
		t.Errorf("after thaw: %+v", got)
	}
}

// What somebody else has closed is not theirs to open.
func TestThawLeavesWhatSomebodyHasClosedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	for _, args := range [][]string{{"close", "staging", "--for", "3h", "--reason", "incident 77"}, {"freeze", "--for", "1h", "--reason", "incident 78"}} {
		if got := w.gate(args...); got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	got := w.gate("thaw")
	if got.code != 0 || !strings.Contains(got.out, "staging: stays closed: thaw would take back the close request of admin (incident 77) and the close request of admin (freeze: incident 78)") {
		t.Errorf("%+v", got)
	}
	w.Opened("staging", "False")
}

func TestWhoMayNotIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	nobody, viewer := w.as("nobody-"+w.Namespace), w.as("viewer-"+w.Namespace)
	for _, args := range [][]string{
		{"create", "role", "viewer", "--verb=get,list,watch", "--resource=gates.gating.toolkit.fluxcd.io"},
		{"create", "rolebinding", "viewer", "--role=viewer", "--user=viewer-" + w.Namespace},
	} {
		_, err := w.Kubectl(w.Context(), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	if got := viewer.gate("list", "-o", "name"); got.code != 0 || strings.Count(got.out, "\n") != 2 {
		t.Errorf("a viewer sees %+v", got)
	}
	for _, tc := range []struct {
		who  *world
		args []string
		want string
	}{
		{nobody, []string{"list"}, `error: you may not list gates in namespace "NS": that needs the verb "list", which the ClusterRole gate-viewer has`},
		{nobody, []string{"open", "staging"}, `error: you may not get gates in namespace "NS": that needs the verb "get", which the ClusterRole gate-viewer has`},
		{nobody, []string{"history", "-A"}, `error: you may not list gates: that needs the verb "list", which the ClusterRole gate-viewer has`},
		{viewer, []string{"list", "-A"}, `error: you may not list gates: that needs the verb "list", which the ClusterRole gate-viewer has`},
		{viewer, []string{"close", "staging"}, `error: NS/staging: you may not patch gates in namespace "NS": that needs the verb "patch", which the ClusterRole gate-opener has`},
		{viewer, []string{"close", "staging", "--dry-run=server"}, `error: NS/staging: you may not patch gates in namespace "NS": that needs the verb "patch", which the ClusterRole gate-opener has`},
	} {
		got := tc.who.gate(tc.args...)
		if want := strings.ReplaceAll(tc.want, "NS", w.Namespace) + "\n"; got.code != 2 || got.errOut != want {
			t.Errorf("%v: %+v, want %q", tc.args, got, want)
		}
	}
	if g := w.Opened("staging", "True"); len(g.Status.HandledRequests) > 0 {
		t.Errorf("somebody has asked: %+v", g.Status.HandledRequests)
	}
}

func TestBadInputIsOneLineAndChangesNothing(t *testing.T) {
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
		{"freeze", "--reason", "x"},
		{"list", "-o", "pdf"},
		{"list", "--status-selector", "ready=maybe"},
		{"history", "--since", "yesterday"},
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
		if g := w.ReadGate(name); len(g.Status.HandledRequests) > 0 {
			t.Errorf("somebody has asked %s: %+v", name, g.Status.HandledRequests)
		}
	}
}

func TestWhoAsksInVainIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.EditGate(w.ReadGate("production"), func(g *v1alpha1.Gate) { g.Spec.ClosePeriods[0].ManualOpen = v1alpha1.ManualOpenDeny })
	w.EditGate(w.ReadGate("staging"), func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
	w.Decided(w.ReadGate("production"))
	w.expect(w.gate("open", "production", "--for=1h"), exitIncomplete, "closed, close period freeze",
		"error: "+w.Namespace+"/production: the request is accepted, but it does not open the gate: close period freeze decides\n")
	w.expect(w.gate("close", "staging"), exitIncomplete, "", "error: "+w.Namespace+"/staging: asked, but nobody looks at it while spec.suspend is true\n")
}
