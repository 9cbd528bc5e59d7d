package policies

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	openAt  = v1alpha1.OpenRequestedAtAnnotation
	openBy  = v1alpha1.OpenRequestedByAnnotation
	openWhy = v1alpha1.OpenReasonAnnotation
	closeAt = v1alpha1.CloseRequestedAtAnnotation
	closeBy = v1alpha1.CloseRequestedByAnnotation
)

// openings are commands that request to open the Gate production, or that prepare such a request.
var openings = []string{
	"annotate gate production " + openAt + "=NOW",
	"annotate --overwrite gate production " + openAt + "=NOW " + openWhy + "=hotfix",
	"annotate gates --all " + openAt + "=NOW",
	"annotate gate production " + openAt + "=NOW " + openBy + "=alice",
	"annotate gate production " + openAt + "=" + stamp(time.Now().Add(time.Hour)),
	"annotate gate production " + openAt + "=tomorrow",
	"annotate gate production " + openAt + "=",
	"annotate gate production " + openWhy + "=approved",
	"annotate gate production --dry-run=server " + openAt + "=NOW",
	`patch gate production --type=merge -p {"metadata":{"annotations":{"` + openAt + `":"NOW"}}}`,
	`patch gate production --type=json -p [{"op":"add","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt","value":"NOW"}]`,
	`patch gate production --type=json -p [{"op":"add","path":"/metadata/annotations","value":{"` + openAt + `":"NOW"}}]`,
	`patch gate production --type=json -p [{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt"}]`,
	"apply --server-side -f " + gateFile("production", map[string]string{openAt: now()}),
	"apply --server-side --force-conflicts --field-manager=kustomize-controller -f " + gateFile("production", map[string]string{openAt: now()}),
	"apply --server-side --force-conflicts --field-manager=gating-controller -f " + gateFile("production", map[string]string{openAt: now()}),
	"apply -f " + gateFile("production", map[string]string{openAt: now()}),
	"replace -f " + gateFile("production", map[string]string{openAt: now()}),
}

func TestOpenNeedsVerbForAnyPatch(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	patrick := w.as("patrick", w.role([]string{"get", "list", "patch", "update"}, []string{"gates"}))
	for _, p := range []*person{edith, patrick} {
		for _, command := range openings {
			w.refused(p, "user "+p.Name+" may not open gate "+w.Namespace+"/production: a request to open needs the verb open", command)
		}
	}
	w.decided(g, metav1.ConditionFalse)
}

func TestCloseRequestNeedsVerbClose(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	olga := w.as("olga", w.role([]string{"get", "patch", "open"}, []string{"gates"}))
	w.refused(olga, "user olga may not close gate "+w.Namespace+"/production: a request to close needs the verb close", "annotate gate production "+closeAt+"=NOW")
	w.refused(olga, "may not close", "annotate gate production close.gate.fluxcd.io/reason=x")
	w.allowed(olga, "annotate", "gate", "production", openAt+"="+now())
	w.decided(g, metav1.ConditionTrue)
}

func TestVerbIsPerGateAndNamespace(t *testing.T) {
	home, away := newWorld(t), newWorld(t)
	g := home.gate("production")
	home.gate("staging")
	other := away.gate("production")
	nora := home.as("nora", home.role([]string{"open"}, []string{"gates"}, "production"), editor, viewer)
	away.as("nora", editor, viewer)
	home.refused(nora, "user nora may not open gate "+home.Namespace+"/staging", "annotate gate staging "+openAt+"=NOW")
	away.refused(nora, "user nora may not open gate "+away.Namespace+"/production", "annotate gate production "+openAt+"=NOW")
	home.allowed(nora, "annotate", "gate", "production", openAt+"="+now())
	home.decided(g, metav1.ConditionTrue)
	away.decided(other, metav1.ConditionFalse)
}

func TestGateCreatedOpenNeedsVerb(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	nora := w.as("nora", w.role([]string{"open"}, []string{"gates"}, "production"), editor)
	request := map[string]string{openAt: now()}
	mayNot := func(p *person, name string) string {
		return "user " + p.Name + " may not open gate " + w.Namespace + "/" + name
	}
	for _, tc := range []struct {
		p             *person
		cause         string
		command, name string
		annotations   map[string]string
	}{
		{edith, mayNot(edith, "production"), "create", "production", request},
		{edith, mayNot(edith, "production-"), "create", "generateName: production-", request},
		{nora, mayNot(nora, "production"), "create", "generateName: production", request}, // the verb is for another name
		{edith, "may not open", "apply", "production", request},
		{edith, "may not open", "apply --server-side", "production", request},
		{edith, mayNot(edith, "production"), "create", "production", map[string]string{openAt: now(), openBy: "alice"}},
		{edith, "may not open", "create", "production", map[string]string{openWhy: "approved"}},
		{edith, "may not close", "create", "production", map[string]string{closeAt: now()}},
	} {
		w.refused(tc.p, tc.cause, append(strings.Fields(tc.command), "-f", gateFile(tc.name, tc.annotations))...)
	}
}

func TestRewrittenRequestOpensNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at)
	w.decided(g, metav1.ConditionTrue)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+at) // on a tie, close
	w.decided(g, metav1.ConditionFalse)
	for _, pair := range []string{openAt + "=NOW", openAt + "=" + strings.Replace(at, "Z", "+00:00", 1), openWhy + "=approved"} {
		w.refused(edith, "may not open", "annotate --overwrite gate production "+pair)
	}
	w.refused(edith, "may not close", "annotate --overwrite gate production "+closeAt+"=2020-01-01T00:00:00Z")
	w.allowed(edith, "annotate", "gate", "production", openAt+"-")
	w.stamped(g, openBy, "")
	w.refused(edith, "may not open", "annotate gate production "+openAt+"="+at)
	w.refused(edith, "may not open", "annotate gate production "+openAt+"=NOW")
	w.refused(edith, "may not open", `patch gate production --type=json -p [{"op":"remove","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedAt"},`+
		`{"op":"add","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt","value":"NOW"}]`)
	w.decided(g, metav1.ConditionFalse)
}

// The API server accepts other spellings, but the controller does not read them.
func TestOtherSpellingsOpenNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	for _, key := range []string{
		"open.gate.fluxcd.io/requestedat", "open.gate.fluxcd.io/RequestedAt", "open.gate.fluxcd.io/REQUESTEDAT", "OPEN.gate.fluxcd.io/requestedAt",
		"open.gate.fluxcd.io/requestedAt ", " open.gate.fluxcd.io/requestedAt", "open.gate.fluxcd.io/requestedAt\t", "open.gate.fluxcd.io/requestedAt\u200b",
		"open.gate.fluxcd.io./requestedAt", "open.gate.fluxcd.io//requestedAt", "open.gate.fluxcd.io/requestedAt/", "open.gate.fluxcd.io/requested\u0410t",
		"open.gate.fluxcd.io~1requestedAt", "open.gate.fluxcd.io%2FrequestedAt", "open.gate.toolkit.fluxcd.io/requestedAt", "gating.toolkit.fluxcd.io/requestedAt",
		"open.gates.fluxcd.io/requestedAt", "requestedAt", "open", "open.gate.fluxcd.io/requested-at", "reconcile.fluxcd.io/open",
	} {
		// A label value has no colons.
		for field, value := range map[string]string{"annotations": now(), "labels": time.Now().UTC().Format("2006-01-02T150405Z")} {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]string{key: value}}})
			w.Must(err)
			_, _ = edith.kubectl(w.Context(), w.Namespace, "patch", "gate", "production", "--type=merge", "-p", string(patch))
		}
	}
	w.allowed(edith, "label gate production "+openAt+"=x")
	g = w.get(g)
	if len(g.Annotations) < 10 || len(g.Labels) < 10 {
		t.Errorf("too few spellings were accepted: %q, %q", slices.Collect(maps.Keys(g.Annotations)), slices.Collect(maps.Keys(g.Labels)))
	}
	w.is("the annotation", g.Annotations[openAt], "")
	w.decided(g, metav1.ConditionFalse)
	if g.LatestRequest() != nil || len(g.Status.Memory.HandledRequests) > 0 {
		t.Errorf("a request was handled: %+v", g.Status.Requests)
	}
}

const (
	proceed     = v1alpha1.ProceedRequestedAtAnnotation
	requestedBy = v1alpha1.ProceedRequestedByAnnotation
	why         = v1alpha1.ProceedReasonAnnotation
)

