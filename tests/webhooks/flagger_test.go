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

// newFlaggerWorld starts a server with a cache of its own. The client is what it writes
// with.
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

// ask sends what Flagger sends for a canary.
func (w *flaggerWorld) ask(path, canary string, headers ...string) reply {
	w.Helper()
	return w.post(path, fmt.Sprintf(`{"name":%q,"namespace":%q,"phase":"Progressing","reason":"smoke tests passed"}`, canary, w.Namespace), headers...)
}

// bearing is the header with a token.
func bearing(token string) []string { return []string{"Authorization", "Bearer " + token} }

// opened has a Gate say that it is open, as the controller does, and waits until the
// cache has it.
func (w *flaggerWorld) opened(g *v1alpha1.Gate) {
	w.Helper()
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DefaultReason})
	g.Status.ObservedGeneration = g.Generation
	w.Must(w.Client.Status().Update(w.Context(), g))
	w.Eventually("the check passes", func() error {
		if got := w.ask("/gate/check", g.Name); got.code != http.StatusOK || got.body != "Approved" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// of has a receiver request an action of some Gates.
func of(action v1alpha1.RequestAction, gates ...string) func(*v1alpha1.GateReceiverSpec) {
	return func(s *v1alpha1.GateReceiverSpec) {
		s.Action, s.Gates = action, nil
		for _, name := range gates {
			s.Gates = append(s.Gates, v1alpha1.GateReference{Name: name})
		}
	}
}

func TestOpenAndCloseOfFlaggerAreRequestsOfReceivers(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("rollback.podinfo")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "podinfo"), func(s *v1alpha1.GateReceiverSpec) {
		s.Window = &v1alpha1.Duration{Duration: 10 * time.Minute}
		s.Filter = `!has(req.metadata) || !has(req.metadata.token) && !has(headers.authorization)`
	})
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
	w.receiver("undoer", v1alpha1.GenericReceiver, of("", "rollback.podinfo"), func(s *v1alpha1.GateReceiverSpec) {
		s.ActionExpr = "req.phase == 'Progressing' ? 'open' : 'close'"
	})

	for _, tc := range []struct {
		path, gate, by string
		action         v1alpha1.RequestAction
	}{
		{"/gate/open", "podinfo", "opener", v1alpha1.RequestOpen},
		{"/gate/close", "podinfo", "closer", v1alpha1.RequestClose},
		{"/rollback/open", "rollback.podinfo", "undoer", v1alpha1.RequestOpen},
	} {
		if got := w.ask(tc.path, "podinfo", bearing(token)...); got.code != http.StatusAccepted || got.body != "" {
			t.Errorf("%s: %+v", tc.path, got)
		}
		at, by, reason := w.request(tc.gate, tc.action)
		if !strings.HasPrefix(at, w.clock.Now().UTC().Format("2006-01-02T15:04:05")) || by != "GateReceiver "+w.Namespace+"/"+tc.by || reason != "smoke tests passed" {
			t.Errorf("%s: requested at %q by %q because %q", tc.path, at, by, reason)
		}
	}
	if at, _, _ := w.request("podinfo", v1alpha1.RequestOpen); !strings.HasSuffix(at, "/10m0s") {
		t.Errorf("the window of the receiver is not that of the request: %q", at)
	}
	if at, _, _ := w.request("rollback.podinfo", v1alpha1.RequestClose); at != "" {
		t.Errorf("the rollback is asked to close at %q", at)
	}
	// As Flagger sends a token, which has no way to set a header.
	w.clock.Step(time.Minute)
	body := fmt.Sprintf(`{"name":"canary","namespace":%q,"metadata":{"gate":"podinfo","token":%q,"message":"promoted"}}`, w.Namespace, token)
	if got := w.post("/gate/open", body); got.code != http.StatusAccepted {
		t.Errorf("got %+v", got)
	}
	if at, _, reason := w.request("podinfo", v1alpha1.RequestOpen); !strings.HasPrefix(at, strings.TrimSuffix(w.clock.Now().UTC().Format(time.RFC3339), "Z")) || reason != "promoted" {
		t.Errorf("requested at %q because %q", at, reason)
	}
	eyes := w.ReadGate("podinfo")
	w.Edit(eyes, func() {
		eyes.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
	})
	want := "gate '" + w.Namespace + "/podinfo': the request waits for 1 approval by others: kubectl gate approve gate/podinfo -n " + w.Namespace
	if got := w.post("/gate/open", body); got.code != http.StatusAccepted || got.body != want {
		t.Errorf("with approvals: got %+v, want %q", got, want)
	}
	if strings.Contains(w.log.String(), token) || !strings.Contains(w.log.String(), "Webhook taken") {
		t.Errorf("logged:\n%s", w.log)
	}
}

