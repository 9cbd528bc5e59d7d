package policies

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// A string literal is an expression as well.
var expressions = []string{`"open"`, `'close'`, "close", `req.ref == "main" ? "open" : ""`, `vars`}

// asks is what of a spec says what is requested, in place of the action.
func asks(expression string) string {
	content, err := json.Marshal(map[string]any{"action": nil, "actionExpr": expression})
	if err != nil {
		panic(err)
	}
	return string(content)
}

func TestNobodyCreatesAReceiverWithoutTheVerbs(t *testing.T) {
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
	type attempt struct {
		p           *person
		spec, cause string
	}
	attempts := []attempt{
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
		{carl, `{"action":"close","actionExpr":"'open'"}`, "exactly one of action and actionExpr must be set"},
		{carl, `{"action":null}`, "exactly one of action and actionExpr must be set"},
	}
	for _, expression := range expressions {
		for _, p := range []*person{rita, carl, olga} {
			attempts = append(attempts, attempt{p, asks(expression), either(p, "production")})
		}
	}
	for _, a := range attempts {
		w.noReceiver(a.p, a.cause, "create", "-f", w.receive("ci", a.spec))
	}
	for _, command := range []string{"create", "create --validate=false", "create --dry-run=server", "apply", "apply --server-side", "apply --server-side --force-conflicts --field-manager=gating-controller"} {
		w.noReceiver(carl, opens(carl, "production"), append(strings.Fields(command), "-f", w.receive("ci", ""))...)
	}
	w.noReceiver(carl, opens(carl, "production"), "create", "-f", w.receive("generateName: ci-", ""))
	w.noReceiver(rita, `user rita may not open`, "create", "-f", w.manifest("name: ci", map[string]string{openAt: now()}))
	for _, p := range []*person{w.as("alice", opener), w.as("victor", viewer), w.as("edith", editor)} {
		w.noReceiver(p, `cannot create resource "gatereceivers"`, "create", "--validate=false", "-f", w.receive("ci", ""))
	}
}

// Two checks for each of ten Gates are the most that the policy has to afford.
func TestWhoMayOpenAndCloseCreatesAReceiverForTenGates(t *testing.T) {
	w := newWorld(t)
	tina := w.as("tina", receiverEditor, receiverViewer, w.role([]string{"open", "close"}, []string{"gates"}, namesOfTen()...))
	olga := w.as("olga", receiverEditor, receiverViewer, w.role([]string{"open"}, []string{"gates"}))
	carl := w.as("carl", receiverEditor, receiverViewer, w.role([]string{"close"}, []string{"gates"}))
	ten := `{"gateRefs":` + tenGates("production") + `,`
	w.allowed(tina, "create", "-f", w.receive("either", ten+`"action":null,"actionExpr":"req.ok ? 'open' : 'close'"}`))
	w.allowed(tina, "apply", "--server-side", "-f", w.receive("applied", ten+`"action":null,"actionExpr":"req.ok ? 'open' : 'close'"}`))
	w.allowed(tina, "patch", "gatereceiver", "either", "--type=merge", "-p", `{"spec":{"filter":"`+strings.Repeat("true && ", 500)+`true"}}`)
	w.allowed(olga, "create", "-f", w.receive("opens", ten+`"action":"open"}`))
	w.allowed(carl, "create", "-f", w.receive("closes", ten+`"action":"close"}`))
	if got := len(w.receiver("either").Spec.GateRefs); got != 10 {
		t.Errorf("%d gates", got)
	}
	w.noReceiver(tina, "spec.gateRefs: Too many", "create", "-f", w.receive("eleven", strings.Replace(ten, "[", `[{"name":"gate-10"},`, 1)+`"action":"open"}`))
	w.noReceiver(tina, "spec.gateRefs", "create", "-f", w.receive("none", `{"gateRefs":[]}`))
	w.noReceiver(tina, "Duplicate value", "create", "-f", w.receive("twice", `{"gateRefs":[{"name":"production"},{"name":"production"}]}`))
}

