package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// stamped checks the stamped requester.
func (w *world) stamped(g *v1alpha1.Gate, annotation, want string) {
	w.Helper()
	w.is(annotation, w.get(g).Annotations[annotation], want)
}

// requested checks the latest request in the status.
func (w *world) requested(g *v1alpha1.Gate, by, message string, source string) {
	w.Helper()
	last := g.LatestRequest()
	if last == nil {
		w.Fatalf("no request in %+v", g.Status)
	}
	w.is("the latest request", []any{last.RequestedBy, last.Message, last.Source}, []any{by, message, source})
}

func TestForgedRequestedByIsOverwritten(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	for _, action := range []string{"open", "close"} {
		at, by := action+".gate.fluxcd.io/requestedAt", action+".gate.fluxcd.io/requestedBy"
		w.allowed(alice, "annotate", "gate", "production", at+"="+now(), by+"=bob")
		w.stamped(g, by, "alice")
		for _, forgery := range []string{by + "=bob", by + "-", by + "="} {
			w.allowed(alice, "annotate", "--overwrite", "gate", "production", forgery)
			w.stamped(g, by, "alice")
		}
		w.allowed(w.as("olga", w.role([]string{"get", "patch"}, []string{"gates"})), "annotate", "--overwrite", "gate", "production", by+"=bob")
		w.stamped(g, by, "alice")
	}
	edith := w.as("edith", editor, viewer)
	for _, args := range []string{
		`patch gate production --type=merge -p {"metadata":{"annotations":{"open.gate.fluxcd.io/requestedBy":"bob"}}}`,
		`patch gate production --type=json -p [{"op":"replace","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedBy","value":"bob"}]`,
		`patch gate production --type=json -p [{"op":"remove","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedBy"}]`,
	} {
		w.allowed(edith, strings.Fields(args)...)
		w.stamped(g, openBy, "alice")
		w.stamped(g, closeBy, "alice")
	}
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", gateFile("production", map[string]string{openBy: "bob"}))
	w.stamped(g, openBy, "alice")
}

// The next request must not repeat the reason of the last one.
func TestReasonOfOtherRequesterIsRemoved(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob, edith := w.as("alice", opener), w.as("bob", opener), w.as("edith", editor, viewer)
	for _, action := range []string{"open", "close"} {
		at, why := action+".gate.fluxcd.io/requestedAt=NOW ", action+".gate.fluxcd.io/reason"
		for _, step := range []struct {
			p              *person
			pairs, why, by string
		}{
			{alice, at + why + "=incident-5", "incident-5", "alice"}, {alice, at + why + "=incident-5", "incident-5", "alice"}, // a repeated request by the same user
			{bob, at, "", "bob"}, {alice, at + why + "=incident-9", "incident-9", "alice"}, {edith, "a=" + action, "incident-9", "alice"}, // no request
		} {
			w.allowed(step.p, "annotate --overwrite gate production "+step.pairs)
			w.stamped(g, why, step.why)
			w.stamped(g, action+".gate.fluxcd.io/requestedBy", step.by)
		}
	}
}

func TestRequestedByWithoutRequestIsRemoved(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	w.allowed(edith, "create", "-f", gateFile("production", map[string]string{openBy: "bob", closeBy: "bob", "a": "b"}))
	w.is("annotations", w.ReadGate("production").Annotations, map[string]string{"a": "b"})
	w.allowed(edith, "annotate gate production "+openBy+"=bob")
	w.allowed(edith, "apply --server-side --force-conflicts -f "+gateFile("production", map[string]string{closeBy: "bob", "a": "b"}))
	w.is("annotations", w.ReadGate("production").Annotations, map[string]string{"a": "b"})
}

