package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	receiverViewer = "gate-receiver-viewer"
	receiverEditor = "gate-receiver-editor"
	calendarViewer = "calendar-feed-viewer"
	calendarEditor = "calendar-feed-editor"

	deliveries = v1alpha1.DeliveriesAnnotation
)

// receiver reads a GateReceiver.
func (w *world) receiver(name string) *v1alpha1.GateReceiver {
	w.Helper()
	r := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(r)
	return r
}

// mayNot returns the refusal of a write of a receiver by a person.
func (w *world) mayNot(p *person, do, what, gate, verbs string) string {
	return fmt.Sprintf("user %s may not %s a receiver that %s gate %s/%s: it needs the %s on gates.gating.toolkit.fluxcd.io", p.Name, do, what, w.Namespace, gate, verbs)
}

// tenGates is spec.gateRefs with the maximum number of Gates, the last one with the given name.
func tenGates(last string) string {
	names := make([]string, 9)
	for i := range names {
		names[i] = fmt.Sprintf(`{"name":"gate-%d"}`, i)
	}
	return "[" + strings.Join(append(names, `{"name":"`+last+`"}`), ",") + "]"
}

// namesOfTen returns the names of tenGates without the last, and production.
func namesOfTen() []string {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	return slices.Concat(names, []string{"production"})
}

// withActionExpr returns the fields of a spec with an actionExpr instead of an action.
func withActionExpr(expression string) string {
	content, err := json.Marshal(map[string]any{"action": nil, "actionExpr": expression})
	if err != nil {
		panic(err)
	}
	return string(content)
}

func TestReceiverCreationNeedsVerbs(t *testing.T) {
	w := newWorld(t)
	rita := w.as("rita", receiverEditor, receiverViewer, editor, viewer)
	carl := w.as("carl", receiverEditor, receiverViewer, w.role([]string{"close"}, []string{"gates"}))
	olga := w.as("olga", receiverEditor, receiverViewer, w.role([]string{"open"}, []string{"gates"}))
	both := []string{"open", "close"}
	nora := w.as("nora", receiverEditor, receiverViewer, w.role(both, []string{"gates"}, "production"))
	tina := w.as("tina", receiverEditor, receiverViewer, w.role(both, []string{"gates"}, namesOfTen()...))
	opens := func(p *person, gate string) string { return w.mayNot(p, "create", "opens", gate, "verb open") }
	closes := func(p *person, gate string) string { return w.mayNot(p, "create", "closes", gate, "verb close") }
	either := func(p *person, gate string) string {
		return w.mayNot(p, "create", "opens and closes", gate, "verbs open and close")
	}
	const one = "exactly one of action and actionExpr must be set"
	for _, a := range []struct {
		p           *person
		spec, cause string
	}{
		{rita, "", opens(rita, "production")},
		{rita, `{"action":"close"}`, closes(rita, "production")},
		{rita, `{"suspend":true}`, opens(rita, "production")},
		{rita, `{"gateRefs":[{"name":"none-yet"}]}`, opens(rita, "none-yet")},
		{carl, "", opens(carl, "production")},
		{olga, `{"action":"close"}`, closes(olga, "production")},
		{nora, `{"gateRefs":[{"name":"production"},{"name":"staging"}]}`, opens(nora, "staging")},
		{nora, `{"gateRefs":[{"name":"staging"},{"name":"production"}]}`, opens(nora, "staging")},
		{tina, `{"gateRefs":` + tenGates("staging") + `}`, opens(tina, "staging")},
		{tina, `{"action":"close","gateRefs":` + tenGates("staging") + `}`, closes(tina, "staging")},
		{tina, `{"action":null,"actionExpr":"'open'","gateRefs":` + tenGates("staging") + `}`, either(tina, "staging")},
		{carl, `{"action":"'close'"}`, `spec.action: Unsupported value: "'close'"`},
		{carl, `{"action":"close","actionExpr":"'open'"}`, one},
		{carl, `{"action":null}`, one},
		// A string literal is an expression, too.
		{carl, withActionExpr(`'close'`), either(carl, "production")},
		{olga, withActionExpr(`"open"`), either(olga, "production")},
		{olga, withActionExpr(`req.ref == "main" ? "open" : ""`), either(olga, "production")},
		{rita, withActionExpr(`vars`), either(rita, "production")},
	} {
		w.refused(a.p, a.cause, "create", "-f", receiverFile("ci", a.spec))
	}
	for _, command := range []string{"create --validate=false", "create --dry-run=server", "apply", "apply --server-side", "apply --server-side --force-conflicts --field-manager=gating-controller"} {
		w.refused(carl, opens(carl, "production"), command+" -f "+receiverFile("ci", ""))
	}
	w.refused(carl, opens(carl, "production"), "create", "-f", receiverFile("generateName: ci-", ""))
}

