package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	exceptionEditor   = "gate-exception-editor"
	exceptionApprover = "gate-exception-approver"

	approveAt = v1alpha1.ApproveRequestedAtAnnotation
	approveBy = v1alpha1.ApproveRequestedByAnnotation
	authors   = v1alpha1.AuthorsAnnotation
)

// createException makes a person create a GateException.
func (w *world) createException(p *person, name, spec string, annotations map[string]string) *v1alpha1.GateException {
	w.Helper()
	w.allowed(p, "create", "-f", exceptionFile(name, spec, annotations))
	return w.exception(name)
}

// exception reads a GateException.
func (w *world) exception(name string) *v1alpha1.GateException {
	w.Helper()
	e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(e)
	return e
}

// guarded creates a closed Gate whose exceptions need approvals.
func (w *world) guarded(approvals int32) *v1alpha1.Gate {
	w.Helper()
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: approvals}},
	})
	w.decided(g, metav1.ConditionFalse)
	return g
}

// opens returns a spec that opens the Gate now, for some hours.
func opens(hours int) string {
	return fmt.Sprintf(`{"timeZone":"UTC","validFrom":%q,"validUntil":%q,"openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`,
		stamp(time.Now().Add(-time.Hour)), stamp(time.Now().Add(time.Duration(hours)*time.Hour)))
}

// reported triggers the controller, and checks the condition Active of an exception, its approvals and the state of the Gate.
func (w *world) reported(g *v1alpha1.Gate, name, reason string, approvers ...string) {
	w.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	e := w.exception(name)
	w.Must(w.Merge(e, `{"metadata":{"annotations":{%q:%q}}}`, fluxmeta.ReconcileRequestAnnotation, token))
	w.until("the controller has reconciled "+name, func() (bool, any) {
		e = w.exception(name)
		return e.Status.LastHandledReconcileAt == token && e.Status.ObservedGeneration == e.Generation, e.Status
	})
	var by []string
	for _, a := range e.Status.Approvals {
		by = append(by, a.ApprovedBy)
	}
	opened := metav1.ConditionFalse
	if reason == v1alpha1.InForceReason {
		opened = metav1.ConditionTrue
	}
	active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition)
	if active == nil || active.Status != opened || active.Reason != reason || !slices.Equal(by, approvers) {
		w.Errorf("want %s and approvals by %q, status is %+v", reason, approvers, e.Status)
	}
	w.decided(g, opened)
}

// ttl returns the arguments that change the spec of the exception hotfix.
func ttl(value string) []string {
	return []string{`patch gtex hotfix --type=merge -p {"spec":{"ttlAfterExpired":"` + value + `"}}`}
}

// edit returns the arguments that change the spec of the exception hotfix.
func edit(spec string) []string {
	return []string{`patch gtex hotfix --type=merge -p {"spec":` + spec + `}`}
}

// approvalOf returns the value that approves the current version of an exception. Each call uses another time, because the same value
// would change nothing.
func (w *world) approvalOf(name string) string {
	w.Helper()
	return gate.FormatApproval(w.exception(name), time.Now())
}

// approval returns the arguments that approve the current version of the exception hotfix.
func (w *world) approval(more ...string) []string {
	w.Helper()
	return append([]string{"annotate", "--overwrite", "gtex", "hotfix", approveAt + "=" + w.approvalOf("hotfix")}, more...)
}

// stampsOf returns the lines of approvals "1 bob" as the API server stamps them.
func stampsOf(e *v1alpha1.GateException, approvals string) string {
	lines := strings.Split(approvals, "\n")
	for i, line := range lines {
		if number, by, ok := strings.Cut(line, " "); ok {
			lines[i] = fmt.Sprintf("generation=%s,uid=%s %s", number, e.UID, by)
		}
	}
	return strings.Join(lines, "\n")
}

// lines returns stampsOf for the current version of the exception hotfix.
func (w *world) lines(approvals string) string {
	w.Helper()
	return stampsOf(w.exception("hotfix"), approvals)
}