func TestFirstRequesterStaysUntilRequestChanges(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob := w.as("alice", opener), w.as("bob", opener)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, openWhy+"=release")
	w.decided(g, metav1.ConditionTrue)

	w.allowed(bob, "annotate", "--overwrite", "gate", "production", openAt+"="+at, openWhy+"=release")
	w.is("the version after the same request once more", w.get(g).ResourceVersion, g.ResourceVersion)
	w.stamped(g, openBy, "alice")
	for _, pair := range []string{"reconcile.fluxcd.io/requestedAt=1", openWhy + "-"} {
		w.allowed(bob, "annotate --overwrite gate production "+pair)
		w.stamped(g, openBy, "alice")
	}
	w.allowed(bob, "annotate gate production "+openWhy+"=changed") // a user who changes the reason becomes the requester
	w.stamped(g, openBy, "bob")
	w.decided(g, metav1.ConditionTrue)
	w.requested(g, "alice", "release", v1alpha1.SourceAnnotation)
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+stamp(time.Now().Add(-time.Hour)))
	w.stamped(g, openBy, "alice")
	w.allowed(bob, "annotate", "gate", "production", openAt+"-")
	w.stamped(g, openBy, "")
}

func TestGateCreatedWithRequestIsStamped(t *testing.T) {
	w := newWorld(t)
	vera := w.as("vera", editor, opener)
	request := map[string]string{openAt: now(), openBy: "alice"}
	var g *v1alpha1.Gate
	for _, command := range []string{"create", "apply --server-side", "apply", "create --validate=true"} {
		name := strings.ReplaceAll(command, " --server-side", "-2")
		if strings.HasSuffix(command, "true") {
			name = "generateName: generated-"
		}
		g = w.ReadGate(w.allowed(vera, command+" -o=name -f "+gateFile(name, request)))
		w.stamped(g, openBy, "vera")
	}
	w.decided(g, metav1.ConditionTrue)
}

func TestControllerNamesRequester(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	account := w.as(controllerName)
	ours := "GateReceiver " + w.Namespace + "/ci"
	at := now()
	w.allowed(account, "annotate", "gate", "production", openAt+"="+at, v1alpha1.OpenReceivedAnnotation+"="+at, openBy+"="+ours)
	w.stamped(g, openBy, ours)
	w.decided(g, metav1.ConditionTrue)
	w.requested(g, ours, "", v1alpha1.SourceWebhook)
	w.allowed(account, "annotate", "gate", "production", closeAt+"="+now()+"/30m", closeBy+"="+ours)
	w.decided(g, metav1.ConditionFalse)

	other := w.as("system:serviceaccount:gating-system:other", opener)
	w.allowed(other, "annotate", "--overwrite", "gate", "production", openAt+"="+stamp(time.Now().Add(-time.Minute)), openBy+"="+ours)
	w.stamped(g, openBy, "system:serviceaccount:gating-system:other")
	w.Decided(g)
	w.Decided(g)
	// Otherwise the next request would have the name of the last requester.
	overwrite := "annotate --overwrite gate production " + openAt + "=NOW"
	cause := "may not open or close gate " + w.Namespace + "/production on behalf of another requester: requestedBy must begin with GateReceiver " + w.Namespace + "/"
	w.refused(account, cause, overwrite)
	w.refused(account, cause, overwrite+" "+openBy+"=alice")
	w.refused(account, cause, overwrite+" "+openBy+"-")
	w.refused(account, cause, "annotate", "--overwrite", "gate", "production", closeAt+"="+now(), closeBy+"=GateReceiver apps/ci")
	w.allowed(account, "annotate", "--overwrite", "gate", "production", "reconcile.fluxcd.io/requestedAt=1")
}

// If a user claims to be a webhook, the user's own name is recorded.
func TestRequesterCannotImpersonateReceiver(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	ours := "GateReceiver " + w.Namespace + "/ci"
	alice := w.as("alice", opener)
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openBy+"="+ours)
	w.stamped(g, openBy, "alice")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openBy+"="+ours)
	w.stamped(g, openBy, "alice")
	w.allowed(alice, "patch", "gate", "production", "--type=json", "-p", `[{"op":"add","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedAt","value":"`+now()+`"},{"op":"add","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedBy","value":"`+ours+`"}]`)
	w.stamped(g, closeBy, "alice")
	w.decided(g, metav1.ConditionFalse)
	w.requested(g, "alice", "", v1alpha1.SourceAnnotation)
	w.refused(w.as("edith", editor, viewer), "user edith may not open gate", "annotate --overwrite gate production "+openAt+"=NOW")
}