func TestNobodyChangesAReceiverWithoutTheVerbs(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	rita := w.as("rita", receiverEditor, receiverViewer, editor, viewer, w.role([]string{"close"}, []string{"gates"}))
	patty := w.as("patty", w.role([]string{"get", "patch"}, []string{"gatereceivers"}))
	w.allowed(clara, "create", "-f", w.receive("ci", `{"filter":"req.ok","events":null}`))
	for _, p := range []*person{rita, patty} {
		cause := w.mayNot(p, "change the spec of", "opens", "production", "verb open")
		for what, change := range map[string]string{
			"secretRef": `{"secretRef":{"name":"known-to-` + p.Name + `"}}`, "type": `{"type":"gitlab"}`, "filter": `{"filter":null}`,
			"another filter": `{"filter":"true"}`, "a window": `{"window":"8784h"}`, "interval": `{"interval":"1s"}`, "suspend": `{"suspend":true}`,
			"one gate more":  `{"gateRefs":[{"name":"production"},{"name":"staging"}]}`,
			"OIDC providers": `{"type":"generic-oidc","secretRef":null,"oidcProviders":[{"issuerURL":"https://x","validations":[{"expression":"true","message":"x"}]}]}`,
			"events":         `{"type":"github","events":["push"]}`,
		} {
			t.Run(what+" by "+p.Name, func(t *testing.T) {
				w := w.on(t)
				w.refusedReceiver(p, "ci", cause, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":`+change+`}`)
				if what == "OIDC providers" {
					return // only together with the Secret, which is invalid
				}
				_, either, _ := strings.Cut(cause, " the spec of") // who applies takes nothing away that is not theirs
				w.refusedReceiver(p, "ci", either, "apply", "--server-side", "--force-conflicts", "-f", w.receive("ci", change))
			})
		}
		w.refusedReceiver(p, "ci", w.mayNot(p, "change the spec of", "opens and closes", "production", "verbs open and close"),
			"patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":`+asks("'close'")+`}`)
		w.refusedReceiver(p, "ci", w.mayNot(p, "change the spec of", "opens", "staging", "verb open"),
			"patch", "gatereceiver", "ci", "--type=json", "-p", `[{"op":"replace","path":"/spec/gateRefs/0/name","value":"staging"}]`)
		w.refusedReceiver(p, "ci", cause, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"1"}},"spec":{"filter":""}}`)
	}
	w.refusedReceiver(rita, "ci", w.mayNot(rita, "change the spec of", "opens", "production", "verb open"), "replace", "-f", w.receive("ci", ""))
	w.refusedReceiver(rita, "ci", w.mayNot(rita, "create", "opens", "production", "verb open"), "create", "--dry-run=server", "-f", w.receive("another", ""))
	update := w.receiver("ci")
	if err := w.Rewrite(update, func() error {
		update.Spec.SecretRef.Name = "known"
		return rita.Client.Update(w.Context(), update)
	}); !apierrors.IsForbidden(err) {
		t.Errorf("an update in Go: %v", err)
	}
	w.refusedReceiver(patty, "ci", `cannot update resource "gatereceivers"`, "replace", "--raw",
		"/apis/gating.toolkit.fluxcd.io/v1alpha1/namespaces/"+w.Namespace+"/gatereceivers/ci", "-f", w.receive("ci", ""))
	w.refusedReceiver(patty, "ci", `cannot delete resource "gatereceivers"`, "delete", "gatereceiver", "ci")
}

