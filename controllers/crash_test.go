package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// crashing returns a hook that fails all writes after the n-th one, as if the process had ended there.
func crashing(n int) func(string) error {
	return func(string) error {
		if n--; n < 0 {
			return errBroken
		}
		return nil
	}
}

// enough is more than the number of writes that any change takes.
const enough = 12

// interrupted is a change of a Gate that is interrupted at one of its writes.
type interrupted struct {
	*world
	gate *v1alpha1.Gate
	// during checks the cluster after the interruption. It may be nil. after checks it after the next passes.
	during, after func()
}

// interrupt makes the n-th write fail. If its response is lost, it is made nevertheless, and later writes succeed. Otherwise, later writes
// fail, too, as if the process had ended. It returns whether there were as many writes.
func (w *world) interrupt(n int, lost bool) (done *bool) {
	done = new(bool)
	fails := func(string) error {
		if n--; n >= 0 || lost && *done {
			return nil
		}
		*done = true
		return errBroken
	}
	if lost {
		w.Writes.After = fails
	} else {
		w.Writes.Before = fails
	}
	return done
}

// lockedTarget has a Kustomization and a Gate with mode Enforce, which is closed or open, and a GateLock. After the change, the target must
// be held or free, and the GateLock must be as given.
func lockedTarget(wasOpen bool, change func(*world, *v1alpha1.Gate), held bool, locks func(gate string) lockv1alpha1.GateLockSpec) func(*testing.T) *interrupted {
	return func(t *testing.T) *interrupted {
		t.Helper()
		w := locking(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.Reconcile(g)
		if wasOpen {
			w.Open(g, w.In(hours(1)))
			w.Reconcile(g)
			w.ExpectReleased(app, g)
		}
		change(w, g)
		return &interrupted{world: w, gate: g, during: func() {
			// A target that is locked when it is released could stay held forever.
			if l := w.lock(w.Namespace); !held && !w.Suspended(app) && len(l.Spec.Targets) > 0 {
				t.Error("released before it was unlocked")
			}
		}, after: func() {
			if held {
				w.ExpectHeld(app, g)
			} else {
				w.ExpectReleased(app, g)
			}
			w.expectLock(w.Namespace, locks(key(g)))
		}}
	}
}

// lockedOverlays has three Kustomizations and a closed Gate. A request has opened the first one. Then one request opens the second one, and
// another closes the first one.
func lockedOverlays(t *testing.T) *interrupted {
	t.Helper()
	w := locking(t)
	first, second, third := w.NewKustomization("first", nil), w.NewKustomization("second", nil), w.NewKustomization("third", nil)
	g := w.ClosedGate("production", all())
	w.Reconcile(g)
	request := func(annotation string, at time.Time, name string) {
		w.Annotate(g, annotation, at.Format(time.RFC3339)+"/9h,only=Kustomization/"+name)
	}
	request(v1alpha1.OpenRequestedAtAnnotation, w.In(hours(1)), "first")
	w.Reconcile(g)
	expect := func(isHeld, secondHeld bool) {
		w.Helper()
		if a, b, c := w.Suspended(first), w.Suspended(second), w.Suspended(third); a != isHeld || b != secondHeld || !c {
			w.Errorf("held: %t, %t, %t", a, b, c)
		}
	}
	expect(false, true)
	at := w.In(hours(2))
	request(v1alpha1.OpenRequestedAtAnnotation, at, "second")
	request(v1alpha1.CloseRequestedAtAnnotation, at, "first")
	return &interrupted{world: w, gate: g, during: func() {
		unlocked := slices.ContainsFunc(w.lock(w.Namespace).Spec.Overlays["Kustomization"], func(o lockv1alpha1.OverlayLock) bool {
			return !o.Locked && o.Name == "second"
		})
		if !w.Suspended(third) || !w.Suspended(second) && !unlocked {
			t.Error("released before it was unlocked, or without a request")
		}
	}, after: func() {
		expect(true, false)
		w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{
			Gates: map[string]bool{key(g): true}, Targets: map[string][]string{"Kustomization/*": {key(g)}},
			Overlays: map[string][]lockv1alpha1.OverlayLock{"Kustomization": {
				{Gate: key(g), Locked: true, Name: "first", Requested: true}, {Gate: key(g), Name: "second", Requested: true},
			}},
		})
	}}
}

// heldCertificate has a Certificate that a closed Gate holds. After the change, its renewal and conditions must be as given.
func heldCertificate(change func(*world, *v1alpha1.Gate), renewal string, conditions []string) func(*testing.T) *interrupted {
	return func(t *testing.T) *interrupted {
		t.Helper()
		w := newWorld(t)
		www := w.certificate("www", nil)
		g := w.ClosedGate("production", certificates)
		w.Reconcile(g)
		change(w, g)
		return &interrupted{world: w, gate: g, after: func() {
			by := key(g)
			if isOpened(g) {
				by = ""
			}
			w.expectRenewal(www, renewal, by, conditions...)
		}}
	}
}

// renewedActivation has a Certificate whose renewal is activated. The live Secret always has a whole certificate.
func renewedActivation(t *testing.T) *interrupted {
	t.Helper()
	w, g, first, second := renewed(t)
	after := func() {
		w.has("web-tls", second)
		w.has("web-tls-previous", first)
	}
	return &interrupted{world: w, gate: g, during: func() {
		if string(w.secret("web-tls").Data["tls.crt"]) == string(first["tls.crt"]) {
			w.has("web-tls", first)
			return
		}
		after()
	}, after: func() {
		after()
		w.expectActivated(g, "True Activated: ")
		w.Reconcile(g)
		after()
	}}
}