func TestImpersonatorHasRightsOfUser(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	w.as("alice", opener)
	w.as("edith", editor, viewer)
	ivan := w.as("ivan", w.role([]string{"get", "patch", "open"}, []string{"gates"}))
	w.bind("ivan", true, "impersonate", []string{"edith", "alice", "production"}, "users.")
	w.Eventually("ivan may impersonate", func() error {
		_, err := ivan.kubectl(w.Context(), w.Namespace, "--as=edith get gates")
		return err
	})
	w.refused(ivan, "user edith may not open gate", "--as=edith annotate gate production "+openAt+"=NOW")
	w.refused(ivan, `cannot impersonate resource "users"`, "--as=clara annotate gate production "+openAt+"=NOW")
	w.refused(ivan, "cannot impersonate", "--as=system:serviceaccount:gating-system:gating-controller annotate gate production "+openAt+"=NOW")
	w.allowed(ivan, "--as=alice", "annotate", "gate", "production", openAt+"="+now())
	w.stamped(g, openBy, "alice")
}

// unhandled returns the lines of the unhandled requests, without their values and numbers.
func (w *world) unhandled(g *v1alpha1.Gate) (all []string) {
	w.Helper()
	value := w.get(g).Annotations[v1alpha1.UnhandledAnnotation]
	if value == "" {
		return nil
	}
	for i, line := range strings.Split(value, "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 6 || fields[0] != fmt.Sprint(i+1) {
			w.Fatalf("line %d is %q", i+1, line)
		}
		all = append(all, strings.Join([]string{fields[1], fields[2], fields[4], fields[5]}, " "))
	}
	return all
}

func (w *world) hasLines(g *v1alpha1.Gate, want ...string) {
	w.Helper()
	w.is("unhandled requests", w.unhandled(g), want)
}

// While the controller is down, the annotation can contain only one request. Without the lines, the first of two closes would be lost, and
// the Gate would open at the end of the second, shorter one.
func TestReplacedCloseCountsAfterDowntime(t *testing.T) {
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.decided(g, metav1.ConditionTrue)
	closes := w.role([]string{"get", "patch", "close"}, []string{"gates"})
	alice, carl := w.as("alice", closes), w.as("carl", closes)
	start := w.stopController()
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now()+"/2h", v1alpha1.CloseReasonAnnotation+"=incident 77")
	w.allowed(carl, "annotate", "--overwrite", "gate", "production", closeAt+"="+now()+"/2s", v1alpha1.CloseReasonAnnotation+"=a try")
	w.hasLines(g, "close annotation alice incident 77")
	start()
	w.decided(g, metav1.ConditionFalse)
	w.until("the lines are removed", func() (bool, any) { return len(w.unhandled(g)) == 0, w.unhandled(g) })
	g = w.get(g)
	if g.Status.Memory.LastHandledLine != 1 || len(g.Status.Requests) != 2 {
		t.Errorf("the status has %+v", g.Status)
	}
	reset := g.Status.ResetToDefaultAt
	if reset == nil || time.Until(reset.Time) < time.Hour {
		t.Errorf("the gate opens at %s", reset)
	}
	for _, who := range []string{"alice: incident 77", "carl: a try"} {
		if !slices.ContainsFunc(g.Status.History, func(e v1alpha1.HistoryEntry) bool { return e.RequestedBy+": "+e.Message == who }) {
			t.Errorf("the history lacks %s: %+v", who, g.Status.History)
		}
	}
	// The next line gets a new number.
	start = w.stopController()
	for _, lasts := range []string{"/3h", "/1s"} {
		w.allowed(carl, "annotate", "--overwrite", "gate", "production", closeAt+"="+now()+lasts)
	}
	if got := w.get(g).Annotations[v1alpha1.UnhandledAnnotation]; !strings.HasPrefix(got, "2\tclose\t") {
		t.Errorf("the next line is %q", got)
	}
	start()
}

