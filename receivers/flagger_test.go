package receivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// cached has Gates by their keys in a cache.
type cached map[string]*v1alpha1.Gate

func (c cached) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + name
	}
	found, ok := c[name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gates"}, name)
	}
	*obj.(*v1alpha1.Gate) = *found
	return nil
}

func (cached) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody asks for all Gates")
}

// broken is a cache that cannot be read.
type broken struct{ cached }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("out of order")
}

// openGates returns a cache with open Gates.
func openGates(names ...string) cached {
	c := cached{}
	for _, name := range names {
		g := &v1alpha1.Gate{}
		meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue})
		c[name] = g
	}
	return c
}

// newFlagger returns a Flagger, and its log.
func newFlagger(gates client.Reader) (*Flagger, *bytes.Buffer) {
	log := &bytes.Buffer{}
	logger := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{Verbosity: 9})
	handler := NewHandler(NewTable(nil), nil, clocktesting.NewFakeClock(now), logger, MustMakeMetrics(prometheus.NewRegistry()))
	return &Flagger{Handler: handler, Gates: gates, AllowCrossNamespaceRefs: true}, log
}

func send(handler http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestFlaggerGetsResponsesOfLoadTester(t *testing.T) {
	const podinfo = `{"name":"podinfo","namespace":"test","phase":"Progressing","checksum":"8","metadata":{"some":"message"}}`
	for name, tc := range map[string]struct {
		method, path, body string
		code               int
		text               string
	}{
		"approve":                              {"POST", "/gate/approve", "anything", 200, "OK"},
		"halt":                                 {"POST", "/gate/halt", "anything", 403, "Forbidden"},
		"an open gate":                         {"POST", "/gate/check", podinfo, 200, "Approved"},
		"an unknown gate":                      {"POST", "/gate/check", `{"name":"nobody","namespace":"test"}`, 403, "Forbidden"},
		"a gate of another namespace":          {"POST", "/gate/check", `{"name":"podinfo","namespace":"prod"}`, 403, "Forbidden"},
		"no name":                              {"POST", "/gate/check", `{}`, 403, "Forbidden"},
		"nothing":                              {"POST", "/gate/check", `null`, 403, "Forbidden"},
		"no metadata":                          {"POST", "/gate/check", `{"name":"podinfo","namespace":"test","metadata":null}`, 200, "Approved"},
		"an open gate is not a rollback":       {"POST", "/rollback/check", podinfo, 403, "Forbidden"},
		"an open rollback":                     {"POST", "/rollback/check", `{"name":"web","namespace":"test"}`, 200, "Approved"},
		"an open rollback is not an open gate": {"POST", "/gate/check", `{"name":"web","namespace":"test"}`, 403, "Forbidden"},
		"open":                                 {"POST", "/gate/open", podinfo, 403, flaggerOpens},
		"close without a token":                {"POST", "/gate/close", podinfo, 403, "Forbidden"},
		"start of a rollback":                  {"POST", "/rollback/open", podinfo, 403, flaggerOpens},
		"end of a rollback without a token":    {"POST", "/rollback/close", podinfo, 403, "Forbidden"},
		"an empty body":                        {"POST", "/gate/check", ``, 400, ""},
		"half a body":                          {"POST", "/gate/check", `{"name":"podinfo"`, 400, ""},
		"two bodies":                           {"POST", "/gate/check", podinfo + podinfo, 400, ""},
		"a list":                               {"POST", "/rollback/check", `[]`, 400, ""},
		"a name that is a number":              {"POST", "/gate/check", `{"name":1,"namespace":"test"}`, 400, ""},
		"a namespace that is a list":           {"POST", "/gate/open", `{"name":"podinfo","namespace":["test"]}`, 400, ""},
		"metadata that is a text":              {"POST", "/gate/check", `{"name":"podinfo","namespace":"test","metadata":"gate"}`, 400, ""},
		"metadata with a number":               {"POST", "/gate/close", `{"name":"podinfo","namespace":"test","metadata":{"gate":1}}`, 400, ""},
		"another method":                       {"GET", "/gate/approve", "", 405, ""},
		"another method for a check":           {"PUT", "/rollback/check", podinfo, 405, ""},
		"a load test":                          {"POST", "/", podinfo, 404, ""},
		"another path":                         {"POST", "/gate/check/", podinfo, 404, ""},
		"a body that is too large":             {"POST", "/gate/check", strings.Repeat(" ", maxBodyBytes) + podinfo, 413, ""},
	} {
		f, _ := newFlagger(openGates("test/podinfo", "test/rollback.web"))
		if got := send(f, tc.method, tc.path, tc.body); got.Code != tc.code || got.Body.String() != tc.text {
			t.Errorf("%s: %d %q, want %d %q", name, got.Code, got.Body, tc.code, tc.text)
		}
	}
}

func TestCanaryMayNameGate(t *testing.T) {
	gates := openGates("test/release", "ops/release", "test/rollback.release", "ops/rollback.release", "test/approved")
	for _, tc := range []struct {
		path, namespace, gate string
		code, codeWithin      int
	}{
		{"/gate/check", "test", "release", 200, 200},
		{"/gate/check", "test", "test/release", 200, 200},
		{"/gate/check", "test", "ops/release", 200, 403},
		{"/gate/check", "", "ops/release", 200, 403},
		{"/gate/check", "test", "prod/release", 403, 403},
		{"/gate/check", "test", "other", 403, 403},
		{"/gate/check", "prod", "release", 403, 403},
		{"/rollback/check", "test", "release", 200, 200},
		{"/rollback/check", "test", "ops/release", 200, 403},
		{"/gate/check", "test", "approved", 200, 200},
		{"/rollback/check", "test", "approved", 403, 403},
		// A cache could take these names for a Gate in another namespace.
		{"/gate/check", "", "release", 403, 403},
		{"/gate/check", "", "/ops/release", 403, 403},
		{"/gate/check", "test", "/ops/release", 403, 403},
		{"/gate/check", "test", "ops/release/", 403, 403},
		{"/gate/check", "test", "test/../ops/release", 403, 403},
		{"/gate/check", "test", " ", 403, 403},
		{"/gate/check", "test", "Release", 403, 403},
	} {
		body := `{"name":"podinfo","namespace":"` + tc.namespace + `","metadata":{"gate":"` + tc.gate + `"}}`
		f, _ := newFlagger(gates)
		if got := send(f, "POST", tc.path, body); got.Code != tc.code {
			t.Errorf("%+v: %d", tc, got.Code)
		}
		f.AllowCrossNamespaceRefs = false
		if got := send(f, "POST", tc.path, body); got.Code != tc.codeWithin {
			t.Errorf("%+v: %d with --no-cross-namespace-refs", tc, got.Code)
		}
	}
	f, _ := newFlagger(gates)
	if got := send(f, "POST", "/gate/check", `{"name":"ops/release"}`); got.Code != 403 {
		t.Errorf("a name with a namespace in it: %d", got.Code)
	}
}

func TestUnknownGateIsClosedForFlaggerAndRollsNothingBack(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Gate){
		"never reconciled":  func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} },
		"behind its spec":   func(g *v1alpha1.Gate) { g.Generation++ },
		"suspended":         func(g *v1alpha1.Gate) { g.Spec.Suspend = true },
		"with an error":     func(g *v1alpha1.Gate) { g.Status.Conditions[0].Reason = v1alpha1.InvalidSpecReason },
		"being deleted":     func(g *v1alpha1.Gate) { g.DeletionTimestamp = &metav1.Time{Time: now} },
		"asked to close":    func(g *v1alpha1.Gate) { g.Annotations = map[string]string{v1alpha1.CloseRequestedAtAnnotation: "now"} },
		"due to close":      func(g *v1alpha1.Gate) { g.Status.NextTransition = closing(now) },
		"late with closing": func(g *v1alpha1.Gate) { g.Status.NextTransition = closing(now.Add(-time.Minute)) },
	} {
		gates := openGates("test/podinfo", "test/rollback.podinfo")
		f, _ := newFlagger(gates)
		for _, path := range []string{"/gate/check", "/rollback/check"} {
			if got := send(f, "POST", path, `{"name":"podinfo","namespace":"test"}`); got.Code != 200 {
				t.Fatalf("%s: %d", path, got.Code)
			}
		}
		change(gates["test/podinfo"])
		change(gates["test/rollback.podinfo"])
		for _, path := range []string{"/gate/check", "/rollback/check"} {
			if got := send(f, "POST", path, `{"name":"podinfo","namespace":"test"}`); got.Code != 403 {
				t.Errorf("%s, %s: %d", name, path, got.Code)
			}
		}
	}
	f, log := newFlagger(broken{})
	if got := send(f, "POST", "/gate/check", `{"name":"podinfo","namespace":"test"}`); got.Code != 403 || !strings.Contains(log.String(), "out of order") {
		t.Errorf("a cache that cannot be read: %d, %s", got.Code, log)
	}
}

