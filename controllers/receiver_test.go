package controllers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/receiver"
	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// replica is a controller of receivers with its own table.
type replica struct {
	*receiver.Webhooks
	writes *controllertest.Writes
	// fault is the error of reads of Secrets, nil to read from the API server.
	fault error
}

func newReplica() *replica {
	r := &replica{writes: &controllertest.Writes{}}
	reader := interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if r.fault != nil {
				return r.fault
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	r.Webhooks = &receiver.Webhooks{Client: r.writes.Client(cluster.Client), Metrics: runtimectrl.Metrics{}, Table: receivers.NewTable(reader)}
	return r
}

func (w *world) receiver(name string, change ...func(*v1alpha1.GateReceiverSpec)) *v1alpha1.GateReceiver {
	w.Helper()
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Spec: v1alpha1.GateReceiverSpec{
		Type: v1alpha1.GenericHMACReceiver, SecretRef: &meta.LocalObjectReference{Name: name},
		GateRefs: []v1alpha1.GateReference{{Name: "production"}}, Action: "open",
	}}
	for _, c := range change {
		c(&obj.Spec)
	}
	w.Must(cluster.Client.Create(w.Context(), obj))
	return obj
}

// token writes the Secret of a receiver.
func (w *world) token(name string, data map[string]string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, StringData: data}
	err := cluster.Client.Create(w.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		w.Must(cluster.Client.Delete(w.Context(), secret))
		secret.ResourceVersion = ""
		err = cluster.Client.Create(w.Context(), secret)
	}
	w.Must(err)
}

// loads makes a replica reconcile a receiver, and returns the delay of the next reconciliation.
func (w *world) loads(r *replica, obj *v1alpha1.GateReceiver) (time.Duration, error) {
	w.Helper()
	result, err := r.Reconcile(w.Context(), requestFor(obj))
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	return result.RequeueAfter, err
}

func (w *world) saysReceiver(obj *v1alpha1.GateReceiver, path string, want ...string) {
	w.Helper()
	var got []string
	for _, c := range obj.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		if c.ObservedGeneration != obj.Generation {
			w.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || obj.Status.WebhookPath != path || obj.Status.ObservedGeneration != obj.Generation {
		w.Errorf("got %q at %q, observed %d; want %q at %q", got, obj.Status.WebhookPath, obj.Status.ObservedGeneration, want, path)
	}
}

// pathFor computes a path as notification-controller does.
func pathFor(obj *v1alpha1.GateReceiver, token string) string {
	digest := sha256.Sum256([]byte(token + obj.Name + obj.Namespace))
	return "/hook/" + hex.EncodeToString(digest[:])
}

func TestReceiverIsReadyOnceItHasToken(t *testing.T) {
	w := newWorld(t)
	r := newReplica()
	obj := w.receiver("ci", func(s *v1alpha1.GateReceiverSpec) { s.Interval = &v1alpha1.Duration{Duration: time.Hour} })
	w.Annotate(obj, meta.ReconcileRequestAnnotation, "now")
	again, err := w.loads(r, obj)
	w.Must(err)
	w.saysReceiver(obj, "", "Ready False TokenNotFound")
	if got := obj.Status.LastHandledReconcileAt; got != "now" {
		t.Errorf("the last handled reconcile request is %q", got)
	}
	if again <= 0 || again > time.Minute {
		t.Errorf("a Secret that is created later is found after %s", again)
	}
	w.token("ci", map[string]string{"other": "t"})
	_, err = w.loads(r, obj)
	w.Must(err)
	w.saysReceiver(obj, "", "Ready False TokenNotFound")
	if message := conditions.GetMessage(obj, "Ready"); !strings.Contains(message, "required field 'token'") {
		t.Errorf("says %q", message)
	}
	w.token("ci", map[string]string{"token": "t0"})
	again, err = w.loads(r, obj)
	w.Must(err)
	w.saysReceiver(obj, pathFor(obj, "t0"), "Ready True Succeeded")
	if again < 50*time.Minute || again > 70*time.Minute {
		t.Errorf("looks again after %s", again)
	}
	r.fault = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ci", errors.New("no"))
	_, err = w.loads(r, obj)
	w.Must(err)
	w.saysReceiver(obj, "", "Ready False TokenNotFound")
	r.fault = nil
	_, err = w.loads(r, obj)
	w.Must(err)
	r.fault = errBroken
	if _, err = w.loads(r, obj); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	w.saysReceiver(obj, pathFor(obj, "t0"), "Ready False Failed")
}

// The API server refuses such a spec, but may have stored one before the rule existed.
func TestOpeningReceiverWithOnlySecretPathIsNotReady(t *testing.T) {
	scheme, err := harness.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "apps"}, Spec: v1alpha1.GateReceiverSpec{
		Type: v1alpha1.GenericReceiver, SecretRef: &meta.LocalObjectReference{Name: "ci"}, GateRefs: []v1alpha1.GateReference{{Name: "production"}}, Action: "open",
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "apps"}, Data: map[string][]byte{"token": []byte("t0")}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj, secret).WithStatusSubresource(obj).Build()
	r := &receiver.Webhooks{Client: c, Metrics: runtimectrl.Metrics{}, Table: receivers.NewTable(c)}
	key := client.ObjectKeyFromObject(obj)
	for action, want := range map[v1alpha1.RequestAction]string{"open": v1alpha1.InvalidSpecReason, "close": meta.SucceededReason} {
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
		obj.Spec.Action = action
		if err := c.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
		stalled := want == v1alpha1.InvalidSpecReason
		if conditions.GetReason(obj, meta.ReadyCondition) != want || conditions.IsReady(obj) == stalled || conditions.IsStalled(obj) != stalled || obj.Status.WebhookPath != pathFor(obj, "t0") {
			t.Errorf("action %s: %+v", action, obj.Status)
		}
		if message := conditions.GetMessage(obj, meta.ReadyCondition); stalled && !strings.HasPrefix(message, "type generic can only close, because the path is its only secret: set action: close") {
			t.Errorf("the message is %q", message)
		}
	}
}