// The verb is that of what the receiver can do after the change.
func TestWhoMayOnlyCloseHasReceiversThatClose(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	carl := w.as("carl", receiverEditor, receiverViewer, w.role([]string{"close"}, []string{"gates"}))
	w.allowed(carl, "create", "-f", w.receive("ci", `{"action":"close"}`))
	w.allowed(carl, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":{"filter":"req.failed","window":"1h"}}`)
	either := w.mayNot(carl, "change the spec of", "opens and closes", "production", "verbs open and close")
	for change, cause := range map[string]string{
		`{"action":"open"}`:                        w.mayNot(carl, "change the spec of", "opens", "production", "verb open"),
		asks(`"open"`):                             either,
		asks(`'close'`):                            either,
		asks("close"):                              either,
		`{"action":"close "}`:                      `spec.action: Unsupported value: "close "`,
		`{"actionExpr":"'open'"}`:                  "exactly one of action and actionExpr must be set",
		`{"action":null}`:                          "exactly one of action and actionExpr must be set",
		`{"action":"close","actionExpr":"'open'"}`: "exactly one of action and actionExpr must be set",
	} {
		w.refusedReceiver(carl, "ci", cause, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":`+change+`}`)
	}
	w.allowed(clara, "create", "-f", w.receive("opens", ""))
	w.allowed(carl, "patch", "gatereceiver", "opens", "--type=merge", "-p", `{"spec":{"action":"close"}}`)
	w.refusedReceiver(carl, "opens", "may not change the spec of a receiver that opens gate", "patch", "gatereceiver", "opens", "--type=merge", "-p", `{"spec":{"action":"open"}}`)
}

func TestTheMetadataOfAReceiverIsFree(t *testing.T) {
	w := newWorld(t)
	rita := w.as("rita", receiverEditor, receiverViewer)
	w.allowed(w.clusterAdmin(), "create", "-f", w.receive("ci", ""))
	generation := w.receiver("ci").Generation
	w.allowed(rita, "annotate", "gatereceiver", "ci", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(rita, "label", "gatereceiver", "ci", "team=a")
	w.allowed(rita, "get", "gtrcv")
	if r := w.receiver("ci"); r.Generation != generation || r.Labels["team"] != "a" {
		t.Errorf("got %+v", r.ObjectMeta)
	}
	w.allowed(rita, "delete", "gatereceiver", "ci")
	w.noReceiver(rita, w.mayNot(rita, "create", "opens", "production", "verb open"), "create", "-f", w.receive("ci", ""))
}

// Git cannot remove any more what somebody co-owns: here a Gate from the list.
func TestNobodyOwnsTheSpecOfAReceiverWithoutTheVerbs(t *testing.T) {
	w := newWorld(t)
	flux := w.as("flux", receiverEditor, receiverViewer, opener)
	rita := w.as("rita", receiverEditor, receiverViewer, editor)
	apply := func(manager, spec string, more ...string) []string {
		return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", w.receive("ci", spec)}, more...)
	}
	const two = `{"gateRefs":[{"name":"production"},{"name":"staging"}]}`
	w.allowed(flux, apply("kustomize-controller", two)...)
	part := func(spec string) string {
		return w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci"},"spec":` + spec + `}`)
	}
	cause := w.mayNot(rita, "change who owns the spec of", "opens", "production", "verb open")
	for _, args := range [][]string{
		apply("evil", two), apply("evil", two, "--force-conflicts"),
		{"apply", "--server-side", "--validate=false", "--field-manager=evil", "-f", part(`{"gateRefs":[{"name":"staging"}]}`)},
		{"apply", "--server-side", "--validate=false", "--field-manager=evil", "-f", part(`{"secretRef":{"name":"token"}}`)},
		{"patch", "gatereceiver", "ci", "--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`},
		{"patch", "gatereceiver", "ci", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"evil"}]`},
	} {
		w.refusedReceiver(rita, "ci", cause, args...)
	}
	w.allowed(rita, "apply", "--server-side", "--validate=false", "--field-manager=labels", "-f",
		w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci","labels":{"a":"b"}}}`))
	w.allowed(flux, apply("kustomize-controller", "")...)
	if gates := w.receiver("ci").Spec.GateRefs; len(gates) != 1 || gates[0].Name != "production" {
		t.Errorf("Git has one gate, the cluster %+v", gates)
	}
}

// People paste the path into the settings of a sender, and the token next to it.
func TestNobodyButTheControllerWritesTheStatusOfAReceiver(t *testing.T) {
	w := newWorld(t)
	clara := w.clusterAdmin()
	stan := w.as("stan", w.role([]string{"get", "patch", "update"}, []string{"gatereceivers", "gatereceivers/status"}))
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	w.allowed(clara, "create", "-f", w.receive("ci", ""))
	write := []string{"patch", "gatereceiver", "ci", "--subresource=status", "--type=merge", "-p", `{"status":{"webhookPath":"/hook/of-mallory"}}`}
	status := func(manager string) []string {
		return []string{"apply", "--server-side", "--force-conflicts", "--field-manager=" + manager, "--subresource=status", "--validate=false", "-f",
			w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"ci"},"status":{"webhookPath":"/hook/of-mallory"}}`)}
	}
	for _, p := range []*person{stan, clara} {
		cause := "user " + p.Name + " may not write the status of gate receiver " + w.Namespace + "/ci: it says where webhooks go, so that only the gating-controller writes it"
		w.refusedReceiver(p, "ci", cause, write...)
		w.refusedReceiver(p, "ci", cause, status("gating-controller")...)
		update := w.receiver("ci")
		if err := w.Rewrite(update, func() error {
			update.Status.WebhookPath = "/hook/of-mallory"
			return p.Client.Status().Update(w.Context(), update)
		}); err == nil || !strings.Contains(err.Error(), cause) {
			t.Errorf("update by %s: %v", p.Name, err)
		}
	}
	all := w.as("otto", viewer, editor, opener, receiverViewer, receiverEditor)
	w.refusedReceiver(all, "ci", `User "otto" cannot`, write...)
	w.allowed(clara, "patch", "gatereceiver", "ci", "--type=merge", "-p", `{"spec":{"filter":"true"},"status":{"webhookPath":"/hook/of-mallory"}}`)
	w.allowed(clara, "create", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateReceiver","metadata":{"name":"born"},"status":{"webhookPath":"/hook/of-mallory"},`+
		`"spec":{"type":"generic-hmac","secretRef":{"name":"token"},"gateRefs":[{"name":"production"}],"action":"open"}}`))
	for _, name := range []string{"ci", "born"} {
		if path := w.receiver(name).Status.WebhookPath; strings.Contains(path, "mallory") {
			t.Errorf("%s takes webhooks at %s", name, path)
		}
	}
	if out := w.allowed(account, append(write, "--dry-run=server", "-o=jsonpath={.status.webhookPath}")...); out != "/hook/of-mallory" {
		t.Errorf("the controller cannot write it: %s", out)
	}
}