func closing(at time.Time) *v1alpha1.Transition {
	return &v1alpha1.Transition{At: metav1.NewTime(at), State: v1alpha1.StateClosed}
}

func TestReceiversWithTokenForGate(t *testing.T) {
	table := NewTable(nil)
	for name, e := range map[string]*entry{
		"one":         {spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericReceiver}, credentials: endpoint.Credentials{Tokens: []string{"new", "old"}}},
		"two":         {spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericReceiver}, credentials: endpoint.Credentials{Tokens: []string{"new"}}},
		"tokenless":   {spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericReceiver}, credentials: endpoint.Credentials{Tokens: []string{""}}},
		"of a forge":  {spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GitLabReceiver}, credentials: endpoint.Credentials{Tokens: []string{"new"}}},
		"with issuer": {spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericOIDCReceiver}},
	} {
		e.key = types.NamespacedName{Namespace: "test", Name: name}
		e.spec.GateRefs = []v1alpha1.GateReference{{Name: "other"}, {Name: "podinfo"}}
		table.Put(e.key, e, false)
	}
	for _, tc := range []struct{ token, gate, want string }{
		{"new", "test/podinfo", "one two"},
		{"old", "test/podinfo", "one"},
		{"", "test/podinfo", ""},
		{"neu", "test/podinfo", ""},
		{"new", "test/production", ""},
		{"new", "prod/podinfo", ""},
	} {
		namespace, name, _ := strings.Cut(tc.gate, "/")
		found, certain := table.bearersFor(tc.token, types.NamespacedName{Namespace: namespace, Name: name})
		var names []string
		for _, e := range found {
			names = append(names, e.key.Name)
		}
		if got := strings.Join(names, " "); got != tc.want || !certain {
			t.Errorf("%+v: %q, certain: %t", tc, got, certain)
		}
	}
	table.Put(types.NamespacedName{Name: "unread"}, nil, true)
	if _, certain := table.bearersFor("neu", types.NamespacedName{}); certain {
		t.Error("nobody knows the token of a receiver")
	}
}

