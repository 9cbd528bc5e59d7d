package webhooks

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// flaggerWorld is a world whose server is the one for Flagger.
type flaggerWorld struct {
	*world
	flagger *receivers.Flagger
}

// newFlaggerWorld starts a server with a separate cache. It writes with the client c.
func newFlaggerWorld(t *testing.T, c client.Client) *flaggerWorld {
	t.Helper()
	w := &flaggerWorld{world: newWorld(t, c)}
	w.flagger = &receivers.Flagger{
		Handler: receivers.NewHandler(w.table, receivers.NewGates(c), w.clock, w.log.logger(), receivers.MustMakeMetrics(prometheus.NewRegistry())),
		Gates:   startCache(t, w.Namespace), AllowCrossNamespaceRefs: true,
	}
	server := httptest.NewServer(w.flagger)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// startCache starts a cache of the Gates of a namespace.
func startCache(t testing.TB, namespace string) cache.Cache {
	t.Helper()
	scheme, err := harness.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	gates, err := cache.New(cluster.Config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- gates.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if _, err := gates.GetInformer(ctx, &v1alpha1.Gate{}); err != nil {
		t.Fatal(err)
	}
	return gates
}

// send sends a request of Flagger for a canary.
func (w *flaggerWorld) send(path, canary string, headers ...string) reply {
	w.Helper()
	return w.post(path, fmt.Sprintf(`{"name":%q,"namespace":%q,"phase":"Progressing","reason":"smoke tests passed"}`, canary, w.Namespace), headers...)
}

// bearing returns the header with a token.
func bearing(token string) []string { return []string{"Authorization", "Bearer " + token} }

// opened makes a Gate report that it is open, as the controller does, and waits until the cache has that.
func (w *flaggerWorld) opened(g *v1alpha1.Gate) {
	w.Helper()
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DefaultReason})
	g.Status.ObservedGeneration = g.Generation
	w.Must(w.Client.Status().Update(w.Context(), g))
	w.Eventually("the check passes", func() error {
		if got := w.send("/gate/check", g.Name); got.code != http.StatusOK || got.body != "Approved" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// of makes a receiver request an action of some Gates.
func of(action v1alpha1.RequestAction, gates ...string) func(*v1alpha1.GateReceiverSpec) {
	return func(s *v1alpha1.GateReceiverSpec) {
		s.Action, s.GateRefs = action, nil
		for _, name := range gates {
			s.GateRefs = append(s.GateRefs, v1alpha1.GateReference{Name: name})
		}
	}
}

func TestFlaggerCloseIsReceiverRequest(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("rollback.podinfo")
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"), func(s *v1alpha1.GateReceiverSpec) {
		s.Window = &v1alpha1.Duration{Duration: 10 * time.Minute}
		s.Filter = `!has(req.metadata) || !has(req.metadata.token) && !has(headers.authorization)`
	})
	w.receiver("ender", v1alpha1.GenericReceiver, of("close", "rollback.podinfo"), func(s *v1alpha1.GateReceiverSpec) {
		s.Filter = "req.phase == 'Progressing'"
	})

	for _, tc := range []struct{ path, gate, by string }{
		{"/gate/close", "podinfo", "closer"},
		{"/rollback/close", "rollback.podinfo", "ender"},
	} {
		if got := w.send(tc.path, "podinfo", bearing(token)...); got.code != http.StatusAccepted || got.body != "" {
			t.Errorf("%s: %+v", tc.path, got)
		}
		at, by, reason := w.request(tc.gate, v1alpha1.RequestClose)
		if !strings.HasPrefix(at, w.clock.Now().UTC().Format("2006-01-02T15:04:05")) || by != "GateReceiver "+w.Namespace+"/"+tc.by || reason != "smoke tests passed" {
			t.Errorf("%s: requested at %q by %q because %q", tc.path, at, by, reason)
		}
	}
	if at, _, _ := w.request("podinfo", v1alpha1.RequestClose); !strings.HasSuffix(at, "/10m0s") {
		t.Errorf("the window of the receiver is not that of the request: %q", at)
	}
	// Flagger sends the token in the metadata, because it cannot set a header. A close needs no approval.
	w.clock.Step(time.Minute)
	eyes := w.ReadGate("podinfo")
	w.Edit(eyes, func() {
		eyes.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
	})
	body := fmt.Sprintf(`{"name":"canary","namespace":%q,"metadata":{"gate":"podinfo","token":%q,"message":"halted"}}`, w.Namespace, token)
	if got := w.post("/gate/close", body); got.code != http.StatusAccepted || got.body != "" {
		t.Errorf("got %+v", got)
	}
	if at, _, reason := w.request("podinfo", v1alpha1.RequestClose); !strings.HasPrefix(at, strings.TrimSuffix(w.clock.Now().UTC().Format(time.RFC3339), "Z")) || reason != "halted" {
		t.Errorf("requested at %q because %q", at, reason)
	}
	if strings.Contains(w.log.String(), token) || !strings.Contains(w.log.String(), "Webhook accepted") {
		t.Errorf("logged:\n%s", w.log)
	}
}

// Flagger cannot sign, so even with the token of a receiver that opens, it cannot open a Gate.
func TestFlaggerOpensNoGate(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("rollback.podinfo")
	for kind := range types {
		w.receiver(kind, kind, of("open", "podinfo", "rollback.podinfo"))
	}
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo", "rollback.podinfo"))
	const want = "Forbidden: open the gate with kubectl gate open, or with a GateReceiver whose type verifies its sender, such as generic-hmac"
	for _, path := range []string{"/gate/open", "/rollback/open"} {
		body := fmt.Sprintf(`{"name":"podinfo","namespace":%q,"metadata":{"token":%q}}`, w.Namespace, token)
		signed := append(bearing(token), "X-Signature", sign(body), "X-Gitlab-Token", token)
		for name, headers := range map[string][]string{"a bearer token": bearing(token), "a token in the metadata": nil, "all proofs": signed} {
			if got := w.post(path, body, headers...); got.code != http.StatusForbidden || got.body != want {
				t.Errorf("%s with %s: %+v", path, name, got)
			}
		}
	}
	for _, name := range []string{"podinfo", "rollback.podinfo"} {
		for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
			if at, _, _ := w.request(name, action); at != "" {
				t.Errorf("%s of %s is requested at %q", action, name, at)
			}
		}
	}
	if strings.Contains(w.log.String(), token) || strings.Count(w.log.String(), "Webhook refused") != 6 {
		t.Errorf("logged:\n%s", w.log)
	}
}