// Somebody who could take the digests away could send a webhook once more that they have seen.
func TestNobodyButTheControllerWritesWhatWebhooksWereTaken(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	check := func(want string) {
		t.Helper()
		if got, ok := w.get(g).Annotations[deliveries]; got != want || ok != (want != "") {
			t.Errorf("deliveries %q, %t, want %q", got, ok, want)
		}
	}
	check("")
	for _, p := range []*person{alice, edith, w.clusterAdmin()} {
		w.allowed(p, "annotate", "gate", "production", deliveries+"=forged")
		check("")
	}
	taken := strings.Repeat("0123456789abcdef ", 2500) // as long as it gets
	w.Must(account.Client.Patch(w.Context(), w.get(g), client.RawPatch("application/merge-patch+json", []byte(
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q,%q:"GateReceiver %s/ci"}}}`, deliveries, taken, openAt, now(), openBy, w.Namespace)))))
	check(taken)
	for _, p := range []*person{alice, edith, w.clusterAdmin()} {
		for _, args := range [][]string{
			{"annotate", "gate", "production", deliveries + "-"},
			{"annotate", "--overwrite", "gate", "production", deliveries + "="},
			{"annotate", "--overwrite", "gate", "production", deliveries + "=forged", closeAt + "=" + now()},
			{"patch", "gate", "production", "--type=merge", "-p", `{"metadata":{"annotations":{"` + deliveries + `":null}}}`},
			{"patch", "gate", "production", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations/gating.toolkit.fluxcd.io~1deliveries"}]`},
			{"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"production"}}`), "--validate=false"},
		} {
			_, err := p.kubectl(w.Context(), w.Namespace, args...)
			check(taken)
			if err != nil && (p != edith || !strings.Contains(err.Error(), "may not close")) {
				t.Errorf("%q by %s: %v", args, p.Name, err)
			}
		}
	}
	w.allowed(edith, "patch", "gate", "production", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations"}]`)
	check(taken)
	w.allowed(edith, "replace", "-f", w.manifest("name: production", nil))
	check(taken)
	w.allowed(edith, "replace", "-f", w.manifest("name: production", map[string]string{deliveries: "forged"}))
	check(taken)
	w.allowed(edith, "apply", "-f", w.manifest("name: production", map[string]string{deliveries: "forged"}))
	check(taken)
	w.allowed(edith, "apply", "-f", w.manifest("name: production", nil)) // takes it away if it was applied
	check(taken)
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", w.manifest("name: production", nil))
	check(taken)
	w.allowed(edith, "create", "-f", w.manifest("name: born", map[string]string{deliveries: "forged", "a": "b"}))
	born := g.DeepCopy()
	born.Name = "born"
	if got := w.get(born).Annotations; len(got) != 1 {
		t.Errorf("born with %v", got)
	}
	w.Must(account.Client.Patch(w.Context(), w.get(g), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+deliveries+`":null}}}`))))
	check("")
}

