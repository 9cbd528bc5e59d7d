package policies

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// lasting is a spec that differs by its time, given as days of January 2099 and
// their hours.
func lasting(from, until string) string {
	return fmt.Sprintf(`{"validFrom":"2099-01-%s:00:00Z","validUntil":"2099-01-%s:00:00Z"}`, from, until)
}

// judged waits until the policy knows of an exception: it sees a new one within
// a second or so.
func (w *world) judged(name string) {
	w.Helper()
	e := w.exception(name)
	e.Name, e.ResourceVersion = "judged", ""
	w.Eventually("the policy knows "+name, func() error {
		err := cluster.Client.Create(w.Context(), e.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "overlaps with gate exception "+w.Namespace+"/"+name+" ") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// free waits until nothing overlaps with a spec any more.
func (w *world) free(spec string) {
	w.Helper()
	w.Eventually("nothing overlaps", func() error {
		_, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "create", "--dry-run=server", "-f", w.except("free", spec, nil))
		return err
	})
}

func TestExceptionsOfAGateDoNotOverlap(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "first", lasting("10T00", "20T00"), nil)
	w.judged("first")
	within := func(effect string) string {
		return `{"timeZone":"UTC","validFrom":"2099-01-12T00:00:00Z","validUntil":"2099-01-13T00:00:00Z",` + effect + `}`
	}
	const nightly, daily = `[{"name":"night","start":"22:00","end":"02:00"}]`, `[{"name":"day","start":"10:00","end":"12:00"}]`
	for name, tc := range map[string]struct {
		spec    string
		refused bool
	}{
		"the same time":                       {lasting("10T00", "20T00"), true},
		"within":                              {lasting("12T00", "13T00"), true},
		"around":                              {lasting("01T00", "31T00"), true},
		"the first hour":                      {lasting("09T00", "10T01"), true},
		"the last hour":                       {lasting("19T23", "21T00"), true},
		"the same time in another zone":       {`{"validFrom":"2099-01-10T09:00:00+09:00","validUntil":"2099-01-10T09:00:01+09:00"}`, true},
		"with another effect":                 {within(`"default":"closed","openPeriods":` + nightly), true},
		"with open periods alone":             {within(`"default":null,"openPeriods":` + nightly), true},
		"with both kinds of periods":          {within(`"default":null,"openPeriods":` + nightly + `,"closePeriods":` + daily), true},
		"closes and opens by default":         {within(`"closePeriods":` + daily), true},
		"with close periods alone":            {within(`"default":null,"closePeriods":` + daily), false},
		"closed by default":                   {within(`"default":"closed"`), false},
		"closed by default and in periods":    {within(`"default":"closed","openPeriods":[],"closePeriods":` + daily), false},
		"until its beginning":                 {lasting("01T00", "10T00"), false},
		"until its beginning in another zone": {`{"validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-10T09:00:00+09:00"}`, false},
		"from its end":                        {lasting("20T00", "31T00"), false},
		"long before":                         {`{"validFrom":"1970-01-01T00:00:00Z","validUntil":"1970-01-02T00:00:00Z"}`, false},
		"of another gate":                     {`{"gateRef":{"name":"staging"},"validFrom":"2099-01-10T00:00:00Z","validUntil":"2099-01-20T00:00:00Z"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			out, err := ona.kubectl(w.Context(), w.Namespace, "create", "--dry-run=server", "-f", w.except("second", tc.spec, nil))
			cause := fmt.Sprintf("denied request: gate exception %[1]s/second overlaps with gate exception %[1]s/first of the same gate production, "+
				"which lasts from 2099-01-10T00:00:00Z until 2099-01-20T00:00:00Z", w.Namespace)
			if tc.refused != (err != nil) || tc.refused && !strings.Contains(out, cause) {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
	out, err := ona.kubectl(w.Context(), w.Namespace, "create", "-f", w.except("generateName: second-", lasting("19T00", "21T00"), nil))
	if err == nil || !strings.Contains(out, "gate exception "+w.Namespace+"/second-") {
		t.Errorf("a generated name: %s, %v", out, err)
	}
	away := newWorld(t)
	away.born(away.as("ona", exceptionEditor, viewer), "second", lasting("10T00", "20T00"), nil)
}

// It is born first, and others overlap it.
func TestAnExceptionThatOnlyClosesIsInNobodysWay(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "shut", strings.Replace(lasting("10T00", "20T00"), "{", `{"default":"closed",`, 1), nil)
	w.born(ona, "first", lasting("20T00", "30T00"), nil)
	w.judged("first")
	w.allowed(ona, "create", "-f", w.except("second", lasting("10T00", "20T00"), nil))
	w.judged("second")
	w.refusedException(ona, "shut", "overlaps with gate exception "+w.Namespace+"/second", "patch", "gtex", "shut", "--type=merge", "-p", `{"spec":{"default":"opened"}}`)
}

func TestAnExceptionThatIsChangedMustNotOverlapAnother(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "first", lasting("10T00", "20T00"), nil)
	w.born(ona, "second", lasting("20T00", "30T00"), nil)
	w.born(ona, "third", `{"gateRef":{"name":"staging"},"validFrom":"2099-01-10T00:00:00Z","validUntil":"2099-01-20T00:00:00Z"}`, nil)
	for _, name := range []string{"first", "second", "third"} {
		w.judged(name)
	}
	patch := func(name, spec string) []string {
		return []string{"patch", "gtex", name, "--type=merge", "-p", `{"spec":` + spec + `}`}
	}
	cause := func(name, other string) string {
		return fmt.Sprintf("gate exception %[1]s/%[2]s overlaps with gate exception %[1]s/%[3]s of the same gate production, which lasts from 2099-01-", w.Namespace, name, other)
	}
	w.refusedException(ona, "first", cause("first", "second"), patch("first", `{"validUntil":"2099-01-20T00:00:01Z"}`)...)
	w.allowed(ona, patch("third", `{"validUntil":"2099-01-30T00:00:00Z"}`)...) // of another gate
	w.refusedException(ona, "first", cause("first", "second"), "replace", "-f", w.except("first", lasting("10T00", "21T00"), nil))
	w.refusedException(ona, "first", cause("first", "second"), "apply", "--server-side", "--force-conflicts", "-f", w.except("first", lasting("10T00", "21T00"), nil))
	// Against itself, and after the other has moved.
	w.allowed(ona, patch("first", `{"validUntil":"2099-01-19T00:00:00Z"}`)...)
	w.allowed(ona, patch("second", `{"validFrom":"2099-01-25T00:00:00Z"}`)...)
	w.free(lasting("20T00", "21T00"))
	w.allowed(ona, patch("first", `{"validFrom":"2099-01-09T00:00:00Z","validUntil":"2099-01-25T00:00:00Z"}`)...)
}

func TestWhatIsOverOrUnderDeletionIsInNobodysWay(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "first", lasting("10T00", "20T00"), nil)
	w.Eventually("the controller has reported on it", func() error {
		if e := w.exception("first"); e.Status.ObservedGeneration != e.Generation {
			return fmt.Errorf("status %+v", e.Status)
		}
		return nil
	})
	w.stopController()
	w.judged("first")
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	reports := func(reason string) {
		w.Helper()
		w.allowed(account, "patch", "gtex", "first", "--subresource=status", "--type=merge", "-p", `{"status":{`+activeCondition(reason)+`}}`)
	}
	for _, reason := range []string{"Pending", "InForce", "Overlapped", "WaitingApproval", "GateNotReady"} {
		reports(reason)
		w.judged("first")
	}
	reports("Expired")
	w.free(lasting("10T00", "20T00"))
	// Expired is what the controller last saw, not what is there now.
	w.allowed(account, "patch", "gtex", "first", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":0}}`)
	w.judged("first")
	w.allowed(account, "patch", "gtex", "first", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1}}`)
	w.free(lasting("10T00", "20T00"))
	reports("Pending")
	w.judged("first")

	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/stay"]}}`)
	w.allowed(ona, "delete", "gtex", "first", "--wait=false")
	w.free(lasting("10T00", "20T00"))
	w.born(ona, "second", lasting("10T00", "20T00"), nil)
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)

	// One that takes the place of another right away.
	w.judged("second")
	w.allowed(ona, "replace", "--force", "-f", w.except("second", lasting("10T00", "20T00"), nil))
}