// stampedException checks the stamped authors and approvals of an exception, one in each line, such as "1 bob" for bob's approval of the
// first generation.
func (w *world) stampedException(name, wantAuthors, wantApprovals string) {
	w.Helper()
	e := w.exception(name)
	annotations := e.Annotations
	for key, want := range map[string]string{authors: wantAuthors, approveBy: stampsOf(e, wantApprovals)} {
		if got, ok := annotations[key]; got != want || ok != (want != "") {
			w.Errorf("%s is %q, %t, want %q", key, got, ok, want)
		}
	}
}

// lasting returns a spec with another time, given as days of January 2099 and their hours.
func lasting(from, until string) string {
	return fmt.Sprintf(`{"validFrom":"2099-01-%s:00:00Z","validUntil":"2099-01-%s:00:00Z"}`, from, until)
}

// judged waits until the policy considers an exception. It observes a new one within about a second.
func (w *world) judged(name string) {
	w.Helper()
	e := w.exception(name)
	e.Name, e.ResourceVersion = "judged", ""
	w.until("the policy considers "+name, func() (bool, any) {
		err := cluster.Client.Create(w.Context(), e.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "overlaps with gate exception "+w.Namespace+"/"+name+" "), err
	})
}

// free waits until no exception overlaps with a spec.
func (w *world) free(spec string) {
	w.Helper()
	w.Eventually("nothing overlaps", func() error {
		_, err := admin.kubectl(w.Context(), w.Namespace, "create", "--dry-run=server", "-f", exceptionFile("free", spec, nil))
		return err
	})
}

func TestExceptionsOfGateDoNotOverlap(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "first", lasting("10T00", "20T00"), nil)
	w.judged("first")
	within := func(effect string) string {
		return `{"timeZone":"UTC","validFrom":"2099-01-12T00:00:00Z","validUntil":"2099-01-13T00:00:00Z",` + effect + `}`
	}
	const someTargets = `"targets":[{"kind":"Kustomization","name":"apps"}],`
	const nightly, daily = `[{"name":"night","start":"22:00","end":"02:00"}]`, `[{"name":"day","start":"10:00","end":"12:00"}]`
	overlaps := fmt.Sprintf("denied request: gate exception %[1]s/second overlaps with gate exception %[1]s/first of the same gate production, "+
		"which lasts from 2099-01-10T00:00:00Z until 2099-01-20T00:00:00Z", w.Namespace)
	for _, spec := range []string{
		lasting("10T00", "20T00"), lasting("12T00", "13T00"), lasting("01T00", "31T00"), lasting("09T00", "10T01"), lasting("19T23", "21T00"),
		`{"validFrom":"2099-01-10T09:00:00+09:00","validUntil":"2099-01-10T09:00:01+09:00"}`,
		within(`"default":"closed","openPeriods":` + nightly), within(`"default":null,"openPeriods":` + nightly),
		within(`"default":null,"openPeriods":` + nightly + `,"closePeriods":` + daily), within(`"closePeriods":` + daily),
	} {
		w.refused(ona, overlaps, "create --dry-run=server -f "+exceptionFile("second", spec, nil))
	}
	for _, spec := range []string{
		within(`"default":null,"closePeriods":` + daily), within(`"default":"closed"`), within(`"default":"closed","openPeriods":[],"closePeriods":` + daily),
		lasting("01T00", "10T00"), lasting("20T00", "31T00"), `{"validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-10T09:00:00+09:00"}`,
		`{"validFrom":"1970-01-01T00:00:00Z","validUntil":"1970-01-02T00:00:00Z"}`,
		`{"gateRef":{"name":"staging"},"validFrom":"2099-01-10T00:00:00Z","validUntil":"2099-01-20T00:00:00Z"}`,
		within(someTargets + `"openPeriods":` + nightly),
	} {
		w.allowed(ona, "create --dry-run=server -f "+exceptionFile("second", spec, nil))
	}
	// The policy reads the exceptions in order, so it considers the one with targets before the one that is created later.
	w.createException(ona, "some", strings.Replace(lasting("25T00", "26T00"), "{", "{"+someTargets, 1), nil)
	w.createException(ona, "later", lasting("27T00", "28T00"), nil)
	w.judged("later")
	w.allowed(ona, "create --dry-run=server -f "+exceptionFile("second", lasting("25T00", "26T00"), nil))
	w.refused(ona, "gate exception "+w.Namespace+"/second-", "create", "-f", exceptionFile("generateName: second-", lasting("19T00", "21T00"), nil))
	away := newWorld(t)
	away.createException(away.as("ona", exceptionEditor, viewer), "second", lasting("10T00", "20T00"), nil)
}