// The close of a person must not pass for that of a webhook, which any webhook opens.
func TestNobodyButTheControllerSaysThatAWebhookMadeARequest(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	at := now()
	w.Must(account.Client.Patch(w.Context(), w.get(g), client.RawPatch("application/merge-patch+json", []byte(
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q,%q:"GateReceiver %s/ci"}}}`, v1alpha1.CloseReceivedAnnotation, at, closeAt, at, closeBy, w.Namespace)))))
	alice := w.as("alice", opener)
	for _, p := range []*person{alice, w.as("edith", editor, viewer), w.clusterAdmin()} {
		for _, annotations := range []string{
			fmt.Sprintf(`{%q:"forged",%q:"forged"}`, v1alpha1.CloseReceivedAnnotation, v1alpha1.OpenReceivedAnnotation),
			fmt.Sprintf(`{%q:null}`, v1alpha1.CloseReceivedAnnotation),
		} {
			w.Must(p.Client.Patch(w.Context(), w.get(g), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":`+annotations+`}}`))))
			if got := w.get(g).Annotations; got[v1alpha1.CloseReceivedAnnotation] != at || got[v1alpha1.OpenReceivedAnnotation] != "" {
				t.Errorf("%s makes of the annotations by %s: %v", p.Name, annotations, got)
			}
		}
	}
	w.Must(alice.Client.Patch(w.Context(), w.get(g), client.RawPatch("application/merge-patch+json", []byte(
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-11-23T12:00:00Z",%q:"2026-11-23T12:00:00Z",%q:"GateReceiver %s/ci"}}}`,
			v1alpha1.CloseReceivedAnnotation, closeAt, closeBy, w.Namespace)))))
	if got := w.get(g).Annotations; got[closeBy] != "alice" || got[v1alpha1.CloseReceivedAnnotation] != at {
		t.Errorf("the close of alice has %v", got)
	}
}

func TestAReceiverInGitNeedsTheVerbsOfWhoAppliesIt(t *testing.T) {
	r := newGit(t, receiverEditor, receiverViewer, editor, viewer)
	commit := func(spec string) {
		r.Helper()
		manifest := receiverManifest("ci", spec, nil)
		manifest["metadata"].(map[string]any)["namespace"] = r.Namespace
		content, err := json.Marshal(manifest)
		r.Must(err)
		r.commitManifest(string(content))
	}
	tenant := r.as(r.tenant)
	commit("")
	if ready := r.sync(); ready.Status != "False" || !strings.Contains(ready.Message, r.mayNot(tenant, "create", "opens", "production", "verb open")) {
		t.Errorf("Ready is %+v", ready)
	}
	list := &v1alpha1.GateReceiverList{}
	r.Must(cluster.Client.List(r.Context(), list, client.InNamespace(r.Namespace)))
	if len(list.Items) > 0 {
		t.Errorf("created %+v", list.Items)
	}
	r.as(r.tenant, r.role([]string{"open"}, []string{"gates"}, "production"))
	r.synced()
	r.allowed(r.as("rita", receiverEditor, receiverViewer), "annotate", "gatereceiver", "ci", "reconcile.fluxcd.io/requestedAt=1")
	r.synced()
	before := written(r.receiver("ci"))
	for range 3 {
		r.synced()
	}
	if after := written(r.receiver("ci")); !reflect.DeepEqual(after, before) {
		t.Error("kustomize-controller writes the receiver again")
	}
	commit(asks("req.ok ? 'open' : 'close'"))
	if ready := r.sync(); ready.Status != "False" || !strings.Contains(ready.Message, r.mayNot(tenant, "change the spec of", "opens and closes", "production", "verbs open and close")) {
		t.Errorf("Ready is %+v", ready)
	}
	if action := r.receiver("ci").Spec.Action; action != "open" {
		t.Errorf("action is %q", action)
	}
}

func TestFluxLeavesAloneWhatWebhooksWereTaken(t *testing.T) {
	r := newGit(t, editor, viewer)
	r.commit(`{}`)
	r.synced()
	g := &v1alpha1.Gate{}
	g.Name, g.Namespace = "production", r.Namespace
	account := r.as("system:serviceaccount:gating-system:gating-controller")
	take := func(value string) {
		r.Helper()
		r.Must(account.Client.Patch(r.Context(), r.get(g), client.RawPatch("application/merge-patch+json", []byte(
			fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q,%q:"GateReceiver %s/ci"}}}`, deliveries, value, openAt, stamp(time.Now()), openBy, r.Namespace)))))
	}
	check := func(want string) {
		r.Helper()
		if got := r.get(g).Annotations[deliveries]; got != want {
			r.Errorf("deliveries are %q, want %q", got, want)
		}
	}
	take("one")
	r.synced()
	check("one")
	r.commit(`{"a":"b"}`)
	r.synced()
	check("one")
	r.commit(`{"` + deliveries + `":"forged"}`)
	r.synced()
	check("one")
	r.settled(g)
	take("one two")
	r.synced()
	check("one two")
	r.commit(`{}`)
	r.synced()
	check("one two")
}