func TestUnauthorizedCloseGetsNoDetails(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	for _, name := range []string{"podinfo", "release", "production"} {
		w.ClosedGate(name)
	}
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo", "gone"))
	w.receiver("picky", v1alpha1.GenericReceiver, of("close", "release"), func(s *v1alpha1.GateReceiverSpec) { s.Filter = "req.phase == 'Waiting'" })
	w.receiver("forge", v1alpha1.GitLabReceiver, of("close", "production"))
	elsewhere := newFlaggerWorld(t, cluster.Client)
	elsewhere.ClosedGate("podinfo")

	var first reply
	for i, tc := range []struct {
		name, path, body string
		headers          []string
	}{
		{"no token", "/gate/close", `{"name":"podinfo","namespace":"%s"}`, nil},
		{"an empty token", "/gate/close", `{"name":"podinfo","namespace":"%s","metadata":{"token":""}}`, bearing("")},
		{"a wrong token", "/gate/close", `{"name":"podinfo","namespace":"%s"}`, bearing("wrong")},
		{"the token as a password", "/gate/close", `{"name":"podinfo","namespace":"%s"}`, []string{"Authorization", "Basic " + token}},
		{"a receiver without this gate", "/gate/close", `{"name":"web","namespace":"%s"}`, bearing(token)},
		{"a receiver of another type", "/gate/close", `{"name":"production","namespace":"%s"}`, bearing(token)},
		{"a gate that does not exist", "/gate/close", `{"name":"gone","namespace":"%s"}`, bearing(token)},
		{"the rollback of the gate", "/rollback/close", `{"name":"podinfo","namespace":"%s"}`, bearing(token)},
		{"a filter", "/gate/close", `{"name":"release","namespace":"%s","phase":"Progressing"}`, bearing(token)},
		{"a gate of another namespace", "/gate/close", `{"name":"x","namespace":"%s","metadata":{"gate":"` + elsewhere.Namespace + `/podinfo"}}`, bearing(token)},
		{"no gate at all", "/gate/close", `{"name":"a/b","namespace":"%s"}`, bearing(token)},
	} {
		got := w.post(tc.path, fmt.Sprintf(tc.body, w.Namespace), tc.headers...)
		got.header.Del("Date")
		if i == 0 {
			first = got
		}
		if got.code != http.StatusForbidden || got.body != "Forbidden" || fmt.Sprint(got) != fmt.Sprint(first) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	for _, name := range []string{"podinfo", "release", "production"} {
		if at, _, _ := w.request(name, v1alpha1.RequestClose); at != "" {
			t.Errorf("%s has a close request at %q", name, at)
		}
	}
	if strings.Contains(w.log.String(), token) {
		t.Errorf("logged:\n%s", w.log)
	}
}

func TestCloseAcrossNamespacesNeedsToken(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("release")
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "release"))
	body := fmt.Sprintf(`{"name":"podinfo","namespace":"test","metadata":{"gate":"%s/release"}}`, w.Namespace)
	w.flagger.AllowCrossNamespaceRefs = false
	if got := w.post("/gate/close", body, bearing(token)...); got.code != http.StatusForbidden {
		t.Errorf("with --no-cross-namespace-refs: %+v", got)
	}
	w.flagger.AllowCrossNamespaceRefs = true
	if got := w.post("/gate/close", body, bearing(token)...); got.code != http.StatusAccepted {
		t.Errorf("got %+v", got)
	}
}