// The exception that only closes is created first, and the others overlap with it.
func TestClosingExceptionBlocksNoOther(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "shut", strings.Replace(lasting("10T00", "20T00"), "{", `{"default":"closed",`, 1), nil)
	w.createException(ona, "first", lasting("20T00", "30T00"), nil)
	w.judged("first")
	w.allowed(ona, "create", "-f", exceptionFile("second", lasting("10T00", "20T00"), nil))
	w.judged("second")
	w.refused(ona, "overlaps with gate exception "+w.Namespace+"/second", "patch", "gtex", "shut", "--type=merge", "-p", `{"spec":{"default":"opened"}}`)
}

func TestChangedExceptionMustNotOverlap(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "first", lasting("10T00", "20T00"), nil)
	w.createException(ona, "second", lasting("20T00", "30T00"), nil)
	w.createException(ona, "third", `{"gateRef":{"name":"staging"},"validFrom":"2099-01-10T00:00:00Z","validUntil":"2099-01-20T00:00:00Z"}`, nil)
	for _, name := range []string{"first", "second", "third"} {
		w.judged(name)
	}
	patch := func(name, spec string) []string {
		return []string{"patch", "gtex", name, "--type=merge", "-p", `{"spec":` + spec + `}`}
	}
	cause := func(name, other string) string {
		return fmt.Sprintf("gate exception %[1]s/%[2]s overlaps with gate exception %[1]s/%[3]s of the same gate production, which lasts from 2099-01-", w.Namespace, name, other)
	}
	w.refused(ona, cause("first", "second"), patch("first", `{"validUntil":"2099-01-20T00:00:01Z"}`)...)
	w.allowed(ona, patch("third", `{"validUntil":"2099-01-30T00:00:00Z"}`)...) // for another gate
	w.refused(ona, cause("first", "second"), "replace", "-f", exceptionFile("first", lasting("10T00", "21T00"), nil))
	w.refused(ona, cause("first", "second"), "apply", "--server-side", "--force-conflicts", "-f", exceptionFile("first", lasting("10T00", "21T00"), nil))
	// Compared with itself, and after the other exception has moved.
	w.allowed(ona, patch("first", `{"validUntil":"2099-01-19T00:00:00Z"}`)...)
	w.allowed(ona, patch("second", `{"validFrom":"2099-01-25T00:00:00Z"}`)...)
	w.free(lasting("20T00", "21T00"))
	w.allowed(ona, patch("first", `{"validFrom":"2099-01-09T00:00:00Z","validUntil":"2099-01-25T00:00:00Z"}`)...)
}

func TestExpiredOrDeletedExceptionBlocksNoOther(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "first", lasting("10T00", "20T00"), nil)
	w.until("the controller has reported it", func() (bool, any) {
		e := w.exception("first")
		return e.Status.ObservedGeneration == e.Generation, e.Status
	})
	w.stopController()
	w.judged("first")
	account := w.as(controllerName, w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	for _, step := range []struct {
		status string
		judged bool
	}{
		{activeCondition("Pending"), true}, {activeCondition("InForce"), true}, {activeCondition("Overlapped"), true},
		{activeCondition("WaitingApproval"), true}, {activeCondition("GateNotReady"), true}, {activeCondition("Expired"), false},
		{`"observedGeneration":0`, true}, {`"observedGeneration":1`, false}, // Expired refers to the generation that the controller observed
		{activeCondition("Pending"), true},
	} {
		w.allowed(account, `patch gtex first --subresource=status --type=merge -p {"status":{`+step.status+`}}`)
		if step.judged {
			w.judged("first")
		} else {
			w.free(lasting("10T00", "20T00"))
		}
	}

	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/stay"]}}`)
	w.allowed(ona, "delete", "gtex", "first", "--wait=false")
	w.free(lasting("10T00", "20T00"))
	w.createException(ona, "second", lasting("10T00", "20T00"), nil)
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)

	// A new exception takes the place of another immediately.
	w.judged("second")
	w.allowed(ona, "replace", "--force", "-f", exceptionFile("second", lasting("10T00", "20T00"), nil))
}

