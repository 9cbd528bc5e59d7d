// Package certificates tests the behavior of cert-manager and its webhook on which the hold of Certificates relies.
package certificates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// timeout bounds changes that must happen. A window is up to a minute away, and two cores may be busy.
	timeout = 3 * time.Minute
	// patience is how long tests watch for changes that must not happen.
	patience = 8 * time.Second

	lifetime   = 90 * time.Second
	renewAfter = 5 * time.Second
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, "cert-manager"))
}

// shard is the label of Gates with their own gating-controller.
const shard = "sharding.fluxcd.io/key"

func setup(ctx context.Context) (func() error, error) {
	var processes []*harness.Process
	stop := func() (err error) {
		for _, process := range slices.Backward(processes) {
			err = errors.Join(err, process.Stop())
		}
		return err
	}
	for _, start := range []func(context.Context) (*harness.Process, error){cluster.StartCertManager, cluster.StartCertManagerWebhook, startGatingController} {
		process, err := start(ctx)
		if err != nil {
			return stop, err
		}
		processes = append(processes, process)
	}
	return stop, nil
}

func startGatingController(ctx context.Context) (*harness.Process, error) {
	if err := cluster.Install(ctx); err != nil {
		return nil, err
	}
	if err := cluster.InstallComponent(ctx, "activation"); err != nil {
		return nil, err
	}
	return cluster.StartGatingController(ctx, "--watch-label-selector=!"+shard)
}

func TestCertificateIsRenewedInWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(2*lifetime, renewAfter, disabled)
	first := w.issued()
	start := time.Now().UTC().Add(3*renewAfter + time.Minute).Truncate(time.Minute)
	w.Must(w.patch(`{"spec":{"renewal":{"policy":"RenewBefore","windows":[{"cron":"%s","windowDuration":"1s"}]}}}`, yearly(start)))
	w.eventually("the renewal is planned for the window", func(state certificate) error {
		if state.revision != 1 || !state.renewal.Equal(start) {
			return fmt.Errorf("the renewal of revision %d is planned for %s, want %s", state.revision, state.renewal, start)
		}
		return nil
	})
	second := w.renewed(first)
	if second.notBefore.Before(start) {
		t.Errorf("renewed at %s, before the window at %s", second.notBefore, start)
	}
}

func TestUnheldCertificateIsIssuedAndRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(lifetime, renewAfter, nil)
	first := w.issued()
	if !first.renewal.Equal(first.notBefore.Add(renewAfter)) || !first.notAfter.Equal(first.notBefore.Add(lifetime)) {
		t.Errorf("issued as %+v", first)
	}
	second := w.renewed(first)
	if second.notBefore.Before(first.renewal) {
		t.Errorf("renewed at %s, planned for %s", second.notBefore, first.renewal)
	}
}

func TestDisabledCertificateIsRenewedOnRequestOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(lifetime, renewAfter, disabled)
	first := w.issued()
	if !first.renewal.IsZero() {
		t.Errorf("a renewal is planned for %s", first.renewal)
	}
	w.Throughout(renewAfter+patience, "the certificate is not renewed", func() error {
		if state := w.read(); state.revision != 1 || !state.renewal.IsZero() {
			return fmt.Errorf("got %+v", state)
		}
		return nil
	})
	w.Must(cluster.RenewCertificate(w.Context(), w.Key("app")))
	if second := w.renewed(first); !second.renewal.IsZero() {
		t.Errorf("a renewal is planned for %s", second.renewal)
	}
}

func TestWindowBeyondLifetimeDelaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(lifetime, renewAfter, window(time.Now().AddDate(0, 6, 0)))
	first := w.issued()
	if !first.renewal.Equal(first.notBefore.Add(renewAfter)) {
		t.Errorf("a renewal is planned for %s", first.renewal)
	}
	w.renewed(first)
	w.eventually("cert-manager reports the bypassed window", func(state certificate) error {
		if state.ready != "WindowError" {
			return errors.New(state.ready)
		}
		return nil
	})
}

func TestCertManagerWebhookAcceptsHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, validated)
	w.create(3*time.Hour, time.Hour, window(time.Now().Add(2*time.Hour)))
	w.issued()
	w.Must(w.patch(`{"spec":{"renewal":{"policy":"Disabled","windows":null}}}`))
	w.eventually("no renewal is planned", func(state certificate) error {
		if !state.renewal.IsZero() {
			return fmt.Errorf("a renewal is planned for %s", state.renewal)
		}
		return nil
	})
	for patch, refusal := range map[string]string{
		`{"spec":{"renewal":{"windows":[{"cron":"0 0 1 1 *","windowDuration":"1m"}]}}}`:                   "spec.renewal.windows: Forbidden",
		`{"spec":{"renewal":{"policy":"RenewBefore","windows":[{"cron":"soon","windowDuration":"1m"}]}}}`: "spec.renewal.windows[0].cron: Invalid",
		`{"spec":{"duration":"90s","renewBefore":"30s"}}`:                                                 "spec.duration: Invalid",
	} {
		if err := w.patch("%s", patch); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("got %v, want %q", err, refusal)
		}
	}
}

var disabled = map[string]any{"policy": "Disabled"}

// window returns a window of one minute in each year.
func window(start time.Time) map[string]any {
	return map[string]any{"policy": "RenewBefore", "windows": []any{map[string]any{"cron": yearly(start), "windowDuration": "1m0s"}}}
}

// yearly returns the cron expression for a minute of the year.
func yearly(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d %d %d %d *", t.Minute(), t.Hour(), t.Day(), t.Month())
}

// world is a namespace with an issuer.
type world struct{ *harness.World }

// newWorld returns a world that the webhook does not validate before validate is called.
func newWorld(t *testing.T, change ...func(*corev1.Namespace)) *world {
	t.Helper()
	unvalidated := func(n *corev1.Namespace) { n.Labels = map[string]string{harness.UnvalidatedLabel: "true"} }
	w := &world{harness.NewWorld(t, cluster, append([]func(*corev1.Namespace){unvalidated}, change...)...)}
	w.Must(cluster.CreateIssuer(w.Context(), w.Namespace))
	return w
}

func validated(namespace *corev1.Namespace) { namespace.Labels = nil }

func (w *world) create(lifetime, renewAfter time.Duration, renewal map[string]any) {
	w.Helper()
	obj := harness.NewCertificate(w.Key("app"), lifetime, renewAfter)
	if renewal != nil {
		w.Must(unstructured.SetNestedMap(obj.Object, renewal, "spec", "renewal"))
	}
	w.Create(obj)
}

func (w *world) patch(format string, args ...any) error {
	return w.Merge(harness.Object("cert-manager.io/v1", "Certificate", w.Key("app")), format, args...)
}

// certificate is the status of a Certificate.
type certificate struct {
	revision int64
	// ready is the reason of the condition Ready.
	ready                        string
	notBefore, notAfter, renewal time.Time
}

func (w *world) read() certificate {
	w.Helper()
	obj := harness.Object("cert-manager.io/v1", "Certificate", w.Key("app"))
	w.Read(obj)
	state := certificate{}
	state.revision, _, _ = unstructured.NestedInt64(obj.Object, "status", "revision")
	_, state.ready = harness.Condition(obj, "Ready")
	for name, field := range map[string]*time.Time{
		"notBefore": &state.notBefore, "notAfter": &state.notAfter, "renewalTime": &state.renewal,
	} {
		if text, ok, _ := unstructured.NestedString(obj.Object, "status", name); ok {
			var err error
			*field, err = time.Parse(time.RFC3339, text)
			w.Must(err)
		}
	}
	return state
}

func (w *world) eventually(what string, check func(certificate) error) {
	w.Helper()
	w.Must(harness.Eventually(w.Context(), timeout, what, func() error { return check(w.read()) }))
}

// issued waits until the status has the first revision and its times.
func (w *world) issued() certificate {
	w.Helper()
	return w.renewed(certificate{})
}

// renewed waits until the status has a later revision than old and its times. cert-manager writes them one after the other.
func (w *world) renewed(old certificate) certificate {
	w.Helper()
	var state certificate
	w.eventually(fmt.Sprintf("revision %d is issued", old.revision+1), func(got certificate) error {
		state = got
		if got.revision <= old.revision || !got.notBefore.After(old.notBefore) {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	return state
}
