package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// guardedScenes are the scenes of the pages for operators. They need the policies, or a controller that elects a leader, or no controller.
var guardedScenes = map[string]map[string]scene{
	"troubleshooting-requests": {
		"My request waits":               {has: gate("closed", "  approvals: {openRequests: {required: 1}}\n", ""), who: with("alice", "gate-opener")},
		"The API server: denied request": {has: gate("closed", "", ""), who: with("edith", "gate-editor", "gate-viewer")},
	},
	"troubleshooting-webhooks": {
		"The webhook gets 404":                            {has: gate("closed", "", "") + receiver("ci", "generic", "") + receiver("tokenless", "generic-hmac", ""), first: tokens("ci")},
		"The webhook gets 403":                            {has: gate("closed", "", "") + receiver("signed", "generic-hmac", ""), first: closedByHand},
		"The webhook gets 409":                            {has: gate("closed", "", "") + receiver("signed", "generic-hmac", ""), first: tokens("signed")},
		"The webhook gets 429":                            {has: gate("closed", "", "") + receiver("ci", "generic", "  filter: '!has(req.skip)'\n"), first: tokens("ci")},
		"The webhook gets 503":                            {has: gate("closed", "", "") + receiver("ci", "generic", ""), first: suspendedReceiver},
		"The webhook gets 200, and the Gate stays closed": {has: gate("closed", hardFreeze, "") + receiver("signed", "generic-hmac", ""), first: tokens("signed")},
	},
	"emergencies": {
		"Open now":                 {has: gate("closed", "", ""), then: isOpen},
		"With four eyes":           {has: gate("closed", "  approvals: {openRequests: {required: 1}}\n", ""), who: with("greta", "gate-emergency-opener"), then: isOpen},
		"In a hard freeze":         {has: kustomization("gates") + gate("closed", hardFreeze, ""), then: isOpen},
		"One object only":          {first: func(w *world) { w.heldApps() }, then: passed},
		"With a policy in the way": {then: restorePolicies},
		"While no controller runs": {first: lockedAndDown, then: staysReleased},
		"Freeze everything now":    {has: calm, first: deploysFlux, then: isFrozen},
		"Undo":                     {has: calm, first: inAnIncident, then: asBefore},
	},
	"audit": {
		"The history of a Gate":           {has: gate("closed", "", ""), first: opensAs("alice")},
		"The log of the controller":       {skip: "kubectl -n gating-system logs"}, // see TestLogHasHistory
		"Events":                          {has: gate("closed", "", ""), first: opensAs("alice")},
		"What a name is worth":            {has: gate("closed", "", ""), first: opensAs("alice")},
		"The audit log of the API server": {skip: "kind: Policy", then: audited},
	},
	"high-availability": {
		"Run two replicas": {first: besideConfig},
	},
	"troubleshooting-installation": {
		"Is the installation sound?":                                     {first: cleared},
		"Nothing opens and nothing closes":                               {has: kustomization("apps") + kustomization("tools") + gateOf("closed", "", "*"), first: down},
		"The Gate is stuck deleting":                                     {},
		"It is still suspended after the Gate or the controller is gone": {then: lastIsReleased},
	},
}

// operated is a cluster with the policies, webhooks and a controller that may be stopped. Its API server has the audit policy of
// docs/operate/audit.md.
type operated struct {
	*harness.ControlPlane
	t        *testing.T
	gating   *harness.Process
	auditLog string
}

// theOperated is the cluster of the running test.
var theOperated *operated

func newOperated(t *testing.T) *operated {
	t.Helper()
	o := &operated{t: t, auditLog: filepath.Join(t.TempDir(), "audit.log")}
	policy := markdown.BlockOf(t, "docs/operate/audit.md", "yaml", "kind: Policy")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(file, []byte(policy), 0o600))
	var err error
	o.ControlPlane, err = harness.StartControlPlaneWith([]string{"--audit-policy-file=" + file, "--audit-log-path=" + o.auditLog, "--audit-log-mode=blocking"}, harness.CRDs...)
	must(err)
	t.Cleanup(func() { _ = o.Stop() })
	must(o.Install(t.Context()))
	for _, component := range []string{"policies", "webhooks"} {
		must(o.InstallComponent(t.Context(), component))
	}
	flux, err := o.StartKustomizeController(t.Context())
	must(err)
	t.Cleanup(func() { _ = flux.Stop() })
	o.starts()
	theOperated = o
	return o
}

// starts starts the controller.
func (o *operated) starts() {
	o.t.Helper()
	var err error
	if o.gating, err = o.StartGatingController(o.t.Context(), "--enable-leader-election"); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = o.gating.Stop() })
}

// world returns a new namespace in the cluster.
func (o *operated) world(t *testing.T) *world {
	t.Helper()
	w := newWorldOn(t, o.ControlPlane)
	w.receivers = o.gating.Webhooks
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{o.gating} })
	return w
}

// TestOperatorPages has its own control plane, because some sections delete parts of the installation.
func TestOperatorPages(t *testing.T) {
	t.Parallel()
	o := newOperated(t)
	first := o.world(t)
	first.inForce()
	first.deploys()
	for _, page := range []string{"troubleshooting-requests", "troubleshooting-webhooks", "emergencies", "audit"} {
		for _, s := range sectionsOf(t, page) {
			if sc, ok := guardedScenes[page][s.heading]; ok {
				t.Run(page+": "+s.heading, func(t *testing.T) { sc.plays(o.world(t), page, s) })
			}
		}
	}
	// The controller is down between the first and the last section of the next page. The last section deploys two replicas.
	for _, page := range []string{"troubleshooting-installation", "high-availability"} {
		w := o.world(t)
		for _, s := range sectionsOf(t, page) {
			guardedScenes[page][s.heading].plays(w, page, s)
		}
	}
}

// besideConfig gives the reader a folder with the manifests.
func besideConfig(w *world) {
	w.folder = w.TempDir()
	w.Must(os.CopyFS(filepath.Join(w.folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
}

// audited checks that the audit log has the requests of earlier sections.
func audited(w *world) {
	w.Eventually("the audit log has the accepted request", func() error { return inLog(theOperated.auditLog, `"username":"alice"`, `hotfix 1234`) })
	w.Eventually("the audit log has the refused request", func() error { return inLog(theOperated.auditLog, `"username":"edith"`, `"code":403`) })
	content, err := os.ReadFile(theOperated.auditLog)
	w.Must(err)
	if strings.Contains(string(content), `"user":{"username":"system:serviceaccount:gating-system:gating-controller"`) {
		w.Error("the audit log has writes of the controller")
	}
}