func TestReplicasReportTheSame(t *testing.T) {
	w := newWorld(t)
	one, two := newReplica(), newReplica()
	obj := w.receiver("ci")
	for _, hasToken := range []bool{false, true} {
		if hasToken {
			w.token("ci", map[string]string{"token": "t0"})
		}
		one.writes.Before = once("patch-status GateReceiver", conflict)
		if after, err := w.loads(one, obj); err != nil || after != ownwrites.StaleRetry {
			t.Errorf("after a conflict, with a token %t, it is requeued after %s: %v", hasToken, after, err)
		}
	}
	one.writes.Take("")
	for _, r := range []*replica{one, two, one, two} {
		_, err := w.loads(r, obj)
		w.Must(err)
	}
	if len(one.writes.Take("")) != 1 || len(two.writes.Take("")) > 0 {
		t.Error("the second replica writes what the first one has written")
	}

	w.token("ci", map[string]string{"token": "t1", "previousToken": "t0"})
	before := obj.DeepCopy()
	_, err := w.loads(one, obj)
	w.Must(err)
	w.saysReceiver(obj, pathFor(obj, "t1"), "Ready True Succeeded")
	if !(receiver.PathChanged{}).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: obj}) || (receiver.PathChanged{}).Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}) {
		t.Error("another replica does not follow")
	}
	for _, r := range []*replica{two, one, two} {
		_, err := w.loads(r, obj)
		w.Must(err)
	}
	if len(one.writes.Take("")) != 1 || len(two.writes.Take("")) > 0 {
		t.Error("the second replica writes what the first one has written")
	}
}

func TestDeletedReceiverIsEvicted(t *testing.T) {
	w := newWorld(t)
	r := newReplica()
	table := &forgotten{PathTable: r.Table}
	r.Table = table
	obj := w.receiver("ci")
	w.token("ci", map[string]string{"token": "abc"})
	_, err := w.loads(r, obj)
	w.Must(err)
	obj.Finalizers = []string{"example.com/keep"}
	w.Must(cluster.Client.Update(w.Context(), obj))
	w.Must(cluster.Client.Delete(w.Context(), obj))
	for range 2 { // first under deletion, and then deleted
		table.names = nil
		if result, err := r.Reconcile(w.Context(), requestFor(obj)); err != nil || !result.IsZero() || !slices.Equal(table.names, []string{"ci"}) {
			t.Errorf("got %v, %v, evicted are %q", result, err, table.names)
		}
		w.Must(client.IgnoreNotFound(cluster.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	}
}

type forgotten struct {
	receiver.PathTable[*v1alpha1.GateReceiver]
	names []string
}

func (f *forgotten) Forget(key client.ObjectKey) { f.names = append(f.names, key.Name) }