func TestTokenIsRemovedWithItsReceiver(t *testing.T) {
	table, s := newTable(map[string]map[string]string{"apps/one": {"token": "new", "previousToken": "old"}, "apps/two": {"token": "new"}})
	one, two := receiverOf("one", "apps"), receiverOf("two", "apps")
	names := func(token string) string {
		found, _ := table.bearersFor(token, types.NamespacedName{Namespace: "apps", Name: "a"})
		var names []string
		for _, e := range found {
			names = append(names, e.key.Name)
		}
		return strings.Join(names, " ")
	}
	want := func(what, old, current string) {
		t.Helper()
		if names("old") != old || names("new") != current {
			t.Errorf("%s: the old one is of %q, the new one of %q", what, names("old"), names("new"))
		}
	}
	load := func(obj *v1alpha1.GateReceiver) {
		t.Helper()
		if _, err := table.Load(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	load(one)
	load(two)
	load(one)
	want("at first", "one", "one two")
	s.set("apps/one", map[string]string{"token": "new"})
	load(one)
	want("it is taken out", "", "one two")
	load(receiverOf("one", "apps", func(s *v1alpha1.GateReceiverSpec) { s.Type = v1alpha1.GitLabReceiver }))
	want("of another type", "", "two")
	table.Forget(client.ObjectKeyFromObject(two))
	want("gone", "", "")
	table.Forget(client.ObjectKeyFromObject(one))
	if table.Len() > 0 {
		t.Error("something is left of them")
	}
}

// If each receiver needed a hash, an unverified sender could keep the controller busy.
func TestTokenCostIsIndependentOfReceivers(t *testing.T) {
	withReceivers := func(n int) *Table {
		table := NewTable(nil)
		for i := range n {
			e := &entry{spec: &v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericReceiver, GateRefs: []v1alpha1.GateReference{{Name: "a"}}}}
			e.key, e.credentials.Tokens = types.NamespacedName{Namespace: "apps", Name: fmt.Sprint(i)}, []string{fmt.Sprint("token-", i)}
			table.Put(e.key, e, false)
		}
		return table
	}
	fastest := func(table *Table) time.Duration {
		best := time.Hour
		for range 50 {
			began := time.Now()
			for range 20 {
				if found, _ := table.bearersFor("wrong", types.NamespacedName{Namespace: "apps", Name: "a"}); len(found) > 0 {
					t.Fatal("a wrong token is somebody's")
				}
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	few, many := fastest(withReceivers(1)), fastest(withReceivers(5000))
	if many > 50*few {
		t.Errorf("%s with one receiver, %s with 5000", few, many)
	}
}

func TestPresentedToken(t *testing.T) {
	inBody := map[string]string{"token": "body"}
	for name, tc := range map[string]struct {
		headers  []string
		metadata map[string]string
		want     string
	}{
		"none":                  {nil, nil, ""},
		"in the header":         {[]string{"Bearer header"}, nil, "header"},
		"in lower case":         {[]string{"bearer header"}, nil, "header"},
		"in the metadata":       {nil, inBody, "body"},
		"in both":               {[]string{"Bearer header"}, inBody, "header"},
		"in two headers":        {[]string{"Bearer one", "Bearer two"}, nil, ""},
		"in another scheme":     {[]string{"Basic header"}, nil, ""},
		"without a scheme":      {[]string{"header"}, nil, ""},
		"as long as a secret":   {nil, map[string]string{"token": strings.Repeat("x", maxTokenBytes)}, strings.Repeat("x", maxTokenBytes)},
		"longer than any token": {nil, map[string]string{"token": strings.Repeat("x", maxTokenBytes+1)}, ""},
	} {
		if got := (&canary{metadata: tc.metadata}).token(http.Header{"Authorization": tc.headers}); got != tc.want {
			t.Errorf("%s: %.20q", name, got)
		}
	}
}

func TestChecksAreLoggedAtDebugLevelWithoutSecrets(t *testing.T) {
	f, log := newFlagger(openGates("test/podinfo"))
	body := `{"name":"podinfo","namespace":"test","metadata":{"token":"s3cr3t"}}`
	for path := range flaggerEndpoints {
		send(f, "POST", path, body, "Authorization", "Bearer s3cr3t-too")
	}
	if got := log.String(); strings.Contains(got, "s3cr3t") || strings.Count(got, `"level"=1 "msg"="Gate checked"`) != 2 || strings.Count(got, "Gate checked") != 2 {
		t.Errorf("logged:\n%s", got)
	}
}
