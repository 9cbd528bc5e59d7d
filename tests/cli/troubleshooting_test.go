package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// symptoms are the scenes of the pages on troubleshooting that need no policies and no other controller.
var symptoms = map[string]map[string]scene{
	"troubleshooting": {
		"Start here": {first: func(w *world) { w.heldApps() }},
	},
	"troubleshooting-objects": {
		"Why is it not reconciling?":                                       {first: func(w *world) { w.heldApps() }},
		"It is suspended, and every Gate is open":                          {has: kustomization("legacy") + gateOf("opened", "", "legacy"), first: suspended("legacy")},
		"The Gate opened and nothing moves":                                {first: heldByAnother},
		"It closed, and something was applied all the same":                {has: kustomization("tools"), first: func(w *world) { w.heldApps() }},
		"flux resume is undone":                                            {first: resumed("")},
		"flux resume is not undone":                                        {first: resumed(v1alpha1.ModeLenient)},
		"It is held by a Gate that does not exist":                         {has: strings.Replace(kustomization("infra"), "spec:", "  annotations: {gating.toolkit.fluxcd.io/gates: qa}\nspec:", 1), first: holds("infra")},
		"It stays held although its Gate is open: the release has stopped": {has: kustomization("shop") + gateOf("closed", waves, "shop"), first: opens("production")},
		"A Certificate renewed in spite of the Gate":                       {first: expiring},
		"A pass is refused":                                                {first: hardFrozenApps},
		"A pass had no effect":                                             {has: kustomization("apps") + gateOf("closed", "", "apps"), first: holds("apps")},
	},
	"troubleshooting-gates": {
		"The Gate is not ready":                  {has: gate("closed", "", "{kind: Widget, name: shop}")},
		"Ready says AccessDenied":                {has: gate("closed", "", "{kind: Kustomization, name: apps, namespace: shop}")},
		"Ready says NoTargets":                   {has: kustomization("apps") + gateOf("closed", "", "app"), first: matchesNothing},
		"HoldsItsOwnSource":                      {has: kustomization("gates") + strings.Replace(gateOf("closed", "", "gates"), "spec:", fromGates+"spec:", 1)},
		"The Gate is stalled":                    {has: gate("closed", "  openPeriods: [{name: never, schedule: 0 0 31 4-6/2 *, duration: 1h}]\n", "")},
		"It is in a window and stays closed":     {has: kustomization("apps") + kustomization("staging") + gateOf("opened", "  dependsOn: [{kind: Kustomization, name: staging}]\n", "apps")},
		"It neither opens nor closes":            {has: gate("closed", "", ""), first: func(w *world) { w.Must(w.Merge(w.ReadGate("production"), `{"spec":{"suspend":true}}`)) }},
		"A calendar cannot be read":              {has: gate("closed", "  openPeriods: [{name: workdays, calendar: {configMapRef: {name: holidays, key: calendar.ics}}}]\n", "")},
		"It opens an hour too early or too late": {},
		"An exception does not count":            {has: gate("closed", "", "") + exception("misspelt", "prodution") + exception("older", "production"), first: func(w *world) { w.later(); w.applied(exception("newer", "production")) }},
	},
	"troubleshooting-requests": {
		"My request had no effect":                           {has: gate("closed", hardFreeze, "")},
		"My request was refused":                             {has: gate("closed", "", "")},
		"Every request is refused: the requester is unknown": {has: gate("closed", "  approvals: {openRequests: {required: 1}}\n", "")},
		"kubectl gate: you may not":                          {has: gate("closed", "", ""), who: func(w *world) *world { return w.as("stranger") }},
		"It closes again although I opened it":               {has: gate("closed", "", ""), first: opensForASecond},
		"The freeze does not end":                            {has: gate("opened", "", ""), first: closedTwice},
	},
}

const (
	waves = `  release:
    waves:
    - {name: canary, matchLabels: {wave: canary}}
    - {name: rest, matchExpressions: [{key: wave, operator: DoesNotExist}]}
`
	hardFreeze = `  closePeriods: [{name: freeze, from: "2026-01-01T00:00:00Z", until: "2099-01-01T00:00:00Z", override: Deny}]
`
	fromGates = `  labels: {kustomize.toolkit.fluxcd.io/name: gates, kustomize.toolkit.fluxcd.io/namespace: flux-system}
`
)

// kustomization returns a Kustomization whose source does not exist.
func kustomization(name string) string {
	return fmt.Sprintf(`---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %s
spec:
  interval: 1h
  prune: true
  sourceRef: {kind: GitRepository, name: none}
`, name)
}

// gate returns the Gate production with additional fields in its spec, and its target unless that is empty.
func gate(state, more, target string) string {
	return fmt.Sprintf(`---
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: Gate
metadata:
  name: production
spec:
  default: %s
%s  targets: [%s]
`, state, more, target)
}

// gateOf returns a Gate that governs a Kustomization.
func gateOf(state, more, name string) string {
	return gate(state, more, fmt.Sprintf("{kind: Kustomization, name: %q}", name))
}

func exception(name, of string) string {
	return fmt.Sprintf(`---
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata:
  name: %s
spec:
  gateRef: {name: %s}
  validFrom: "2099-01-01T00:00:00Z"
  validUntil: "2099-01-02T00:00:00Z"
  openPeriods: [{name: all, from: "2099-01-01T00:00:00Z", until: "2099-01-02T00:00:00Z"}]
`, name, of)
}

// holds returns a function that waits until a Kustomization is held.
func holds(name string) func(w *world) {
	return func(w *world) {
		obj := w.Kustomization(name)
		w.Eventually(name+" is held", func() error {
			if err := w.TryRead(obj); err != nil || harness.HeldBy(obj) == "" {
				return fmt.Errorf("%v, %w", obj.Object, err)
			}
			return nil
		})
	}
}

