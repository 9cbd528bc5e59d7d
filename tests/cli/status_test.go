package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// days returns a period that starts and ends some days from now.
func days(name string, from, until int) v1alpha1.Period {
	start, end := metav1.NewTime(time.Now().AddDate(0, 0, from)), metav1.NewTime(time.Now().AddDate(0, 0, until))
	return v1alpha1.Period{Name: name, From: v1alpha1.NewDateTime(start.Time), Until: v1alpha1.NewDateTime(end.Time)}
}

func TestStatusOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.published()
	legacy := w.Kustomization("legacy")
	w.Create(legacy)
	w.Must(w.Flux(legacy, `{"spec":{"suspend":true}}`))
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{days("first", 1, 2), days("second", 3, 4), days("third", 5, 6)},
		Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}, {Kind: "Widget", Name: "w"}},
	})
	w.isHeldBy(apps, "production")
	w.publish("v2")
	from, until := metav1.NewTime(time.Now().AddDate(0, 0, 10).Truncate(time.Second)), metav1.NewTime(time.Now().AddDate(0, 0, 12).Truncate(time.Second))
	w.Create(&v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Name: "hotfix"},
		Spec:       v1alpha1.GateExceptionSpec{GateRef: v1alpha1.GateReference{Name: "production"}, ValidFrom: from, ValidUntil: until, OpenPeriods: []v1alpha1.Period{days("all", 10, 11)}},
	})
	for _, args := range [][]string{{"open", "--at", "150m", "--for", "1h", "--reason", "release 12"}, {"close", "--for", "2h", "--reason", "incident 77"}} {
		if got := w.gate(append(args, "production")...); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	w.Eventually("the status is complete", func() error {
		g := w.ReadGate("production")
		if c := g.Status.Targets; c == nil || c.Held != 1 || c.SuspendedByOthers != 1 || c.Pending != 0 || len(g.Status.Exceptions) != 1 {
			return fmt.Errorf("%+v", g.Status)
		}
		return nil
	})
	w.shows("status")
}

func TestStatusListsTenTargetsAndCountsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 12 {
		w.Create(w.Kustomization(fmt.Sprintf("a%02d", i)))
	}
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "*"})
	w.Eventually("all targets are held", func() error {
		if c := w.ReadGate("production").Status.Targets; c == nil || c.Held != 12 {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	got := w.gate("status", "production")
	if !strings.Contains(got.out, "Kustomization/a09") || strings.Contains(got.out, "Kustomization/a10") || !strings.Contains(got.out, "\nand 2 more\n") || got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatusForecastCountsExceptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ClosedGate("production")
	period := days("day", 1, 2)
	w.Create(&v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Name: "hotfix"}, Spec: v1alpha1.GateExceptionSpec{
		GateRef: v1alpha1.GateReference{Name: "production"}, OpenPeriods: []v1alpha1.Period{period},
		ValidFrom: metav1.NewTime(period.From.Time().Truncate(time.Second)), ValidUntil: metav1.NewTime(period.Until.Time().Truncate(time.Second)),
	}})
	w.Decided(w.ReadGate("production"))
	got := w.gate("status", "production")
	if !strings.Contains(got.out, "opened   exception hotfix\n") || !strings.Contains(got.out, "closed   default\n") || got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatusOmitsUngovernedObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"apps", "other"} {
		k := w.Kustomization(name)
		w.Create(k)
		w.Must(w.Flux(k, `{"spec":{"suspend":true}}`))
	}
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	w.Decided(w.ReadGate("production"))
	if got := w.gate("status", "production"); !strings.Contains(got.out, "Kustomization/apps   suspended") || strings.Contains(got.out, "Kustomization/other") {
		t.Errorf("%+v", got)
	}
}

func TestStatusShowsDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, DependsOn: []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "staging"}}})
	w.Decided(w.ReadGate("production"))
	got := w.gate("status", "production")
	if !strings.Contains(got.out, "\nDependencies\n") || !strings.Contains(got.out, "Kustomization/staging   no ") || !strings.Contains(got.out, "closed") {
		t.Errorf("%+v", got)
	}
}

func TestStatusFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	if got := w.gate("status", "production", "-o", "jsonpath={.kind}/{.items[0].metadata.name}/{.items[0].status.lastTransition.period}"); got != (output{"List/production/freeze", "", 0}) {
		t.Errorf("%+v", got)
	}
	if got := w.gate("status", "production", "-o", "name"); got != (output{"gate.gating.toolkit.fluxcd.io/production\n", "", 0}) {
		t.Errorf("%+v", got)
	}
	if got := w.gate("status"); got.code != 2 || got.errOut != "error: name one gate; kubectl gate list shows all\n" {
		t.Errorf("%+v", got)
	}
	if got := w.gate("status", "prodution"); got.code != 2 || !strings.Contains(got.errOut, `did you mean "production"?`) {
		t.Errorf("%+v", got)
	}
}
