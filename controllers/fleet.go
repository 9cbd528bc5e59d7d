package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/refresh"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// fleet is the Machines of a Gate while their certificates are refreshed.
type fleet struct {
	*MachineReconciler
	gate refresh.Gate
	ttl  string
	now  time.Time
	// obj is the Gate, nil if it is gone.
	obj *v1alpha1.Gate
	// machines are those that the Gate governs, and those that have its record.
	machines []*target.Object
	governed map[types.UID]bool
	// live says that the machines are as the API server has them, not a cache; gates are all as it has them then, once
	// they are asked for.
	live  bool
	gates []*v1alpha1.Gate
	// skipped are those that cannot be written or that a Gate keeps back.
	skipped map[string]bool
	// ended are those whose refresh is over, begun says that one has begun: each only
	// once in a pass, even if others undo our writes.
	ended map[string]bool
	begun bool
	// failures are those of Machines, by their names, and err what another try may mend.
	failures map[string]tally.Failure
	err      error
	recheck
}

// refresh does one thing after the other until there is nothing left to do, and
// returns what was decided then. The error is errGateChanged or nil.
func (f *fleet) refresh(ctx context.Context) (refresh.Decision, error) {
	for conflicts := 0; ; {
		d := f.decide()
		name, err := f.act(ctx, d)
		switch {
		case name == "" && err == nil:
			f.again(d.Recheck)
			for _, fault := range d.Faults {
				f.fail(fault.Machine, v1alpha1.RefreshCertsFailedReason, fault.Message)
			}
			return d, nil
		case errors.Is(err, errGateChanged):
			return d, err
		case raced(err) && conflicts < conflictRetries:
			conflicts++
			if err = f.read(ctx); err == nil {
				continue
			}
			fallthrough
		case err != nil:
			// Unless the write was refused, nobody knows whether it was made.
			f.skipped[name], f.gate.Idle = true, f.gate.Idle || !refused(err)
			f.err = errors.Join(f.err, err)
			f.fail(name, v1alpha1.WriteFailedReason, err.Error())
		}
	}
}

// refused returns whether the API server says that it did not make a write.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

func (f *fleet) decide() refresh.Decision {
	machines := make([]refresh.Machine, len(f.machines))
	for i, t := range f.machines {
		machines[i] = machineOf(t)
		machines[i].Governed = f.governed[t.GetUID()]
	}
	return refresh.Decide(f.gate, machines, f.now)
}

func machineOf(t *target.Object) refresh.Machine {
	annotations, labels := t.GetAnnotations(), t.GetLabels()
	_, controlPlane := labels[target.ControlPlaneLabel]
	return refresh.Machine{
		Name: nameOf(t), Cluster: t.GetNamespace() + "/" + labels[target.ClusterNameLabel], ControlPlane: controlPlane,
		Deleting: !t.GetDeletionTimestamp().IsZero(),
		Expiry:   annotations[target.CertificatesExpiryAnnotation],
		Status:   annotations[target.RefreshStatusAnnotation],
		Record:   refresh.ParseRecord(annotations[v1alpha1.RefreshAnnotation]),
		Request: map[target.State]refresh.Request{
			target.Free: refresh.None, target.Held: refresh.Ours, target.Foreign: refresh.Others,
		}[target.Of(&t.Unstructured).Observe(t, verdict.Us)],
	}
}

func nameOf(t *target.Object) string { return client.ObjectKeyFromObject(t).String() }

// act does the first thing that is left to do and returns the name of the Machine
// that it is about, none if nothing is left.
func (f *fleet) act(ctx context.Context, d refresh.Decision) (string, error) {
	for _, end := range d.Ends {
		if !f.skipped[end.Machine] && !f.ended[end.Machine] {
			return end.Machine, f.end(ctx, end)
		}
	}
	for _, name := range d.Next {
		if f.skipped[name] || f.begun {
			continue
		}
		if !f.live {
			// A cache that is behind would have a second one begun.
			f.pause(f.read(ctx))
			return name, nil
		}
		vetoed, err := f.vetoed(ctx, f.find(name))
		switch {
		case err != nil:
			f.pause(err)
			return name, nil
		case !vetoed:
			return name, f.begin(ctx, name)
		}
		f.skipped[name] = true
	}
	return "", nil
}

