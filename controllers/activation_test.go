package controllers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// activationGate creates a Gate for the Certificate web that opens some time after start.
func (w *world) activationGate(notBefore time.Duration) *v1alpha1.Gate {
	w.Helper()
	return w.Gate("go-live", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Interval: v1alpha1.Duration{Duration: 1000 * day},
		NotBefore: ptr.To(metav1.NewTime(start.Add(notBefore))), Targets: []v1alpha1.TargetReference{certificateRef("web")},
	})
}

func (w *world) expectActivated(g *v1alpha1.Gate, want string) {
	w.Helper()
	certificate := w.readCertificate("web")
	if got := w.activated(certificate); !strings.HasPrefix(got, want) {
		w.Errorf("condition Activated is %q, want %q", got, want)
	}
	failed := 0
	if strings.HasPrefix(want, "False ActivationFailed") {
		failed = 1
	}
	if len(g.Status.TargetFailures()) != failed {
		w.Errorf("failures %v", g.Status.TargetFailures())
	}
}

func TestCertificateIsActivatedWhenGateOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Client = noReads{w.Client} // a cache of Secrets would list all of them
	web := w.activating("web")
	g := w.activationGate(hours(1))
	w.Reconcile(g)
	w.expectActivated(g, "False NotIssued: There is no certificate in Secret 'web-staged' yet.")

	first := w.keyPair(-time.Hour, 90*day, "tls-combined.pem", "key.der", "keystore.p12")
	w.stage(web, first)
	if requeue := w.Reconcile(g).RequeueAfter; requeue != time.Hour {
		t.Errorf("requeue after %s", requeue)
	}
	w.has("web-tls", nil)
	w.expectActivated(g, "False GateClosed: Certificate ")
	if got, want := w.activated(web), fmt.Sprintf("waits for gate '%s' (opens at 2026-11-23T13:00:00Z, UTC).", key(g)); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.In(time.Hour - time.Second)
	w.Reconcile(g)
	w.has("web-tls", nil)

	w.In(time.Hour)
	w.Events.Take("")
	w.Writes.Take("")
	w.Reconcile(g)
	w.has("web-tls", first)
	w.has("web-tls-previous", nil)
	equal(t, w.Writes.Take("Secret"), []string{"create Secret/web-tls"})
	w.expectActivated(g, "True Activated: Secret 'web-tls' has the issued certificate. The certificate in use expires at 2027-02-21T12:00:00Z.")
	if events := w.Events.Take("Certificate/web"); len(events) != 1 || !strings.HasPrefix(events[0], "Normal Certificate/web Activated: Activated into Secret 'web-tls': certificate ") {
		t.Errorf("events %q", events)
	}
	live := w.secret("web-tls")
	equal(t, live.Type, corev1.SecretTypeTLS)
	equal(t, live.Labels, map[string]string{"app.kubernetes.io/managed-by": "gating-controller"})
	equal(t, keysOf(anyStrings(live.Annotations)), []string{"gating.toolkit.fluxcd.io/activated", "gating.toolkit.fluxcd.io/activatedFrom"})
	equal(t, live.Annotations[v1alpha1.ActivatedFromAnnotation], "web")

	// A renewal is activated at once. Keys that the new Secret lacks are removed.
	second := w.keyPair(-time.Hour, 120*day, "key.der")
	w.stage(web, second)
	w.In(hours(2))
	w.has("web-staged", second)
	w.Reconcile(g)
	w.has("web-tls", second)
	w.has("web-tls-previous", first)
	equal(t, w.Writes.Take("Secret"), []string{"create Secret/web-tls-previous", "patch Secret/web-tls"})
	previous := w.secret("web-tls-previous")
	equal(t, previous.Annotations, map[string]string{v1alpha1.ActivatedFromAnnotation: "web"})
	equal(t, previous.Type, corev1.SecretTypeTLS)

	third := w.keyPair(-time.Hour, 150*day)
	w.stage(web, third)
	w.Reconcile(g)
	w.has("web-tls", third)
	w.has("web-tls-previous", second)
	equal(t, w.Writes.Take("Secret"), []string{"patch Secret/web-tls-previous", "patch Secret/web-tls"})
	w.Reconcile(g)
	equal(t, w.Writes.Take(""), []string(nil))

	// After a rollback, the certificate stays as it is until the next issuance.
	w.rollBack()
	for _, at := range []time.Duration{hours(2), hours(3), 100 * day} {
		w.In(at)
		w.Reconcile(g)
		w.has("web-tls", second)
		w.has("web-tls-previous", second)
	}
	w.expectActivated(g, "False RolledBack: A user has changed Secret 'web-tls' since the certificate was activated. It stays unchanged until the next issuance. The certificate in use expires at 2027-03-23T12:00:00Z.")

	// The next one waits for another Gate, but not beyond the margin.
	fourth := w.keyPair(-time.Hour, 180*day)
	w.stage(web, fourth)
	other := w.Gate("approval", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: 1000 * day}, Targets: []v1alpha1.TargetReference{certificateRef("web")},
	})
	const late = 119 * day
	if got, want := w.Reconcile(other).RequeueAfter, late-100*day; got != want {
		t.Errorf("requeue after %s, want %s", got, want)
	}
	w.has("web-tls", second)
	if got, want := w.activated(web), " waits for gate '"+key(other)+"'. The certificate in use expires at 2027-03-23T12:00:00Z. It is replaced at 2027-03-22T12:00:00Z at the latest."; !strings.HasSuffix(got, want) {
		t.Errorf("condition %q, want %q", got, want)
	}
	w.Writes.Take("")
	for range 2 { // both write the same conditions
		w.Reconcile(other)
		w.Reconcile(g)
	}
	equal(t, w.Writes.Take("Certificate"), []string(nil))
	w.In(late - time.Second)
	w.Reconcile(other)
	w.has("web-tls", second)
	w.Events.Take("")
	w.In(late)
	w.Reconcile(other)
	w.has("web-tls", fourth)
	w.has("web-tls-previous", second)
	if events := w.Events.Take("Activated"); len(events) != 1 || !strings.Contains(events[0], "although gate '"+key(other)+"' is closed") {
		t.Errorf("events %q", events)
	}
}

