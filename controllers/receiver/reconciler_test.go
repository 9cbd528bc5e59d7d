package receiver

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/receivers"
)

// cluster is an API server in memory with a receiver that can only close. It has no Secret yet.
type cluster struct {
	*testing.T
	client.WithWatch
	obj *v1alpha1.GateReceiver
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	c := &cluster{T: t, obj: &v1alpha1.GateReceiver{
		ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "apps", Annotations: map[string]string{meta.ReconcileRequestAnnotation: "now"}},
		Spec: v1alpha1.GateReceiverSpec{
			Type: v1alpha1.GenericReceiver, SecretRef: &meta.LocalObjectReference{Name: "ci"}, Action: "close",
			GateRefs: []v1alpha1.GateReference{{Name: "production"}}, Interval: &v1alpha1.Duration{Duration: time.Hour},
		},
	}}
	c.must(errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)))
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.obj).WithStatusSubresource(c.obj).Build()
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// token writes the Secret of the receiver.
func (c *cluster) token(data map[string]string) {
	c.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "apps"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	err := c.Create(c.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = c.Update(c.Context(), secret)
	}
	c.must(err)
}

// loads makes a replica reconcile the receiver, and returns the delay of the next reconciliation.
func (c *cluster) loads(r *replica) (time.Duration, error) {
	c.Helper()
	key := client.ObjectKeyFromObject(c.obj)
	result, err := r.Reconcile(c.Context(), ctrl.Request{NamespacedName: key})
	c.must(c.Get(c.Context(), key, c.obj))
	return result.RequeueAfter, err
}

// expect checks the conditions of the receiver and its path, which depends on the token. Without a token, it expects no path.
func (c *cluster) expect(token string, want ...string) {
	c.Helper()
	path := ""
	if digest := sha256.Sum256([]byte(token + "ci" + "apps")); token != "" { // as notification-controller does
		path = "/hook/" + hex.EncodeToString(digest[:])
	}
	var got []string
	for _, is := range c.obj.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s %s", is.Type, is.Status, is.Reason))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || c.obj.Status.WebhookPath != path || c.obj.Status.LastHandledReconcileAt != "now" {
		c.Errorf("got %q, want %q at %q: %+v", got, want, path, c.obj.Status)
	}
}

// replica is a controller of receivers with its own table.
type replica struct {
	*Webhooks
	// written counts the writes. conflict makes the next one fail.
	written  int
	conflict bool
	// fault is the error of reads of Secrets, nil to read them.
	fault error
}

func (c *cluster) replica() *replica {
	r := &replica{}
	api := interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, isSecret := obj.(*corev1.Secret); isSecret && r.fault != nil {
				return r.fault
			}
			return api.Get(ctx, key, obj, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, api client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if r.written++; r.conflict {
				r.conflict = false
				return apierrors.NewConflict(schema.GroupResource{Resource: "gatereceivers"}, "ci", errors.New("injected"))
			}
			return api.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	r.Webhooks = &Webhooks{Client: api, Table: receivers.NewTable(api)}
	return r
}

func TestReceiverIsReadyOnceItHasToken(t *testing.T) {
	c := newCluster(t)
	r := c.replica()
	load := func() time.Duration {
		t.Helper()
		after, err := c.loads(r)
		c.must(err)
		return after
	}
	if after := load(); after <= 0 || after > time.Minute {
		t.Errorf("a Secret that is created later is found after %s", after)
	}
	c.expect("", "Ready False TokenNotFound")
	c.token(map[string]string{"other": "t"})
	load()
	c.expect("", "Ready False TokenNotFound")
	if message := conditions.GetMessage(c.obj, "Ready"); !strings.Contains(message, "required field 'token'") {
		t.Errorf("the message is %q", message)
	}
	c.token(map[string]string{"token": "t0"})
	if after := load(); after < 50*time.Minute || after > 70*time.Minute {
		t.Errorf("requeued after %s", after)
	}
	c.expect("t0", "Ready True Succeeded")
	r.fault = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ci", errors.New("no"))
	load()
	c.expect("", "Ready False TokenNotFound")
	r.fault = nil
	load()
	r.fault = errors.New("broken")
	if _, err := c.loads(r); !errors.Is(err, r.fault) {
		t.Errorf("got %v", err)
	}
	c.expect("t0", "Ready False Failed")
	r.fault = nil

	// The API server refuses such a spec, but may have stored one before the rule existed.
	c.obj.Spec.Action = "open"
	c.must(c.Update(t.Context(), c.obj))
	load()
	c.expect("t0", "Ready False InvalidSpec", "Stalled True InvalidSpec")
	const want = "type generic can only close, because the path is its only secret: set action: close"
	if message := conditions.GetMessage(c.obj, "Ready"); !strings.HasPrefix(message, want) {
		t.Errorf("the message is %q", message)
	}
}

func TestReplicasReportTheSame(t *testing.T) {
	c := newCluster(t)
	one, two := c.replica(), c.replica()
	for _, hasToken := range []bool{false, true} {
		if hasToken {
			c.token(map[string]string{"token": "t0"})
		}
		one.conflict = true
		if after, err := c.loads(one); err != nil || after != ownwrites.StaleRetry {
			t.Errorf("after a conflict, with a token %t, it is requeued after %s: %v", hasToken, after, err)
		}
	}
	for _, token := range []string{"t0", "t1"} {
		before := c.obj.DeepCopy()
		c.token(map[string]string{"token": token, "previousToken": "t0"})
		one.written, two.written = 0, 0
		for _, r := range []*replica{one, two, one, two} {
			_, err := c.loads(r)
			c.must(err)
		}
		if c.expect(token, "Ready True Succeeded"); one.written != 1 || two.written > 0 {
			t.Errorf("%s: the replicas write %d and %d times", token, one.written, two.written)
		}
		changed := func(before *v1alpha1.GateReceiver) bool {
			return PathChanged{}.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c.obj})
		}
		if !changed(before) || changed(c.obj) {
			t.Errorf("%s: another replica does not follow", token)
		}
	}
}

func TestDeletedReceiverIsEvicted(t *testing.T) {
	c := newCluster(t)
	r := c.replica()
	table := &evicted{PathTable: r.Table}
	r.Table = table
	c.obj.Finalizers = []string{"example.com/keep"}
	c.must(c.Update(t.Context(), c.obj))
	c.must(c.Delete(t.Context(), c.obj))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.obj)}
	for _, when := range []string{"under deletion", "deleted"} {
		table.names = nil
		if result, err := r.Reconcile(t.Context(), request); err != nil || !result.IsZero() || !slices.Equal(table.names, []string{"ci"}) {
			t.Errorf("%s: got %v, %v, evicted are %q", when, result, err, table.names)
		}
		if err := c.Get(t.Context(), request.NamespacedName, c.obj); err == nil {
			c.obj.Finalizers = nil
			c.must(c.Update(t.Context(), c.obj))
		}
	}
}

// evicted records the names that are evicted from a table.
type evicted struct {
	PathTable[*v1alpha1.GateReceiver]
	names []string
}

// Forget implements PathTable.
func (e *evicted) Forget(key client.ObjectKey) { e.names = append(e.names, key.Name) }
