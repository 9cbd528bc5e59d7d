package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// faults are errors that a client returns for Gates and Secrets. Without an error, it returns the response of the API server.
type faults struct {
	get, patch, patched, secret func(call int64) error
	gets, patches, secrets      atomic.Int64
}

func call(f func(int64) error, n *atomic.Int64) error {
	if i := n.Add(1); f != nil {
		return f(i)
	}
	return nil
}

func (f *faults) client() client.Client {
	return interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			fault := error(nil)
			switch obj.(type) {
			case *v1alpha1.Gate:
				fault = call(f.get, &f.gets)
			case *corev1.Secret:
				fault = call(f.secret, &f.secrets)
			}
			if fault != nil {
				return fault
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := call(f.patch, &f.patches); err != nil {
				return err
			}
			if err := c.Patch(ctx, obj, patch, opts...); err != nil || f.patched == nil {
				return err
			}
			return f.patched(f.patches.Load())
		},
	})
}

var gates = schema.GroupResource{Group: "gating.toolkit.fluxcd.io", Resource: "gates"}

// once returns a fault of the first calls only.
func once(err error) func(int64) error {
	return func(n int64) error {
		if n <= 2 {
			return err
		}
		return nil
	}
}

func always(err error) func(int64) error { return func(int64) error { return err } }

func TestAPIServerErrorIsRetriedOrReported(t *testing.T) {
	timeout := apierrors.NewServerTimeout(gates, "patch", 1)
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	busy := apierrors.NewTooManyRequests("busy", 1)
	broken := apierrors.NewInternalError(errors.New("etcd"))
	conflict := apierrors.NewConflict(gates, "production", errors.New("changed"))
	forbidden := apierrors.NewForbidden(gates, "production", errors.New("no"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Gate"}, "production", nil)
	for name, tc := range map[string]struct {
		faults *faults
		want   int
	}{
		"a read that times out":                         {&faults{get: once(timeout)}, 200},
		"a read without a connection":                   {&faults{get: once(refused)}, 200},
		"a write that times out":                        {&faults{patch: once(timeout)}, 200},
		"a write without a connection":                  {&faults{patch: once(refused)}, 200},
		"a write that exceeds the rate limit":           {&faults{patch: once(busy)}, 200},
		"a write that fails":                            {&faults{patch: once(broken)}, 200},
		"a storm of conflicts":                          {&faults{patch: func(n int64) error { return map[bool]error{true: conflict}[n < 100] }}, 200},
		"a Secret that cannot be read":                  {&faults{secret: func(n int64) error { return map[bool]error{true: refused}[n == 2 || n == 3] }}, 200},
		"a write that is forbidden":                     {&faults{patch: always(forbidden)}, 500},
		"a read that is forbidden":                      {&faults{get: always(forbidden)}, 500},
		"a write that is invalid":                       {&faults{patch: always(invalid)}, 500},
		"a write whose response is lost":                {&faults{patched: once(refused)}, 200},
		"a write with a response of 500 that succeeded": {&faults{patched: once(broken)}, 200},
	} {
		for _, kind := range []string{v1alpha1.GenericReceiver, v1alpha1.GenericHMACReceiver} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				f := &faults{get: tc.faults.get, patch: tc.faults.patch, patched: tc.faults.patched, secret: tc.faults.secret}
				w := newWorld(t, f.client())
				w.ClosedGate("production")
				path := w.receiver("ci", kind)
				got := w.post(path, "{}", "X-Signature", sign("{}"), "X-Delivery-Id", "1")
				action := actionOf(kind)
				at, _, _ := w.request("production", action)
				// The error of the API server is only logged.
				body := map[int]string{200: string(action) + " requested\n", 500: "some gates could not be updated, see the log of the controller\n"}[tc.want]
				if got.code != tc.want || got.body != body || (at != "") != (tc.want == 200) {
					t.Errorf("got %+v, want %d %q, requested at %q", got, tc.want, body, at)
				}
				if tc.want == 500 && !strings.Contains(w.log.String(), "Webhook refused") {
					t.Errorf("logged:\n%s", w.log)
				}
				if want := w.clock.Now().UTC().Format(time.RFC3339); at != "" && at != want {
					t.Errorf("requested at %s, want %s: it was written twice", at, want)
				}
			})
		}
	}
}