func TestWhoMayNotOpenIsNotToldWhy(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("production")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "podinfo", "gone"))
	w.receiver("picky", v1alpha1.GenericReceiver, of("close", "podinfo"), func(s *v1alpha1.GateReceiverSpec) { s.Filter = "req.phase == 'Waiting'" })
	w.receiver("forge", v1alpha1.GitLabReceiver, of("open", "production"))
	elsewhere := newFlaggerWorld(t, cluster.Client)
	elsewhere.ClosedGate("podinfo")

	var first reply
	for i, tc := range []struct {
		name, path, body string
		headers          []string
	}{
		{"no token", "/gate/open", `{"name":"podinfo","namespace":"%s"}`, nil},
		{"an empty token", "/gate/open", `{"name":"podinfo","namespace":"%s","metadata":{"token":""}}`, bearing("")},
		{"a wrong token", "/gate/open", `{"name":"podinfo","namespace":"%s"}`, bearing("wrong")},
		{"the token as a password", "/gate/open", `{"name":"podinfo","namespace":"%s"}`, []string{"Authorization", "Basic " + token}},
		{"a receiver without this gate", "/gate/open", `{"name":"web","namespace":"%s"}`, bearing(token)},
		{"a receiver of another type", "/gate/open", `{"name":"production","namespace":"%s"}`, bearing(token)},
		{"a gate that is not there", "/gate/open", `{"name":"gone","namespace":"%s"}`, bearing(token)},
		{"the rollback of the gate", "/rollback/open", `{"name":"podinfo","namespace":"%s"}`, bearing(token)},
		{"another action, and a filter", "/gate/close", `{"name":"podinfo","namespace":"%s","phase":"Progressing"}`, bearing(token)},
		{"a gate of another namespace", "/gate/open", `{"name":"x","namespace":"%s","metadata":{"gate":"` + elsewhere.Namespace + `/podinfo"}}`, bearing(token)},
		{"no gate at all", "/gate/open", `{"name":"a/b","namespace":"%s"}`, bearing(token)},
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
	for _, name := range []string{"podinfo", "production"} {
		if at, _, _ := w.request(name, v1alpha1.RequestOpen); at != "" {
			t.Errorf("%s is asked to open at %q", name, at)
		}
		if at, _, _ := w.request(name, v1alpha1.RequestClose); at != "" {
			t.Errorf("%s is asked to close at %q", name, at)
		}
	}
	if strings.Contains(w.log.String(), token) {
		t.Errorf("logged:\n%s", w.log)
	}
}

func TestOpenAcrossNamespacesIsForThoseWithATokenThere(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("release")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "release"))
	body := fmt.Sprintf(`{"name":"podinfo","namespace":"test","metadata":{"gate":"%s/release"}}`, w.Namespace)
	w.flagger.AllowCrossNamespaceRefs = false
	if got := w.post("/gate/open", body, bearing(token)...); got.code != http.StatusForbidden {
		t.Errorf("with --no-cross-namespace-refs: %+v", got)
	}
	w.flagger.AllowCrossNamespaceRefs = true
	if got := w.post("/gate/open", body, bearing(token)...); got.code != http.StatusAccepted {
		t.Errorf("got %+v", got)
	}
}

func TestATokenThatWasTakenOutOfItsSecretOpensNothing(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "podinfo"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "opener", Namespace: w.Namespace}}
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
		if got := w.ask("/gate/open", "podinfo", bearing(token)...); got.code != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
}