// Two checks for each of ten Gates are the maximum cost of the policy.
func TestOpenerAndCloserMayCreateReceiverForTenGates(t *testing.T) {
	w := newWorld(t)
	tina := w.as("tina", receiverEditor, receiverViewer, w.role([]string{"open", "close"}, []string{"gates"}, namesOfTen()...))
	olga := w.as("olga", receiverEditor, receiverViewer, w.role([]string{"open"}, []string{"gates"}))
	carl := w.as("carl", receiverEditor, receiverViewer, w.role([]string{"close"}, []string{"gates"}))
	ten := `{"gateRefs":` + tenGates("production") + `,`
	w.allowed(tina, "create", "-f", receiverFile("either", ten+`"action":null,"actionExpr":"req.ok ? 'open' : 'close'"}`))
	w.allowed(tina, "apply", "--server-side", "-f", receiverFile("applied", ten+`"action":null,"actionExpr":"req.ok ? 'open' : 'close'"}`))
	w.allowed(tina, "patch", "gatereceiver", "either", "--type=merge", "-p", `{"spec":{"filter":"`+strings.Repeat("true && ", 500)+`true"}}`)
	w.allowed(olga, "create", "-f", receiverFile("opens", ten+`"action":"open"}`))
	w.allowed(carl, "create", "-f", receiverFile("closes", ten+`"action":"close"}`))
	w.is("the number of gates", len(w.receiver("either").Spec.GateRefs), 10)
	w.refused(tina, "spec.gateRefs: Too many", "create", "-f", receiverFile("eleven", strings.Replace(ten, "[", `[{"name":"gate-10"},`, 1)+`"action":"open"}`))
	w.refused(tina, "spec.gateRefs", "create", "-f", receiverFile("none", `{"gateRefs":[]}`))
	w.refused(tina, "Duplicate value", "create", "-f", receiverFile("twice", `{"gateRefs":[{"name":"production"},{"name":"production"}]}`))
}

func TestReceiverChangeNeedsVerbs(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	rita := w.as("rita", receiverEditor, receiverViewer, editor, viewer, w.role([]string{"close"}, []string{"gates"}))
	patty := w.as("patty", w.role([]string{"get", "patch"}, []string{"gatereceivers"}))
	w.allowed(clara, "create", "-f", receiverFile("ci", `{"filter":"req.ok","events":null}`))
	for _, p := range []*person{rita, patty} {
		cause := w.mayNot(p, "change the spec of", "opens", "production", "verb open")
		_, either, _ := strings.Cut(cause, " the spec of") // a partial apply removes no fields that others own
		for _, change := range []string{
			`{"secretRef":{"name":"known-to-` + p.Name + `"}}`, `{"type":"gitlab"}`, `{"filter":null}`, `{"filter":"true"}`, `{"window":"8784h"}`,
			`{"interval":"1s"}`, `{"suspend":true}`, `{"gateRefs":[{"name":"production"},{"name":"staging"}]}`, `{"type":"github","events":["push"]}`,
		} {
			w.refused(p, cause, `patch gatereceiver ci --type=merge -p {"spec":`+change+`}`)
			w.refused(p, either, "apply --server-side --force-conflicts -f "+receiverFile("ci", change))
		}
		for patch, cause := range map[string]string{
			`{"spec":{"type":"generic-oidc","secretRef":null,"oidcProviders":[{"issuerURL":"https://x","validations":[{"expression":"true","message":"x"}]}]}}`: cause,
			`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"1"}},"spec":{"filter":""}}`:                                                         cause,
			`{"spec":` + withActionExpr("'close'") + `}`: w.mayNot(p, "change the spec of", "opens and closes", "production", "verbs open and close"),
			`{"spec":{"gateRefs":[{"name":"staging"}]}}`: w.mayNot(p, "change the spec of", "opens", "staging", "verb open"),
		} {
			w.refused(p, cause, "patch gatereceiver ci --type=merge -p "+patch)
		}
	}
	w.refused(rita, w.mayNot(rita, "change the spec of", "opens", "production", "verb open"), "replace -f "+receiverFile("ci", ""))
	w.refused(rita, w.mayNot(rita, "create", "opens", "production", "verb open"), "create --dry-run=server -f "+receiverFile("another", ""))
}