func TestAdmissionRecordsReplacedUnhandledRequests(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	w.stopController()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openWhy+"=one")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openWhy+"=the same request with another reason")
	w.hasLines(g)
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+now()+"/1h", openWhy+"=two\n\tlines")
	w.allowed(edith, "annotate", "gate", "production", openAt+"-")
	want := []string{"open annotation alice the same request with another reason"}
	w.hasLines(g, want...) // a removed open request does not open the gate
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now(), v1alpha1.CloseReasonAnnotation+"=two\n\tlines")
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-", v1alpha1.CloseReasonAnnotation+"-")
	want = append(want, "close annotation alice two  lines")
	w.hasLines(g, want...)
	for _, forgery := range []string{"=", "-", "=1\tclose\tannotation\t2026-12-01T00:00:00Z\tbob\t"} {
		w.allowed(alice, "annotate", "--overwrite", "gate", "production", v1alpha1.UnhandledAnnotation+forgery)
		w.hasLines(g, want...)
	}
}

func TestHandledRequestIsNotRecordedOnReplacement(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now(), openAt+"="+now())
	w.decided(g, metav1.ConditionFalse)
	w.stopController()
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+now()+"/1h")
	w.hasLines(g)
}

func TestUnhandledRequestsAreBoundedPerUser(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	w.stopController()
	n := 0
	closing := func() string {
		n++
		return "annotate --overwrite gate production " + closeAt + "=" + stamp(time.Now().Add(time.Duration(n)*time.Second)) + " " + v1alpha1.CloseReasonAnnotation + "=bob"
	}
	closes := w.role([]string{"get", "patch", "close"}, []string{"gates"})
	alice := w.as("alice", closes)
	for range 5 {
		w.allowed(alice, closing())
	}
	w.refused(alice, "user alice must wait: the gating-controller has not handled 4 earlier requests for gate "+w.Namespace+"/production, 4 of them by this user", closing())
	for _, name := range []string{"bob", "carl", "dora", "emil", "fred", "gina", "hugo", "ines"} {
		p := w.as(name, closes)
		for i := 0; i < 5 && len(w.unhandled(g)) < 32; i++ {
			w.allowed(p, closing())
		}
	}
	w.is("lines", len(w.unhandled(g)), 32)
	w.refused(w.as("zoe", closes), "has not handled 32 earlier requests", closing())
	// Flux must still be able to apply the Gate.
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"5m"}}`)
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"6m"},"metadata":{"annotations":{"`+closeAt+`":null}}}`)
	w.is("lines after the last close was removed", len(w.unhandled(g)), 33)
}

// Flux strips the annotations of kubectl at its next reconciliation, perhaps before the controller has observed a close.
func TestCloseStrippedByFluxCounts(t *testing.T) {
	r := newGit(t, editor, viewer)
	spec := `{"default":"opened","window":"10s","interval":"1m"}`
	r.commitManifest(holdFile("production", spec))
	r.synced()
	g := r.ReadGate("production")
	r.decided(g, metav1.ConditionTrue)
	alice, carl := r.as("alice", opener), r.as("carl", opener)
	start := r.stopController()
	r.allowed(alice, "annotate", "gate", "production", closeAt+"="+now()+"/2h", v1alpha1.CloseReasonAnnotation+"=incident 77")
	r.synced()
	r.hasLines(g, "close annotation alice incident 77")
	r.settled(g)
	r.allowed(carl, "annotate", "gate", "production", closeAt+"="+now()+"/1s")
	r.commitManifest(holdFile("production", strings.Replace(spec, "1m", "2m", 1))) // together with a new spec
	r.synced()
	r.hasLines(g, "close annotation alice incident 77", "close annotation carl ")
	r.settled(g)
	start()
	r.decided(g, metav1.ConditionFalse)
	r.synced() // strips the annotations of the handled requests
	r.decided(g, metav1.ConditionFalse)
	r.synced()
	r.settled(g)
	if g = r.get(g); g.Status.Memory.LastHandledLine != 2 || g.Annotations[v1alpha1.UnhandledAnnotation] != "" || g.Status.Requests[0].RequestedBy != "alice" {
		t.Errorf("annotations %v, status %+v", g.Annotations, g.Status)
	}
}
