package gate

import (
	"reflect"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// newKustomization returns a Kustomization without a spec.
func newKustomization(namespace, name string) *target.Object {
	obj := &target.Object{}
	obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	obj.SetKind("Kustomization")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// start is when the clocks of these tests begin.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func duration(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

// dated returns a period between two times after start.
func dated(name string, from, until time.Duration) v1alpha1.Period {
	return v1alpha1.Period{Name: name, From: v1alpha1.NewDateTime(start.Add(from)), Until: v1alpha1.NewDateTime(start.Add(until))}
}

func hardFreeze(from, until time.Duration) v1alpha1.ClosePeriod {
	return v1alpha1.ClosePeriod{Period: dated("freeze", from, until), Override: v1alpha1.OverrideDeny}
}