// proceeds are commands that request that a release proceed, or that prepare such a request.
var proceeds = []string{
	"annotate gate production " + proceed + "=NOW",
	"annotate --overwrite gate production " + proceed + "=NOW " + why + "=flake",
	"annotate gates --all " + proceed + "=NOW",
	"annotate gate production " + proceed + "=NOW " + requestedBy + "=alice",
	"annotate gate production " + proceed + "=" + stamp(time.Now().Add(time.Hour)),
	"annotate gate production " + proceed + "=",
	"annotate gate production " + why + "=approved",
	`patch gate production --type=merge -p {"metadata":{"annotations":{"` + proceed + `":"NOW"}}}`,
	`patch gate production --type=json -p [{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/proceed.gate.fluxcd.io~1requestedAt"}]`,
	"apply --server-side -f " + gateFile("production", map[string]string{proceed: now()}),
	"apply --server-side --force-conflicts --field-manager=gating-controller -f " + gateFile("production", map[string]string{proceed: now()}),
	"apply -f " + gateFile("production", map[string]string{proceed: now()}),
	"replace -f " + gateFile("production", map[string]string{proceed: now()}),
}

// A request to proceed releases the waiting targets.
func TestProceedNeedsVerbOpen(t *testing.T) {
	w := newWorld(t)
	w.gate("production")
	for _, p := range []*person{
		w.as("edith", editor, viewer), w.as("carol", w.role([]string{"get", "list", "patch", "update", "close"}, []string{"gates"})),
	} {
		for _, command := range proceeds {
			w.refused(p, "user "+p.Name+" may not make the release of gate "+w.Namespace+"/production proceed: that needs the verb open", command)
		}
	}
}

// The Gate requires approvals by other users. A single user must not skip its waves.
func TestProceedNeedsApprovalByOthers(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(1)
	olga, alice, grace := w.as("olga", opener), w.as("alice", opener, approver), w.as("grace", emergencyOpener)
	w.refused(olga, "user olga may not make the release of gate "+w.Namespace+"/production proceed: with spec.approvals.openRequests that needs the verb approve or emergency", "annotate gate production "+proceed+"=NOW")
	w.Edit(g, func() {
		g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{}, Exceptions: &v1alpha1.ApprovalRule{Required: 2}}
	})
	w.allowed(olga, "annotate", "--overwrite", "gate", "production", proceed+"="+nowNano())
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}} })
	for _, p := range []*person{alice, grace} {
		w.allowed(p, "annotate", "--overwrite", "gate", "production", proceed+"="+nowNano())
		w.stamped(g, requestedBy, p.Name)
	}
}

func TestProceedIsStampedWithUser(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob := w.as("alice", opener), w.as("bob", opener)
	w.allowed(alice, "annotate", "gate", "production", proceed+"="+now(), requestedBy+"=bob", why+"=flake")
	w.stamped(g, requestedBy, "alice")
	w.stamped(g, why, "flake")
	for _, forgery := range []string{requestedBy + "=bob", requestedBy + "-", requestedBy + "="} {
		w.allowed(alice, "annotate", "--overwrite", "gate", "production", forgery)
		w.stamped(g, requestedBy, "alice")
	}
	w.allowed(bob, "annotate", "--overwrite", "gate", "production", proceed+"="+nowNano())
	w.stamped(g, requestedBy, "bob")
	w.stamped(g, why, "") // bob gave no reason

	// With the verb patch alone, a user cannot withdraw the request, or leave another name on it.
	patrick := w.as("patrick", w.role([]string{"get", "patch"}, []string{"gates"}))
	w.refused(patrick, "may not withdraw the request that the release of gate "+w.Namespace+"/production proceed", "annotate gate production "+proceed+"-")
	w.allowed(bob, "annotate", "gate", "production", proceed+"-")
	w.stamped(g, requestedBy, "")
	w.allowed(patrick, "annotate", "gate", "production", requestedBy+"=bob")
	w.stamped(g, requestedBy, "")
	w.refused(alice, "may not change annotations other than those of requests", "annotate gate production proceed.gate.fluxcd.io/other=x")
}

// All annotations of a Gate together are limited to 256 KiB. Without the policy, a user who may only patch could fill them, so that no
// close request fits.
func TestFullRecordBlocksNoClose(t *testing.T) {
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.decided(g, metav1.ConditionTrue)
	mallory := w.as("mallory", w.role([]string{"get", "patch"}, []string{"gates"}))
	carl := w.as("carl", w.role([]string{"get", "patch", "close"}, []string{"gates"}))
	filler := `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"` + strings.Repeat("x", 256<<10-100) + `"}}}`
	w.refused(mallory, "more than 4096 characters", "patch gate production --type=merge -p "+filler)
	w.allowed(carl, "annotate", "gate", "production", closeAt+"="+now()+"/2h")
}