// suspended returns a function that suspends a Kustomization as flux suspend does.
func suspended(name string) func(w *world) {
	return func(w *world) {
		obj := w.Kustomization(name)
		w.Read(obj)
		w.Must(w.Flux(obj, `{"spec":{"suspend":true}}`))
	}
}

// resumed resumes the Kustomization apps of a Gate with a mode that permits that.
func resumed(policy v1alpha1.Mode) func(w *world) {
	return func(w *world) {
		apps := w.published()
		w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: policy, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}})
		w.isHeldBy(apps, "production")
		w.Must(w.Flux(apps, `{"spec":{"suspend":null}}`))
	}
}

func opens(name string) func(w *world) {
	return func(w *world) { w.gate("open", name, "--for", "1h") }
}

func opensForASecond(w *world) {
	w.expect(w.gate("open", "production", "--for", "20s", "--reason", "hotfix 1234"), 0, "", "")
	w.Eventually("the gate closes", func() error {
		if g := w.ReadGate("production"); len(g.Status.History) < 3 {
			return fmt.Errorf("%+v", g.Status.History)
		}
		return nil
	})
}

func heldByAnother(w *world) {
	w.heldApps()
	w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "Kustomization", Name: "*"})
	w.Decided(w.ReadGate("freeze"))
	w.expect(w.gate("open", "production", "--for", "1h"), 0, "", "")
}

// matchesNothing waits until the Gate reports an entry that matches nothing. The report is delayed by a minute, in case a matching object
// is about to be created.
func matchesNothing(w *world) {
	w.Must(harness.Eventually(w.Context(), 2*harness.Patience, "the gate reports that an entry matches nothing", func() error {
		if got := w.shell("kubectl get gates -n " + w.Namespace + " -o yaml"); !strings.Contains(got.out, v1alpha1.NoTargetsReason) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	}))
}

func hardFrozenApps(w *world) {
	w.heldApps()
	w.Must(w.Merge(w.ReadGate("production"), `{"spec":{"closePeriods":[{"name":"freeze","from":%q,"until":%q,"override":"Deny"}]}}`,
		time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	w.Decided(w.ReadGate("production"))
}

func closedTwice(w *world) {
	w.expect(w.gate("close", "production", "--for", "3h", "--reason", "incident 77"), 0, "", "")
	w.expect(w.gate("freeze", "--for", "1h", "--reason", "incident 77"), 0, "", "")
}

// expiring creates a Certificate that the Gate can no longer hold.
func expiring(w *world) {
	c := harness.Object("cert-manager.io/v1", "Certificate", w.Key("www"))
	c.Object["spec"] = map[string]any{"secretName": "www", "dnsNames": []any{"example.com"}, "issuerRef": map[string]any{"name": "ca"}}
	w.Create(c)
	expires := time.Now().Add(12 * time.Hour).UTC()
	w.sets(c, map[string]any{
		"notBefore": expires.Add(-90 * 24 * time.Hour).Format(time.RFC3339), "notAfter": expires.Format(time.RFC3339),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}},
	})
	w.ClosedGate("certificates", v1alpha1.TargetReference{Kind: "Certificate", Name: "*"})
	w.Decided(w.ReadGate("certificates"))
}

// later waits until a new object gets a later creation time than existing ones: the API server stores whole seconds.
func (w *world) later() {
	w.Helper()
	now := time.Now().Truncate(time.Second)
	w.Eventually("a second has passed", func() error {
		if !time.Now().Truncate(time.Second).After(now) {
			return fmt.Errorf("the time is still %s", now)
		}
		return nil
	})
}

func TestTroubleshootingPages(t *testing.T) {
	t.Parallel()
	for page, scenes := range symptoms {
		for _, s := range sectionsOf(t, page) {
			if sc, ok := scenes[s.heading]; ok {
				// Temporary directories have the name of the test, and kubectl splits the value of --filename at commas.
				t.Run(page+": "+strings.ReplaceAll(s.heading, ",", ""), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					sc.plays(w, page, s)
				})
			}
		}
	}
}

// Each symptom must be in the index of one page, and each command must be tested.
func TestTroubleshootingIndexIsCompleteAndTested(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(pathOf("troubleshooting"))
	if err != nil {
		t.Fatal(err)
	}
	played := []map[string]map[string]scene{symptoms, guardedScenes}
	var all []string
	for _, page := range []string{"troubleshooting", "troubleshooting-objects", "troubleshooting-gates", "troubleshooting-requests", "troubleshooting-webhooks", "troubleshooting-installation", "emergencies", "audit", "high-availability"} {
		var headings []string
		for _, s := range sectionsOf(t, page) {
			headings = append(headings, s.heading)
			if n := len(scenesOf(played, page, s.heading)); n != 1 {
				t.Errorf("%s: %q is tested %d times", page, s.heading, n)
			}
		}
		for _, scenes := range played {
			for heading := range scenes[page] {
				if !slices.Contains(headings, heading) {
					t.Errorf("%s has no section %q with commands", page, heading)
				}
			}
		}
		if strings.HasPrefix(page, "troubleshooting-") {
			all = append(all, headings...)
		}
	}
	for _, heading := range all {
		if !strings.Contains(string(index), "| ["+heading+"](") {
			t.Errorf("the index lacks %q", heading)
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d symptoms", len(all))
	}
}

func scenesOf(played []map[string]map[string]scene, page, heading string) (found []scene) {
	for _, scenes := range played {
		if s, ok := scenes[page][heading]; ok {
			found = append(found, s)
		}
	}
	return found
}