// pause begins nothing for now if something could not be read.
func (f *fleet) pause(err error) {
	if err != nil {
		f.gate.Idle = true
		namespace, _, _ := strings.Cut(f.gate.Name, "/")
		f.err = errors.Join(f.err, err)
		f.fail(namespace+"/"+v1alpha1.AnyName, v1alpha1.ReadFailedReason, err.Error())
	}
}

func (f *fleet) find(name string) *target.Object {
	return f.machines[slices.IndexFunc(f.machines, func(t *target.Object) bool { return nameOf(t) == name })]
}

// read reads the Machines from the API server.
func (f *fleet) read(ctx context.Context) error {
	lists := map[types.NamespacedName]*unstructured.UnstructuredList{}
	known := map[types.UID]bool{}
	for _, t := range f.machines {
		gvk := t.GroupVersionKind()
		known[t.GetUID()] = true
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		lists[types.NamespacedName{Namespace: t.GetNamespace(), Name: gvk.Version}] = list
	}
	var machines []*target.Object
	for key, list := range lists {
		if err := f.APIReader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			t := &target.Object{Unstructured: list.Items[i]}
			target.Trim(&t.Unstructured, verdict.Us)
			if known[t.GetUID()] || slices.Contains(heldBy(&t.Unstructured), f.gate.Name) {
				machines = append(machines, t)
			}
		}
	}
	f.machines, f.live, f.gates = machines, true, nil
	return nil
}

