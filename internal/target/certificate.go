package target

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates/status,verbs=get;patch

var _ = register(certificate{Certificate})

// Certificate is the group and kind of Certificates of cert-manager. Gates hold their renewal. cert-manager issues the first certificate,
// and a new one after a change of the spec, regardless of spec.renewal.
var Certificate = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}

const (
	// maxDeferral is the longest lifetime of a certificate whose renewal the controller defers with a window. The window recurs every year,
	// and cert-manager also searches one lifetime back. With longer lifetimes, it would find the window of the year before.
	maxDeferral = 180 * 24 * time.Hour

	// minRenewBefore is the shortest spec.renewBefore that cert-manager's webhook accepts.
	minRenewBefore = 5 * time.Minute

	// marginPart limits the margin to a sixth of the lifetime: half of the third that cert-manager leaves for the renewal by default.
	marginPart = 6

	// brokenDisabled is the release of cert-manager that panics on a disabled renewal. A label identifies the release, because the CRD is the
	// same in the next release.
	brokenDisabled = "v1.21.0"
)

var (
	renewalPath     = []string{"spec", "renewal"}
	renewBeforePath = []string{"spec", "renewBefore"}
	percentagePath  = []string{"spec", "renewBeforePercentage"}
	secretNamePath  = []string{"spec", "secretName"}
)

// certificate is the adapter of Certificates.
type certificate struct {
	groupKind schema.GroupKind
}

func (c certificate) GroupKind() schema.GroupKind { return c.groupKind }

func (certificate) levers() [][]string { return [][]string{renewalPath, renewBeforePath} }

func (certificate) reads() [][]string {
	return [][]string{
		conditionsPath, percentagePath, secretNamePath, {"status", "notBefore"}, {"status", "notAfter"},
		{"status", "renewalTime"}, {"status", "acme", "ari", "suggestedWindow"},
	}
}

// StagedSecret implements Activator.
func (certificate) StagedSecret(obj *Object) string { return text(obj, secretNamePath) }

// ReportsByApply implements Reporter: cert-manager declares its conditions as a map.
func (certificate) ReportsByApply() bool { return true }

// Expiry implements Renewer.
func (certificate) Expiry(obj *Object) time.Time { return observe(obj).notAfter }

// RenewalDue implements Renewer. It follows the rules of cert-manager.
func (certificate) RenewalDue(obj *Object, state State) time.Time {
	o := observe(obj)
	lifetime := o.notAfter.Sub(o.notBefore)
	if o.notAfter.IsZero() || lifetime <= 0 {
		return time.Time{}
	}
	return o.notAfter.Add(-renewBefore(obj, state, lifetime))
}

func (certificate) revisions() [][]string { return [][]string{{"status", "revision"}} }

// Observe implements Adapter. A spec.renewal of another client counts as suspended by others. A spec.renewBefore of another client is
// an ordinary setting, which holds nothing.
func (certificate) Observe(obj *Object, us Identity) State {
	_, named := obj.GetAnnotations()[us.HeldBy]
	for _, path := range [][]string{renewalPath, renewBeforePath} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); !ok {
			continue
		}
		ours, others := us.owners(&obj.Unstructured, path)
		nameOurs, _ := us.owners(&obj.Unstructured, us.heldByPath())
		switch renewal := path[1] == renewalPath[1]; {
		case ours && !others:
			return Held
		case renewal && named && !others && !nameOurs:
			return Locked // without managed fields it has no owner
		case renewal:
			return SuspendedByOthers
		}
	}
	return Free
}

// Differs implements Adapter. It compares the status from cert-manager, and the spec fields that
// affect the renewal.
func (certificate) Differs(before, after *Object) bool {
	if !reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		return true
	}
	return observe(before) != observe(after)
}

// observed holds the parts of the status of a Certificate that a plan depends on.
type observed struct {
	notBefore, notAfter, renewal time.Time
	ready, current, issuing, ari bool
	// misplaced is true if cert-manager finds no renewal time in the windows of the spec.
	misplaced bool
}

func observe(obj *Object) observed {
	at := func(field string) time.Time {
		value, _, _ := unstructured.NestedString(obj.Object, "status", field)
		t, _ := time.Parse(time.RFC3339, value) // an invalid time counts as zero
		return t
	}
	o := observed{notBefore: at("notBefore"), notAfter: at("notAfter"), renewal: at("renewalTime")}
	_, o.ari, _ = unstructured.NestedFieldNoCopy(obj.Object, "status", "acme", "ari", "suggestedWindow")
	if ready := obj.condition("Ready"); ready != nil {
		o.ready = ready.Status == metav1.ConditionTrue
		o.current = ready.ObservedGeneration == obj.GetGeneration()
		o.misplaced = ready.Reason == "WindowError"
	}
	issuing := obj.condition("Issuing")
	o.issuing = issuing != nil && issuing.Status == metav1.ConditionTrue
	return o
}