func TestAReceiverThatTakesNothingOpensNothing(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.ClosedGate("web")
	w.receiver("asleep", v1alpha1.GenericReceiver, of("open", "podinfo"), func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true })
	w.receiver("baffled", v1alpha1.GenericReceiver, of("open", "web"), func(s *v1alpha1.GateReceiverSpec) { s.Filter = "req.nothing.of == 'this kind'" })
	if got := w.ask("/gate/open", "podinfo", bearing(token)...); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("a suspended one: %+v", got)
	}
	if got := w.ask("/gate/open", "web", bearing(token)...); got.code != http.StatusInternalServerError {
		t.Errorf("one whose filter fails: %+v", got)
	}
	// Another one that has the same token and is awake does it.
	w.receiver("awake", v1alpha1.GenericReceiver, of("open", "podinfo"))
	if got := w.ask("/gate/open", "podinfo", bearing(token)...); got.code != http.StatusAccepted {
		t.Errorf("got %+v", got)
	}
	many := 0
	for range 1000 {
		if many = w.ask("/gate/open", "podinfo", bearing(token)...).code; many != http.StatusAccepted {
			break
		}
	}
	if many != http.StatusTooManyRequests {
		t.Errorf("requests without end: %d", many)
	}
}

func TestNothingIsAcceptedForFlaggerWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	away := interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("away")
		},
	})
	w := newFlaggerWorld(t, away)
	w.ClosedGate("podinfo")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "podinfo"))
	got := w.ask("/gate/open", "podinfo", bearing(token)...)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
}

func TestAReceiverOfWhichNothingIsKnownYetHasFlaggerTryAgain(t *testing.T) {
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
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: "opener"}, Spec: v1alpha1.GateReceiverSpec{
		Type: v1alpha1.GenericReceiver, SecretRef: &fluxmeta.LocalObjectReference{Name: "opener"}, Gates: []v1alpha1.GateReference{{Name: "podinfo"}}, Action: "open",
	}}
	w.Create(obj)
	if _, err := w.table.Load(t.Context(), obj); err == nil {
		t.Fatal("its Secret cannot be read")
	}
	for _, canary := range []string{"podinfo", "nobody"} {
		if got := w.ask("/gate/open", canary, bearing(token)...); got.code != http.StatusServiceUnavailable || got.body != "" {
			t.Errorf("%s: %+v", canary, got)
		}
	}
}

// Nobody reconciles the Gates here: each says that it is open until the end.
func TestACloseIsTrueByTheTimeThatItIsAccepted(t *testing.T) {
	w := newFlaggerWorld(t, cluster.Client)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	for from := 0; from < len(names); from += 10 { // a receiver has ten at most
		w.receiver(fmt.Sprintf("closer-%d", from), v1alpha1.GenericReceiver, of("close", names[from:from+10]...))
	}
	for _, name := range names {
		w.opened(w.ClosedGate(name))
		if got := w.ask("/gate/close", name, bearing(token)...); got.code != http.StatusAccepted {
			t.Fatalf("got %+v", got)
		}
		if got := w.ask("/gate/check", name); got.code != http.StatusForbidden {
			t.Fatalf("%s is closed, and a check gets %+v", name, got)
		}
	}
}

// stale has a Gate as it was for a number of reads.
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

func TestACloseIsNotAcceptedWhileTheCacheSaysOpen(t *testing.T) {
	t.Parallel()
	for reads, want := range map[int]int{20: http.StatusAccepted, 1 << 30: http.StatusServiceUnavailable} {
		w := newFlaggerWorld(t, cluster.Client)
		g := w.ClosedGate("podinfo")
		w.opened(g)
		w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
		w.flagger.Gates = &stale{Reader: w.flagger.Gates, reads: reads, was: *g}
		if got := w.ask("/gate/close", "podinfo", bearing(token)...); got.code != want {
			t.Errorf("after %d reads: %+v", reads, got)
		}
		if at, _, _ := w.request("podinfo", v1alpha1.RequestClose); at == "" {
			t.Error("nothing is requested")
		}
	}
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