// begin requests a refresh. The request and our record of it are one write, on the
// version that was decided on: nobody else's request is overwritten.
func (f *fleet) begin(ctx context.Context, name string) error {
	t := f.find(name)
	m := machineOf(t)
	expiry, err := time.Parse(time.RFC3339, m.Expiry)
	if err != nil {
		return err
	}
	if m.Status == refresh.StatusFailed {
		// A provider that fails again would leave it as it is, and nobody could
		// tell that from an answer.
		cleared := &target.Object{Unstructured: *t.DeepCopy()}
		unstructured.RemoveNestedField(cleared.Object, "metadata", "annotations", target.RefreshStatusAnnotation)
		if err := f.Patch(ctx, &cleared.Unstructured, client.MergeFromWithOptions(&t.Unstructured, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			return err
		}
		t = cleared
	}
	record := refresh.Record{Gate: f.gate.Name, RequestedAt: f.now, Expiry: expiry}
	t, err = f.write(ctx, t, map[string]string{
		target.RefreshRequestAnnotation: f.ttl, v1alpha1.RefreshAnnotation: record.String(),
	})
	if err != nil {
		return err
	}
	f.begun = true
	why := fmt.Sprintf("gate '%s' is open", f.gate.Name)
	if !f.gate.Open {
		why = fmt.Sprintf("they expire at %s although gate '%s' is closed", m.Expiry, f.gate.Name)
	}
	f.Eventf(t, eventNormal, v1alpha1.RefreshCertsInProgressReason, "Certificates valid for %s requested: %s", f.ttl, why)
	return nil
}

// end removes what is left of a request. A failure is in the status of the Gate
// before the Machine forgets it.
func (f *fleet) end(ctx context.Context, end refresh.End) error {
	message := fmt.Sprintf("Refresh of the certificates requested by gate '%s': %s", f.gate.Name, end.Message)
	if end.Outcome.Stops() {
		failure := v1alpha1.MachineFailure{Machine: end.Machine, Message: end.Message, At: metav1.NewTime(f.now)}
		if err := f.stop(ctx, failure); err != nil {
			return err
		}
	}
	t, err := f.write(ctx, f.find(end.Machine), nil)
	f.ended[end.Machine] = err == nil
	switch {
	case err != nil:
		return err
	case end.Outcome.Stops():
		f.Eventf(t, eventWarning, v1alpha1.RefreshCertsFailedReason, "%s", message)
	case end.Outcome == refresh.Done:
		f.Eventf(t, eventNormal, v1alpha1.RefreshCertsDoneReason, "%s", message)
	}
	return nil
}

// write applies our annotations of a Machine, and no others.
func (f *fleet) write(ctx context.Context, t *target.Object, annotations map[string]string) (*target.Object, error) {
	config := configOf(t)
	config.SetAnnotations(annotations)
	if err := f.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	latest := config // what was applied is filled with the answer
	target.Trim(&latest.Unstructured, verdict.Us)
	for i := range f.machines {
		if f.machines[i].GetUID() == latest.GetUID() {
			f.machines[i] = latest
		}
	}
	return latest, nil
}

// vetoed returns whether a Gate keeps a Machine from being refreshed: its own if that has changed since it was read, and each
// that governs it if it is neither open nor lets it be.
func (f *fleet) vetoed(ctx context.Context, t *target.Object) (bool, error) {
	if f.gates == nil {
		all, err := f.Gates.All(ctx)
		if err != nil {
			return false, err
		}
		f.gates = all
	}
	expiry, err := time.Parse(time.RFC3339, t.GetAnnotations()[target.CertificatesExpiryAnnotation])
	if err != nil {
		return false, err
	}
	gates, err := f.Gates.Among(ctx, f.gates, t, f.Clock.Now())
	if err != nil {
		return false, err
	}
	own := slices.IndexFunc(gates, f.isOwn)
	if own < 0 {
		return true, nil // its event wakes
	}
	f.gate.Open = gates[own].Stand == verdict.Open // as it is told
	for _, g := range gates {
		terms := target.Terms{Margin: v1alpha1.DefaultSafetyMargin}
		if g.Object != nil {
			terms = machineTerms(g)
		}
		by := refresh.Gate{Margin: terms.Margin, Strict: terms.Strict}
		switch {
		case !isOver(g) || g.LetsActivate() || by.Imminent(expiry, f.now):
			continue
		case !by.Strict:
			f.again(expiry.Add(-by.Margin))
		}
		return true, nil
	}
	return false, nil
}

// isOwn returns whether a Gate is the one that this is the fleet of, with the same spec, and governs the Machine. No refresh has
// failed meanwhile.
func (f *fleet) isOwn(g verdict.Gate) bool {
	return g.Name == f.gate.Name && g.Governs && g.Object.UID == f.obj.UID && g.Object.Generation == f.obj.Generation && !isStopped(g.Object)
}

// machineTerms returns the terms on which a closed Gate lets the certificates of
// Machines be refreshed. How long they are valid is not known, but how long the
// new ones will be.
func machineTerms(g verdict.Gate) target.Terms {
	terms := verdict.Terms([]verdict.Gate{g})
	if policy := g.Object.Spec.Machines; policy != nil {
		terms.Margin = min(terms.Margin, policy.Lifetime()/6)
	}
	return terms
}

// stop keeps a failure in the status of the Gate, before the Machine forgets it. With the generation that is decided on, so that
// no crash lets it pass for one of the spec before.
func (f *fleet) stop(ctx context.Context, failure v1alpha1.MachineFailure) error {
	f.gate.Idle = true
	if f.obj == nil {
		return nil
	}
	before := f.obj.DeepCopy()
	if f.obj.Status.Machines == nil {
		f.obj.Status.Machines = &v1alpha1.MachineStatus{}
	}
	f.obj.Status.Machines.Stopped = &failure
	return f.patch(ctx, before, f.obj)
}

// fail notes a failure of a Machine, given as namespace/name.
func (f *fleet) fail(machine, reason, message string) {
	if _, ok := f.failures[machine]; !ok {
		f.failures[machine] = tally.Failure{Reason: reason, Message: message}
	}
}