// Plan implements Adapter. It defers the renewal to a deadline. If cert-manager can wait for the deadline itself, this works even while the
// controller is down. Otherwise, the renewal is disabled until the controller releases the certificate at the deadline.
func (c certificate) Plan(obj *Object, state State, terms Terms, now time.Time) Plan {
	o := observe(obj)
	held := state.IsHeld()
	plan := Plan{Lever: Lever(obj)}
	lifetime := o.notAfter.Sub(o.notBefore)
	deadline := o.notAfter.Add(-min(terms.Margin, lifetime/marginPart)).Truncate(time.Minute)
	known := !o.notAfter.IsZero() && lifetime > 0
	late := known && !terms.Strict && !now.Before(deadline)
	switch {
	case terms.Activates:
		return Plan{Exempt: Activates}
	case held && o.issuing:
		plan.Bypassed = late
		return plan
	case late:
		return Plan{Exempt: Imminent, Bypassed: true}
	case held && !o.ready && !o.misplaced:
		if known && !terms.Strict {
			plan.Recheck = deadline
		}
		return plan
	case o.issuing || !known || !o.ready && !held:
		return Plan{Exempt: NotReady}
	case !terms.Strict && !o.notAfter.Add(-renewBefore(obj, state, lifetime)).Before(deadline):
		return Plan{Exempt: Needless, Recheck: deadline}
	}
	plan.Lever, plan.Ignored = c.lever(obj, state, terms, o, deadline)
	if plan.Lever == nil {
		return Plan{Exempt: Unsupported}
	}
	plan.Stale = held && !reflect.DeepEqual(plan.Lever, Lever(obj))
	if !terms.Strict {
		plan.Recheck = deadline
	}
	return plan
}

// lever returns the spec fields that hold the renewal of a Certificate. It returns nil if cert-manager does not support spec.renewal and
// another client determines when to renew. ignored is true if cert-manager misreads the window, so that the renewal is disabled instead.
func (c certificate) lever(obj *Object, state State, terms Terms, o observed, deadline time.Time) (lever map[string]any, ignored bool) {
	before := Lever(obj)
	if !terms.Definition.Spec["renewal"] || terms.Definition.Release == brokenDisabled {
		_, percentage, _ := unstructured.NestedFieldNoCopy(obj.Object, percentagePath...)
		_, set, _ := unstructured.NestedFieldNoCopy(obj.Object, renewBeforePath...)
		_, ours := before["renewBefore"]
		if percentage || set && (!ours || state != Held) {
			return nil, false // another client determines when to renew
		}
		margin := minRenewBefore
		if !terms.Strict {
			margin = max(margin, o.notAfter.Sub(deadline))
		}
		return map[string]any{"renewBefore": margin.String()}, false
	}
	never := map[string]any{"renewal": map[string]any{"policy": "Disabled"}}
	until := map[string]any{"renewal": deferral(o, deadline)}
	// Once cert-manager has observed the spec, the status shows its interpretation.
	ignored = terms.Ignored && state == Held && reflect.DeepEqual(before, never) ||
		state == Held && reflect.DeepEqual(before, until) && o.current && !o.renewal.Equal(deadline)
	switch {
	case terms.Strict || o.ari || o.notAfter.Sub(o.notBefore) > maxDeferral:
		return never, false
	case ignored:
		return never, true
	}
	return until, false
}

// deferral returns a renewal window that starts at the deadline. The window is as long as the lifetime of the certificate, so that the next
// certificate has a renewal time, too. Without a renewal time, cert-manager does not report a certificate as ready. The window must be the
// only one, because cert-manager ignores all other windows if one starts after the certificate expires.
func deferral(o observed, deadline time.Time) map[string]any {
	at := deadline.UTC()
	return map[string]any{"policy": "RenewBefore", "windows": []any{map[string]any{
		"cron":           fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), at.Month()),
		"windowDuration": o.notAfter.Sub(o.notBefore).String(),
	}}}
}

// renewBefore returns how long before the expiry cert-manager would renew the certificate if it were not held. The default is a third of
// the lifetime, as in cert-manager's function RenewalTime.
func renewBefore(obj *Object, state State, lifetime time.Duration) time.Duration {
	value, _, _ := unstructured.NestedString(obj.Object, renewBeforePath...)
	_, renewal, _ := unstructured.NestedFieldNoCopy(obj.Object, renewalPath...)
	ours := state == Held && !renewal
	if d, err := time.ParseDuration(strings.TrimSpace(value)); err == nil && d > 0 && d < lifetime && !ours {
		return d
	}
	if percent, ok, err := unstructured.NestedInt64(obj.Object, percentagePath...); ok && err == nil && percent > 0 && percent < 100 {
		return time.Duration(float64(lifetime) * float64(percent) / 100)
	}
	return lifetime / 3
}