func TestRemovedTokenClosesNothing(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "closer", Namespace: w.Namespace}}
	for data, want := range map[string]int{
		`{"token":"bmV3","previousToken":"b3RoZXI="}`:                     http.StatusForbidden,
		`{"token":"bmV3","previousToken":"` + base64Of(token) + `"}`:      http.StatusAccepted,
		`{"token":"` + base64Of(token) + `","previousToken":"b3RoZXI="}`:  http.StatusAccepted,
		`{"token":"` + base64Of(token+"x") + `","previousToken":"bmV3"}`:  http.StatusForbidden,
		`{"token":null,"previousToken":"` + base64Of(token) + `"}`:        http.StatusForbidden,
		`{"token":"` + base64Of("x"+token) + `","previousToken":"bmV3"}`:  http.StatusForbidden,
		`{"token":"` + base64Of(token+"\n") + `","previousToken":"bmV3"}`: http.StatusAccepted,
	} {
		w.Must(w.Merge(secret, `{"data":%s}`, data))
		if got := w.send("/gate/close", "podinfo", bearing(token)...); got.code != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
}

func TestUnreadyReceiverClosesNothing(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("web")
	w.receiver("asleep", v1alpha1.GenericReceiver, of("close", "podinfo"), func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true })
	w.receiver("baffled", v1alpha1.GenericReceiver, of("close", "web"), func(s *v1alpha1.GateReceiverSpec) { s.Filter = "req.nothing.of == 'this kind'" })
	if got := w.send("/gate/close", "podinfo", bearing(token)...); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("a suspended receiver: %+v", got)
	}
	if got := w.send("/gate/close", "web", bearing(token)...); got.code != http.StatusInternalServerError {
		t.Errorf("a receiver whose filter fails: %+v", got)
	}
	// Another receiver with the same token is not suspended and accepts the request.
	w.receiver("awake", v1alpha1.GenericReceiver, of("close", "podinfo"))
	if got := w.send("/gate/close", "podinfo", bearing(token)...); got.code != http.StatusAccepted {
		t.Errorf("got %+v", got)
	}
	many := 0
	for range 1000 {
		if many = w.send("/gate/close", "podinfo", bearing(token)...).code; many != http.StatusAccepted {
			break
		}
	}
	if many != http.StatusTooManyRequests {
		t.Errorf("too many requests: %d", many)
	}
}