// Nobody waits for the controller to have noticed.
func TestWhatWasExpiredAndIsEditedIsInTheWayAtOnce(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "first", `{"validFrom":"2020-01-01T00:00:00Z","validUntil":"2020-01-02T00:00:00Z"}`, nil)
	w.Eventually("it is expired", func() error {
		e := w.exception("first")
		if active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition); active == nil || active.Reason != v1alpha1.ExpiredReason || e.Labels[v1alpha1.ExpiredLabel] != "true" {
			return fmt.Errorf("labels %v, status %+v", e.Labels, e.Status)
		}
		return nil
	})
	w.stopController()
	w.allowed(ona, "label", "gtex", "first", "team=shop")
	if labels := w.exception("first").Labels; labels[v1alpha1.ExpiredLabel] != "true" {
		t.Errorf("after another label: %v", labels)
	}
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"spec":`+lasting("10T00", "20T00")+`}`)
	w.judged("first")
	if labels := w.exception("first").Labels; labels[v1alpha1.ExpiredLabel] != "" {
		t.Errorf("after an edit: %v", labels)
	}
}

// Such an exception would not be in the way of another.
func TestOnlyTheControllerLabelsAnExceptionAsExpired(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	expired := `"metadata":{"labels":{"` + v1alpha1.ExpiredLabel + `":"true"}}`
	w.born(ona, "first", lasting("10T00", "20T00"), nil)
	w.judged("first")
	for _, patch := range []string{"{" + expired + "}", "{" + expired + `,"spec":` + lasting("11T00", "20T00") + "}"} {
		w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", patch)
		if labels := w.exception("first").Labels; labels[v1alpha1.ExpiredLabel] != "" {
			t.Errorf("after %s: %v", patch, labels)
		}
	}
	second := w.exception("first")
	second.Name, second.ResourceVersion, second.Labels = "second", "", map[string]string{v1alpha1.ExpiredLabel: "true"}
	second.Spec.GateRef.Name = "staging"
	w.Create(second)
	if w.Read(second); second.Labels[v1alpha1.ExpiredLabel] != "" {
		t.Errorf("born with %v", second.Labels)
	}
	w.judged("first")
}

// A pair that overlaps all the same, such as from before the policy, can be
// labelled and so on, by the controller above all.
func TestAPairThatOverlapsIsJudgedOnlyWhenASpecIsWritten(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.overlapping(ona, "first", "second")
	for _, name := range []string{"first", "second"} {
		w.judged(name)
	}
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	for _, name := range []string{"first", "second"} {
		w.allowed(account, "patch", "gtex", name, "--type=merge", "-p", `{"metadata":{"finalizers":["`+v1alpha1.GateFinalizer+`"],"labels":{"`+v1alpha1.GateLabel+`":"production"}}}`)
		w.allowed(account, "patch", "gtex", name, "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1,`+activeCondition("Pending")+`}}`)
		w.allowed(ona, "label", "gtex", name, "a=b")
	}
	w.refusedException(ona, "first", "overlaps with gate exception "+w.Namespace+"/second", "patch", "gtex", "first", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":"1h"}}`)
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"spec":`+lasting("01T00", "02T00")+`}`)
	for _, name := range []string{"first", "second"} {
		w.allowed(account, "patch", "gtex", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
}

// overlapping creates GateExceptions of the same time while the policy is not
// bound.
func (w *world) overlapping(p *person, names ...string) {
	w.Helper()
	_, err := cluster.Kubectl(w.Context(), "delete", "validatingadmissionpolicybinding", "gate-exception-overlap")
	w.Must(err)
	defer func() {
		_, err := cluster.Kubectl(w.Context(), "apply", "-f", harness.Root()+"/config/policies/exception_overlap.yaml")
		w.Must(err)
	}()
	for _, name := range names {
		w.Eventually("nobody judges "+name, func() error {
			_, err := p.kubectl(w.Context(), w.Namespace, "create", "-f", w.except(name, lasting("10T00", "20T00"), nil))
			return err
		})
	}
}

// activeCondition returns the field conditions of a status with the condition Active of that reason.
func activeCondition(reason string) string {
	status := metav1.ConditionFalse
	if reason == v1alpha1.InForceReason {
		status = metav1.ConditionTrue
	}
	return fmt.Sprintf(`"conditions":[{"type":"Active","status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-11-21T16:41:57Z"}]`, status, reason)
}