// The user needs the verbs for the actions that the receiver can take after the change.
func TestCloserMayCreateClosingReceivers(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	carl := w.as("carl", receiverEditor, receiverViewer, w.role([]string{"close"}, []string{"gates"}))
	w.allowed(carl, "create", "-f", receiverFile("ci", `{"action":"close"}`))
	w.allowed(carl, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":{"filter":"req.failed","window":"1h"}}`)
	either := w.mayNot(carl, "change the spec of", "opens and closes", "production", "verbs open and close")
	for change, cause := range map[string]string{
		`{"action":"open"}`:                        w.mayNot(carl, "change the spec of", "opens", "production", "verb open"),
		withActionExpr(`"open"`):                   either,
		withActionExpr(`'close'`):                  either,
		withActionExpr("close"):                    either,
		`{"action":"close "}`:                      `spec.action: Unsupported value: "close "`,
		`{"actionExpr":"'open'"}`:                  "exactly one of action and actionExpr must be set",
		`{"action":null}`:                          "exactly one of action and actionExpr must be set",
		`{"action":"close","actionExpr":"'open'"}`: "exactly one of action and actionExpr must be set",
	} {
		w.refused(carl, cause, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":`+change+`}`)
	}
	w.allowed(clara, "create -f "+receiverFile("opens", ""))
	w.allowed(carl, "patch", "gatereceiver", "opens", "--type=merge", "-p", `{"spec":{"action":"close"}}`)
	w.refused(carl, "may not change the spec of a receiver that opens gate", "patch", "gatereceiver", "opens", "--type=merge", "-p", `{"spec":{"action":"open"}}`)
}

func TestReceiverMetadataIsWritable(t *testing.T) {
	w := newWorld(t)
	rita := w.as("rita", receiverEditor, receiverViewer)
	w.allowed(w.clusterAdmin(), "create", "-f", receiverFile("ci", ""))
	w.allowed(rita, "annotate", "gatereceiver", "ci", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(rita, "label", "gatereceiver", "ci", "team=a")
	w.allowed(rita, "get gatereceivers")
	w.allowed(rita, "delete", "gatereceiver", "ci")
	w.refused(rita, w.mayNot(rita, "create", "opens", "production", "verb open"), "create", "-f", receiverFile("ci", ""))
}

// Git cannot remove a field that another manager owns, too: here a Gate in the list.
func TestOwnershipOfReceiverSpecNeedsVerbs(t *testing.T) {
	w := newWorld(t)
	flux := w.as("flux", receiverEditor, receiverViewer, opener)
	rita := w.as("rita", receiverEditor, receiverViewer, editor)
	apply := func(manager, spec string, more ...string) []string {
		return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", receiverFile("ci", spec)}, more...)
	}
	const two = `{"gateRefs":[{"name":"production"},{"name":"staging"}]}`
	w.allowed(flux, apply("kustomize-controller", two)...)
	part := func(spec string) string {
		return `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci"},"spec":` + spec + `}`
	}
	cause := w.mayNot(rita, "change who owns the spec of", "opens", "production", "verb open")
	for _, args := range [][]string{
		apply("evil", two), apply("evil", two, "--force-conflicts"),
		{"apply", "--server-side", "--validate=false", "--field-manager=evil", "-f", part(`{"gateRefs":[{"name":"staging"}]}`)},
		{"apply", "--server-side", "--validate=false", "--field-manager=evil", "-f", part(`{"secretRef":{"name":"token"}}`)},
		{"patch", "gatereceiver", "ci", "--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`},
		{"patch", "gatereceiver", "ci", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"evil"}]`},
	} {
		w.refused(rita, cause, args...)
	}
	w.allowed(rita, "apply", "--server-side", "--validate=false", "--field-manager=labels", "-f",
		`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci","labels":{"a":"b"}}}`)
	w.allowed(flux, apply("kustomize-controller", "")...)
	w.is("the gates", w.receiver("ci").Spec.GateRefs, []v1alpha1.GateReference{{Name: "production"}})
}

// Users paste the path into the settings of a sender, next to the token.
func TestOnlyControllerWritesReceiverStatus(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	stan := w.as("stan", w.role([]string{"get", "patch", "update"}, []string{"gatereceivers", "gatereceivers/status"}))
	w.allowed(clara, "create -f "+receiverFile("ci", ""))
	const forged = `"status":{"webhookPath":"/hook/of-mallory"}}`
	const status = " --subresource=status --validate=false"
	file := strings.Replace(receiverFile("ci", ""), `"spec"`, forged[:len(forged)-1]+`,"spec"`, 1)
	write := "patch gatereceiver ci --subresource=status --type=merge -p {" + forged
	for _, p := range []*person{stan, clara} {
		cause := "user " + p.Name + " may not write the status of gate receiver " + w.Namespace + "/ci: it has the path of its webhooks, so only the gating-controller may write it"
		w.refused(p, cause, write)
		w.refused(p, cause, "replace -f "+file+status)
		w.refused(p, cause, `apply --server-side --force-conflicts --field-manager=gating-controller -f {"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci"},`+forged+status)
	}
	w.refused(w.as("otto", viewer, editor, opener, receiverViewer, receiverEditor), `User "otto" cannot`, write)
	w.allowed(clara, `patch gatereceiver ci --type=merge -p {"spec":{"filter":"true"},`+forged)
	w.allowed(clara, "create -f "+strings.Replace(file, `"name":"ci"`, `"name":"born"`, 1))
	for _, name := range []string{"ci", "born"} {
		if path := w.receiver(name).Status.WebhookPath; strings.Contains(path, "mallory") {
			t.Errorf("%s accepts webhooks at %s", name, path)
		}
	}
	if out := w.allowed(w.as(controllerName), write+" --dry-run=server -o=yaml"); !strings.Contains(out, "webhookPath: /hook/of-mallory") {
		t.Errorf("the controller cannot write the status: %s", out)
	}
}

// received makes the controller write the request of a webhook, with additional annotations.
func (w *world) received(g *v1alpha1.Gate, more ...string) {
	w.Helper()
	w.allowed(w.as(controllerName), append([]string{"annotate", "--overwrite", "gate", g.Name, openAt + "=" + now(), openBy + "=GateReceiver " + w.Namespace + "/ci"}, more...)...)
}

// Without the digests, a user could replay a webhook.
func TestOnlyControllerWritesAcceptedWebhooks(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	check := func(want string) {
		t.Helper()
		got, ok := w.get(g).Annotations[deliveries]
		w.is("deliveries", got, want)
		w.is("there are deliveries", ok, want != "")
	}
	for _, p := range []*person{alice, edith, w.clusterAdmin()} {
		w.allowed(p, "annotate gate production "+deliveries+"=forged")
		check("")
	}
	taken := strings.Repeat("0123456789abcdef ", 2500) // the maximum length
	w.received(g, deliveries+"="+taken)
	check(taken)
	forged := gateFile("production", map[string]string{deliveries: "forged"})
	for _, p := range []*person{alice, edith, w.clusterAdmin()} {
		for _, command := range []string{
			"annotate gate production " + deliveries + "-",
			"annotate --overwrite gate production " + deliveries + "=",
			`patch gate production --type=merge -p {"metadata":{"annotations":{"` + deliveries + `":null}}}`,
			`patch gate production --type=json -p [{"op":"remove","path":"/metadata/annotations/gating.toolkit.fluxcd.io~1deliveries"}]`,
			`apply --server-side --force-conflicts --field-manager=gating-controller --validate=false -f {"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"production"}}`,
		} {
			w.allowed(p, command)
			check(taken)
		}
	}
	w.allowed(alice, "annotate --overwrite gate production "+deliveries+"=forged "+closeAt+"=NOW")
	check(taken)
	for _, command := range []string{
		`patch gate production --type=json -p [{"op":"remove","path":"/metadata/annotations"}]`, "replace -f " + gateFile("production", nil), "replace -f " + forged,
		"apply -f " + forged, "apply -f " + gateFile("production", nil), // removes the annotation if it was applied
		"apply --server-side --force-conflicts -f " + gateFile("production", nil),
	} {
		w.allowed(edith, command)
		check(taken)
	}
	w.allowed(edith, "create -f "+gateFile("born", map[string]string{deliveries: "forged", "a": "b"}))
	w.is("the annotations after creation", w.ReadGate("born").Annotations, map[string]string{"a": "b"})
	w.allowed(w.as(controllerName), "annotate gate production "+deliveries+"-")
	check("")
}

// A close request of a person must not look like that of a webhook, because any webhook can end those.
func TestOnlyControllerAttributesRequestsToWebhooks(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	const received, opened = v1alpha1.CloseReceivedAnnotation, v1alpha1.OpenReceivedAnnotation
	at := now()
	w.received(g, received+"="+at, closeAt+"="+at, closeBy+"=GateReceiver "+w.Namespace+"/ci")
	alice := w.as("alice", opener)
	check := func() {
		t.Helper()
		annotations := w.get(g).Annotations
		w.is("received", []string{annotations[received], annotations[opened]}, []string{at, ""})
	}
	for _, p := range []*person{alice, w.as("edith", editor, viewer), w.clusterAdmin()} {
		w.allowed(p, "annotate --overwrite gate production "+received+"=forged "+opened+"=forged")
		check()
		w.allowed(p, "annotate gate production "+received+"-")
		check()
	}
	const forged = "2026-11-23T12:00:00Z"
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", received+"="+forged, closeAt+"="+forged, closeBy+"=GateReceiver "+w.Namespace+"/ci")
	w.stamped(g, closeBy, "alice")
	check()
}

func TestReceiverInGitNeedsVerbsOfApplier(t *testing.T) {
	r := newGit(t, receiverEditor, receiverViewer, editor, viewer)
	commit := func(spec string) {
		r.Helper()
		r.commitManifest(receiverFile("ci", spec))
	}
	tenant := r.as(r.tenant)
	commit("")
	r.failed(r.mayNot(tenant, "create", "opens", "production", "verb open"))
	r.as(r.tenant, r.role([]string{"open"}, []string{"gates"}, "production"))
	r.synced()
	r.allowed(r.as("rita", receiverEditor, receiverViewer), "annotate", "gatereceiver", "ci", "reconcile.fluxcd.io/requestedAt=1")
	r.synced()
	written := func() (owned []metav1.ManagedFieldsEntry) { // by clients other than the controller
		return slices.DeleteFunc(r.receiver("ci").ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "status" })
	}
	before := written()
	r.synced()
	r.is("what kustomize-controller writes again", written(), before)
	commit(withActionExpr("req.ok ? 'open' : 'close'"))
	r.failed(r.mayNot(tenant, "change the spec of", "opens and closes", "production", "verbs open and close"))
	r.is("the action", r.receiver("ci").Spec.Action, v1alpha1.RequestOpen)
}