func TestFlaggerRequestsAreRefusedWithoutAPIServer(t *testing.T) {
	t.Parallel()
	away := interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("away")
		},
	})
	w := newFlaggerWorld(t, away)
	w.ClosedGate("podinfo")
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
	got := w.send("/gate/close", "podinfo", bearing(token)...)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
}

func TestFlaggerRetriesUntilReceiverIsKnown(t *testing.T) {
	unread := interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				return errors.New("away")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w := newFlaggerWorld(t, unread)
	w.ClosedGate("podinfo")
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: "closer"}, Spec: v1alpha1.GateReceiverSpec{
		Type: v1alpha1.GenericReceiver, SecretRef: &fluxmeta.LocalObjectReference{Name: "closer"}, GateRefs: []v1alpha1.GateReference{{Name: "podinfo"}}, Action: "close",
	}}
	w.Create(obj)
	if _, err := w.table.Load(t.Context(), obj); err == nil {
		t.Fatal("the Secret cannot be read")
	}
	for _, canary := range []string{"podinfo", "nobody"} {
		if got := w.send("/gate/close", canary, bearing(token)...); got.code != http.StatusServiceUnavailable || got.body != "" {
			t.Errorf("%s: %+v", canary, got)
		}
	}
}

// No controller reconciles the Gates in this test: each reports until the end that it is open.
func TestAcceptedCloseIsEffective(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	for from := 0; from < len(names); from += 10 { // a receiver has at most ten
		w.receiver(fmt.Sprintf("closer-%d", from), v1alpha1.GenericReceiver, of("close", names[from:from+10]...))
	}
	for _, name := range names {
		w.opened(w.ClosedGate(name))
		if got := w.send("/gate/close", name, bearing(token)...); got.code != http.StatusAccepted {
			t.Fatalf("got %+v", got)
		}
		if got := w.send("/gate/check", name); got.code != http.StatusForbidden {
			t.Fatalf("%s is closed, but a check gets %+v", name, got)
		}
	}
}

// stale returns an outdated version of a Gate for a number of reads.
type stale struct {
	client.Reader
	reads int
	was   v1alpha1.Gate
}

func (s *stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if s.reads--; s.reads >= 0 {
		s.was.DeepCopyInto(obj.(*v1alpha1.Gate))
		return nil
	}
	return s.Reader.Get(ctx, key, obj, opts...)
}

func TestCloseIsNotAcceptedWhileCacheIsStale(t *testing.T) {
	t.Parallel()
	for reads, want := range map[int]int{20: http.StatusAccepted, 1 << 30: http.StatusServiceUnavailable} {
		w := newFlaggerWorld(t, cluster.Client)
		g := w.ClosedGate("podinfo")
		w.opened(g)
		w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
		w.flagger.Gates = &stale{Reader: w.flagger.Gates, reads: reads, was: *g}
		if got := w.send("/gate/close", "podinfo", bearing(token)...); got.code != want {
			t.Errorf("after %d reads: %+v", reads, got)
		}
		if at, _, _ := w.request("podinfo", v1alpha1.RequestClose); at == "" {
			t.Error("there is no request")
		}
	}
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