func TestCrashAfterAnyWriteIsRepaired(t *testing.T) {
	locks := func(locked bool, targets ...string) func(string) lockv1alpha1.GateLockSpec {
		return func(gate string) lockv1alpha1.GateLockSpec {
			spec := lockv1alpha1.GateLockSpec{Gates: map[string]bool{gate: locked}}
			for _, name := range targets {
				spec.Targets = map[string][]string{name: {gate}}
			}
			return spec
		}
	}
	closes, opens := func(w *world, g *v1alpha1.Gate) { w.Close(g, w.In(hours(2))) }, func(w *world, g *v1alpha1.Gate) { w.Open(g, w.In(hours(2))) }
	isDeleted := func(w *world, g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) }
	edited := func(edit func(*v1alpha1.GateSpec)) func(*world, *v1alpha1.Gate) {
		return func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { edit(&g.Spec) }) }
	}
	toEnforce := func(w *world, g *v1alpha1.Gate) {
		w.mode(g, v1alpha1.ModeAudit)
		w.Reconcile(g)
		w.mode(g, v1alpha1.ModeEnforce)
	}
	for name, prepare := range map[string]func(*testing.T) *interrupted{
		"closing":         lockedTarget(true, closes, true, locks(true, "Kustomization/apps")),
		"opening":         lockedTarget(false, opens, false, locks(false)),
		"deleting":        lockedTarget(false, isDeleted, false, func(string) (none lockv1alpha1.GateLockSpec) { return none }),
		"no longer named": lockedTarget(false, edited(func(s *v1alpha1.GateSpec) { s.Targets = nil }), false, locks(true)),
		"to Audit":        lockedTarget(false, edited(func(s *v1alpha1.GateSpec) { s.Mode = v1alpha1.ModeAudit }), false, locks(false)),
		"to Enforce":      lockedTarget(false, toEnforce, true, locks(true, "Kustomization/apps")),
		"a certificate, closing": heldCertificate(func(w *world, g *v1alpha1.Gate) {
			opens(w, g)
			w.Reconcile(g)
			w.Close(g, w.In(hours(3)))
		}, atMargin, isDeferred),
		"a certificate, opening":    heldCertificate(opens, "", isReleased),
		"a certificate, its margin": heldCertificate(func(w *world, _ *v1alpha1.Gate) { w.In(59 * day) }, "", isBypassed),
		"a certificate, strict": heldCertificate(edited(func(s *v1alpha1.GateSpec) {
			s.Certificates = &v1alpha1.CertificatePolicy{Strict: true}
		}), "never", isDisabled),
		"an activation":             renewedActivation,
		"requests for some targets": lockedOverlays,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range 2 * enough {
				i := prepare(t)
				done := i.interrupt(n/2, n%2 > 0)
				_, err := i.Try(i.gate)
				if i.during != nil {
					i.during()
				}
				i.Writes.Reset()
				if reader := i.Locks; n%4 < 2 { // otherwise, only the write fails
					i.restart()
					i.Locks = reader
				}
				i.Reconcile(i.gate)
				i.after()
				if t.Failed() {
					t.Fatalf("after a crash at write %d, lost response %t: %v", n/2, n%2 > 0, err)
				}
				if !*done {
					return // all writes were made
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}

func TestRequestIsInStatusBeforeTargetWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    v1alpha1.GateSpec
		request func(*world, *v1alpha1.Gate)
		opened  bool
	}{
		"open":  {v1alpha1.GateSpec{Default: "closed"}, func(w *world, g *v1alpha1.Gate) { w.Open(g, start) }, true},
		"close": {v1alpha1.GateSpec{Default: "opened"}, func(w *world, g *v1alpha1.Gate) { w.Close(g, start) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			tc.spec.Targets = []v1alpha1.TargetReference{named("apps")}
			g := w.Gate("production", tc.spec)
			w.Reconcile(g)
			tc.request(w, g)
			w.Events.Take("")
			w.Writes.Before = failing("patch-status Gate")
			if _, err := w.Try(g); err == nil || w.Suspended(app) != tc.opened {
				t.Errorf("the request was not stored: error %v, held is %t", err, w.Suspended(app))
			}
			expectNone(t, w.Events.Take("RequestAccepted"))

			seen := false
			w.Writes.Before = func(write string) error {
				if strings.Contains(write, "Kustomization") && !seen {
					seen = true
					latest := &v1alpha1.Gate{}
					w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), latest))
					if latest.Status.RequestedAt == nil || len(latest.Status.Requests) != 1 || conditions.IsTrue(latest, v1alpha1.OpenedCondition) != tc.opened {
						t.Errorf("before %s the status is %+v", write, latest.Status)
					}
				}
				if strings.Contains(write, "Kustomization") {
					return errBroken
				}
				return nil
			}
			if _, err := w.Try(g); err == nil || !seen {
				t.Fatalf("the target was not written: %v", err)
			}
			w.Writes.Reset()
			// Flux strips the annotation, and the request must survive that.
			g.Annotations = nil
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "")
			w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, "")
			w.In(time.Minute)
			w.Reconcile(g)
			if w.Suspended(app) == tc.opened {
				t.Errorf("got %+v", w.Suspension(app))
			}
		})
	}
}