// The policy does not wait until the controller has reconciled.
func TestEditedExpiredExceptionBlocksImmediately(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "first", `{"validFrom":"2020-01-01T00:00:00Z","validUntil":"2020-01-02T00:00:00Z"}`, nil)
	w.until("the exception is expired", func() (bool, any) {
		e := w.exception("first")
		active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition)
		return active != nil && active.Reason == v1alpha1.ExpiredReason && e.Labels[v1alpha1.ExpiredLabel] == "true", e
	})
	w.stopController()
	w.allowed(ona, "label", "gtex", "first", "team=shop")
	w.is("the label, after another label", w.exception("first").Labels[v1alpha1.ExpiredLabel], "true")
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"spec":`+lasting("10T00", "20T00")+`}`)
	w.judged("first")
	w.is("the label, after an edit", w.exception("first").Labels[v1alpha1.ExpiredLabel], "")
}

// An exception with this label would not prevent another one.
func TestOnlyControllerLabelsExpiredExceptions(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	expired := `"metadata":{"labels":{"` + v1alpha1.ExpiredLabel + `":"true"}}`
	w.createException(ona, "first", lasting("10T00", "20T00"), nil)
	w.judged("first")
	for _, patch := range []string{"{" + expired + "}", "{" + expired + `,"spec":` + lasting("11T00", "20T00") + "}"} {
		w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", patch)
		w.is("the label, after "+patch, w.exception("first").Labels[v1alpha1.ExpiredLabel], "")
	}
	second := w.exception("first")
	second.Name, second.ResourceVersion, second.Labels = "second", "", map[string]string{v1alpha1.ExpiredLabel: "true"}
	second.Spec.GateRef.Name = "staging"
	w.Create(second)
	w.Read(second)
	w.is("the label after creation", second.Labels[v1alpha1.ExpiredLabel], "")
	w.judged("first")
}

// If two exceptions overlap anyway, for example because they are older than the policy, users and the controller can still label them.
func TestOverlapIsCheckedOnlyOnSpecWrites(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.overlapping(ona, "first", "second")
	for _, name := range []string{"first", "second"} {
		w.judged(name)
	}
	account := w.as(controllerName, w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	for _, name := range []string{"first", "second"} {
		w.allowed(account, "patch", "gtex", name, "--type=merge", "-p", `{"metadata":{"finalizers":["`+v1alpha1.GateFinalizer+`"],"labels":{"`+v1alpha1.GateLabel+`":"production"}}}`)
		w.allowed(account, "patch", "gtex", name, "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1,`+activeCondition("Pending")+`}}`)
		w.allowed(ona, "label", "gtex", name, "a=b")
	}
	w.refused(ona, "overlaps with gate exception "+w.Namespace+"/second", "patch", "gtex", "first", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":"1h"}}`)
	w.allowed(ona, "patch", "gtex", "first", "--type=merge", "-p", `{"spec":`+lasting("01T00", "02T00")+`}`)
	for _, name := range []string{"first", "second"} {
		w.allowed(account, "patch", "gtex", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
}

// overlapping creates GateExceptions with the same time while the policy is not bound.
func (w *world) overlapping(p *person, names ...string) {
	w.Helper()
	w.without("gate-exception-overlap", []string{validating}, func() {
		for _, name := range names {
			w.Eventually("no policy prevents "+name, func() error {
				_, err := p.kubectl(w.Context(), w.Namespace, "create", "-f", exceptionFile(name, lasting("10T00", "20T00"), nil))
				return err
			})
		}
	})
}

// activeCondition returns the field conditions of a status with the condition Active and a reason.
func activeCondition(reason string) string {
	status := metav1.ConditionFalse
	if reason == v1alpha1.InForceReason {
		status = metav1.ConditionTrue
	}
	return fmt.Sprintf(`"conditions":[{"type":"Active","status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-11-21T16:41:57Z"}]`, status, reason)
}
