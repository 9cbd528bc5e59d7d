package target

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/activation"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// activationIdentity contains the annotations that mark Secrets written by this controller.
var activationIdentity = activation.Identity{Fingerprint: v1alpha1.ActivatedAnnotation, Certificate: v1alpha1.ActivatedFromAnnotation}

// activator activates certificates by copying them from the staged Secret to the live Secret.
type activator struct {
	client.Client
	kuberecorder.EventRecorder
	// Live reads from the API server.
	Live client.Reader
	// Gates looks up the Gates of a Certificate.
	Gates *view.GateIndex
	// Clock is read after all Gates were read.
	Clock clock.PassiveClock
}

func secretNames(obj *target.Object) activation.Names {
	names := activation.Names{Certificate: obj.GetName(), Live: obj.GetAnnotations()[v1alpha1.ActivateIntoAnnotation]}
	if activator, ok := target.As[target.Activator](&obj.Unstructured); ok {
		names.Staged = activator.StagedSecret(obj)
	}
	return names
}

// activationRun is one run of the activation of a Certificate.
type activationRun struct {
	*activator
	obj   *target.Object
	names activation.Names
	now   time.Time

	decision activation.Decision
	// closed are the Gates that the Certificate waits for.
	closed closedGates
	// err is an error that a retry may resolve.
	err error
}

// run activates the issued certificate if the Gates permit that. If another client writes a Secret in the meantime, it decides again.
func (a *activator) run(ctx context.Context, obj *target.Object, now time.Time) *activationRun {
	of := &activationRun{activator: a, obj: obj, names: secretNames(obj), now: now}
	for retry := 0; ; retry++ {
		err := of.try(ctx)
		switch {
		case err == nil:
			return of
		case retry < ownwrites.Retries && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)):
			continue
		case apierrors.IsForbidden(err):
			of.refuse(msgActivationForbidden + err.Error())
		default:
			of.refuse(err.Error())
			of.err = err
		}
		return of
	}
}

// failure returns the failure of the activation, nil if it has not failed.
func (a *activationRun) failure() *summary.Failure {
	if a.decision.Outcome != activation.Refused {
		return nil
	}
	return &summary.Failure{Reason: v1alpha1.ActivationFailedReason, Message: a.decision.Message}
}

func (a *activationRun) refuse(message string) {
	a.decision = activation.Decision{Message: message, Live: a.decision.Live}
}

// try makes one decision and carries it out. It reads the live Secret before the staged one, so that a concurrent activation of a newer
// certificate causes a conflict.
func (a *activationRun) try(ctx context.Context) error {
	if message := a.names.Invalid(); message != "" {
		a.refuse(message)
		return nil
	}
	live, err := a.read(ctx, a.names.Live)
	if err != nil {
		return err
	}
	staged, err := a.read(ctx, a.names.Staged)
	if err != nil {
		return err
	}
	decide := func(when activation.When) {
		a.decision = activation.Decide(a.names, activationIdentity, contents(staged), contents(live), when, a.now)
	}
	if decide(activation.When{Open: true}); a.decision.Outcome != activation.Promote {
		return nil
	}
	when, err := a.when(ctx)
	if err != nil {
		return err
	}
	if decide(when); a.decision.Outcome != activation.Promote {
		return nil
	}
	if a.decision.Previous != nil {
		if refused, err := a.storePrevious(ctx, live); err != nil || refused != "" {
			a.refuse(refused)
			return err
		}
	}
	err = a.write(ctx, a.names.Live, live, activation.Secret{
		Data: staged.Data, Annotations: map[string]string{v1alpha1.ActivatedAnnotation: a.decision.Fingerprint},
	})
	if err != nil {
		return err
	}
	a.emitActivated()
	a.decision.Outcome, a.decision.Live = activation.Activated, a.decision.Staged
	return nil
}

// storePrevious copies the live certificate to another Secret before the activation. If the process terminates in between, the copy is
// still correct, because the live Secret has not changed.
func (a *activationRun) storePrevious(ctx context.Context, live *corev1.Secret) (refused string, err error) {
	previous, err := a.read(ctx, a.names.Previous())
	if err != nil {
		return "", err
	}
	if refused := a.names.RefusePrevious(activationIdentity, contents(previous)); refused != "" {
		return refused, nil
	}
	if previous != nil && activation.Same(previous.Data, a.decision.Previous) {
		return "", nil
	}
	// Another client may have activated a certificate and stored the previous one since the live Secret was read above.
	latest, err := a.read(ctx, a.names.Live)
	if err != nil {
		return "", err
	}
	if latest == nil || latest.ResourceVersion != live.ResourceVersion {
		return "", apierrors.NewConflict(corev1.Resource("secrets"), a.names.Live, nil)
	}
	return "", a.write(ctx, a.names.Previous(), previous, activation.Secret{Data: a.decision.Previous})
}

// read reads a Secret from the API server. It returns nil if the Secret does not exist. Secrets are never cached.
func (a *activationRun) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: a.obj.GetNamespace(), Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil means that the Secret does not exist
	}
	return secret, err
}

// write creates or patches a Secret in one write, conditional on the version that was read. Server-side apply would keep the keys of
// other clients.
func (a *activationRun) write(ctx context.Context, name string, have *corev1.Secret, want activation.Secret) error {
	want.Labels = map[string]string{"app.kubernetes.io/managed-by": v1alpha1.FieldManager}
	if want.Annotations == nil {
		want.Annotations = map[string]string{}
	}
	want.Annotations[v1alpha1.ActivatedFromAnnotation] = a.names.Certificate
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: a.obj.GetNamespace(), Labels: want.Labels, Annotations: want.Annotations,
	}}
	if have == nil {
		secret.Type, secret.Data = corev1.SecretTypeTLS, want.Data
		return a.Create(ctx, secret, client.FieldOwner(v1alpha1.FieldManager))
	}
	patch, err := activation.Patch(have.ResourceVersion, *contents(have), want)
	if err != nil {
		return err
	}
	return a.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
}

// contents returns the fields of a Secret that decisions depend on, nil for a nil Secret.
func contents(s *corev1.Secret) *activation.Secret {
	if s == nil {
		return nil
	}
	c := &activation.Secret{
		Type: string(s.Type), Immutable: s.Immutable != nil && *s.Immutable,
		Labels: s.Labels, Annotations: s.Annotations, Data: s.Data,
	}
	if owner := metav1.GetControllerOf(s); owner != nil {
		c.Controller = owner.Kind + " '" + owner.Name + "'"
	}
	return c
}

// emitActivated emits an event on the Certificate.
func (a *activationRun) emitActivated() {
	d := a.decision
	if d.Early {
		a.Eventf(a.obj, events.Normal, v1alpha1.ActivatedReason, msgActivatedEarly,
			a.names.Live, verdict.ClosedAre(a.closed.names()), d.Staged.Serial, d.Staged.End(), d.Live.End())
		return
	}
	a.Eventf(a.obj, events.Normal, v1alpha1.ActivatedReason, msgActivated,
		a.names.Live, d.Staged.Serial, d.Staged.End())
}

// condition returns the condition Activated, and emits an event if it reports a new failure.
func (a *activationRun) condition() *metav1.Condition {
	condition := activatedCondition(a.names, a.decision, a.closed)
	was := conditions.Get(a.obj, condition.Type)
	if condition.Reason == v1alpha1.ActivationFailedReason &&
		(was == nil || was.Reason != condition.Reason || was.Message != condition.Message) {
		a.Eventf(a.obj, events.Warning, v1alpha1.ActivationFailedReason, msgNotActivated, a.names.Live, a.decision.Message)
	}
	return &condition
}