// Each request is retried until the sender would time out.
func TestUnavailableAPIServerIsNoSuccess(t *testing.T) {
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for name, f := range map[string]*faults{
		"no read": {get: always(refused)}, "no write": {patch: always(refused)}, "no Secret": {secret: func(n int64) error {
			return map[bool]error{true: refused}[n > 1]
		}},
		"permanent conflicts": {patch: always(apierrors.NewConflict(gates, "production", errors.New("changed")))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, f.client())
			w.ClosedGate("production")
			path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
			start := time.Now()
			got := w.post(path, "{}", "X-Signature", sign("{}"), "X-Delivery-Id", "1")
			body := map[bool]string{true: "try again\n", false: "some gates could not be updated, try again\n"}[name == "no Secret"]
			if got.code != http.StatusServiceUnavailable || got.body != body || got.header.Get("Retry-After") == "" || time.Since(start) > 10*time.Second {
				t.Errorf("got %+v after %s", got, time.Since(start))
			}
			w.expectNoRequest()
			healthy := w.replica(cluster.Client)
			healthy.load("ci")
			if got := healthy.signed(path, "{}", "1"); got != http.StatusOK {
				t.Errorf("the next try: %d", got)
			}
		})
	}
}

func TestDisconnectedSenderIsNoSuccess(t *testing.T) {
	received := make(chan struct{}, 1000)
	f := &faults{get: func(int64) error { received <- struct{}{}; return syscall.ECONNREFUSED }}
	w := newWorld(t, f.client())
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-received; cancel() }()
	if response, err := http.DefaultClient.Do(req); err == nil {
		_ = response.Body.Close()
		t.Fatalf("got %d", response.StatusCode)
	}
	if err := harness.Eventually(t.Context(), 5*time.Second, "the request is canceled", func() error {
		if !strings.Contains(w.log.String(), `"code":503`) {
			return errors.New(w.log.String())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	w.expectNoRequest()
}

func TestGateUnderDeletionIsSkipped(t *testing.T) {
	w := newWorld(t, cluster.Client)
	obj := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Finalizers: []string{"example.com/kept"}}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	w.Create(obj)
	w.Must(w.Client.Delete(t.Context(), obj))
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	if got := w.post(path, "{}"); got.code != http.StatusInternalServerError || !strings.Contains(got.body, "is being deleted") {
		t.Errorf("got %+v", got)
	}
	w.expectNoRequest()
	w.Edit(obj, func() { obj.Finalizers = nil })
}

func TestDeletedReceiverAcceptsNothing(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	w.table.Forget(client.ObjectKey{Namespace: w.Namespace, Name: "smoke"})
	if got := w.post(path, "{}"); got.code != http.StatusNotFound {
		t.Errorf("got %+v", got)
	}
	w.expectNoRequest()
}

// A person has planned an open request that is not handled yet. It must not be lost.
func TestWebhookDoesNotOverwriteUnhandledRequest(t *testing.T) {
	w := newWorld(t, cluster.Client)
	obj := w.ClosedGate("production")
	planned := w.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.Edit(obj, func() { obj.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: planned} })
	path := w.receiver("smoke", v1alpha1.GenericHMACReceiver)
	replies := make(chan reply, 1)
	go func() { replies <- w.post(path, "{}", "X-Signature", sign("{}")) }()
	seen := false
	for {
		select {
		case got := <-replies:
			if got.code != http.StatusOK || !seen {
				t.Errorf("got %+v, handled by the controller: %t", got, seen)
			}
			return
		case <-time.After(500 * time.Millisecond):
			if at, _, _ := w.request("production", v1alpha1.RequestOpen); at != planned {
				continue // the response is delayed
			}
			obj := w.ReadGate("production")
			obj.Status.Memory.HandledRequests = []v1alpha1.HandledRequest{{Action: v1alpha1.RequestOpen, LastHandled: planned}}
			w.Must(w.Client.Status().Update(t.Context(), obj))
			seen = true
		}
	}
}

func TestRateIsPerReceiver(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	none := func(s *v1alpha1.GateReceiverSpec) { s.Filter = "false" }
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver, none)
	other := w.receiver("other", v1alpha1.GenericHMACReceiver, none)
	for range 250 {
		if got := w.post(path, "{}", "X-Signature", "sha256=00"); got.code != http.StatusNotFound {
			t.Fatalf("a client without the proof gets %+v", got)
		}
	}
	for i := range 200 {
		if got := w.signed(path, "{}", ""); got != http.StatusOK {
			t.Fatalf("request %d: %d", i, got)
		}
	}
	if got := w.post(path, "{}", "X-Signature", sign("{}")); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %+v", got)
	}
	if got := w.post(path, "{}", "X-Signature", "sha256=00"); got.code != http.StatusNotFound {
		t.Errorf("a client without the proof gets %+v", got)
	}
	if got := w.signed(other, "{}", ""); got != http.StatusOK {
		t.Errorf("another receiver: %d", got)
	}
	w.clock.Step(time.Second)
	if got := w.signed(path, "{}", ""); got != http.StatusOK {
		t.Errorf("a second later: %d", got)
	}
}