func anyStrings(values map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range values {
		all[key] = value
	}
	return all
}

// An activation cannot be undone, so a Gate that is about to close prevents all further activations, unless it is deleted.
func TestDueCloseOfOtherGateStopsActivation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(w *world, other *v1alpha1.Gate)
		want   int
	}{
		"it is to close": {func(w *world, other *v1alpha1.Gate) { w.Close(other, w.FakeClock.Now()) }, 1},
		"it goes":        {func(w *world, other *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), other)) }, 2},
		"it does not govern it any more": {func(w *world, other *v1alpha1.Gate) {
			w.Edit(other, func() { other.Spec.Targets = nil })
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.WritesAtOnce = 1
			for _, name := range []string{"web", "www"} {
				w.stage(w.activating(name), w.keyPair(-time.Hour, 90*day))
			}
			every := []v1alpha1.TargetReference{{Kind: "Certificate", Name: v1alpha1.AnyName}}
			other := w.Gate("other", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: every})
			g := w.Gate("go-live", v1alpha1.GateSpec{
				Default: v1alpha1.StateOpened, NotBefore: ptr.To(metav1.NewTime(start.Add(hours(1)))), Targets: every,
			})
			w.Reconcile(g)
			w.Reconcile(other)
			w.In(hours(1))
			w.Writes.Before = once("create Secret", func() error {
				tc.change(w, other.DeepCopy())
				return nil
			})
			w.Reconcile(g)
			activated := slices.DeleteFunc([]string{"web-tls", "www-tls"}, func(name string) bool { return w.secret(name) == nil })
			if len(activated) != tc.want {
				t.Errorf("activated are %q", activated)
			}
		})
	}
}

// rollBack runs the commands in the docs.
func (w *world) rollBack() {
	w.Helper()
	doc, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", "delayed-activation.md"))
	w.Must(err)
	_, section, _ := strings.Cut(string(doc), "## Roll back\n")
	_, section, _ = strings.Cut(section, "```sh\n")
	script, _, found := strings.Cut(section, "```")
	if !found || !strings.Contains(script, "-n shop") {
		w.Fatalf("the docs say %q", script)
	}
	cmd := exec.CommandContext(w.Context(), "bash", "-euc", strings.ReplaceAll(script, "-n shop", "-n "+w.Namespace))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %s", err, out)
	}
}
