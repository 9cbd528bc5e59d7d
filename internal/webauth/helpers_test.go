package webauth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// testNow is a Tuesday morning.
var testNow = time.Date(2026, 11, 24, 9, 30, 0, 0, time.UTC)

// apiServer authenticates and authorizes users.
type apiServer struct {
	mu sync.Mutex
	// people has the users by token. allowed has the permissions of each user, as verb, resource, namespace and name, with * for any.
	people  map[string]string
	allowed map[string][]string
	// err is the error of all reviews. If hangs is true, it does not respond to reviews.
	err   error
	hangs bool
	// asked counts reviews, and other counts other created objects.
	asked map[string]int
	other int
}

func (s *apiServer) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	switch review := obj.(type) {
	case *authenticationv1.TokenReview:
		s.asked["token"]++
		name, known := s.people[review.Spec.Token]
		review.Status.Authenticated, review.Status.User = known, authenticationv1.UserInfo{Username: name, Groups: []string{"system:authenticated"}}
		if name == "cy" { // a service account, whose tokens have IDs
			review.Status.User.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {review.Spec.Token}}
		}
		if !known {
			review.Status.Error = "invalid bearer token"
		}
	case *authorizationv1.SubjectAccessReview:
		s.asked["access"]++
		a := review.Spec.ResourceAttributes
		for _, rule := range s.allowed[review.Spec.User] {
			if matches(rule, a.Verb, a.Resource, a.Namespace, a.Name) {
				review.Status.Allowed = true
			}
		}
	default:
		s.other++
	}
	return s.err
}

// matches returns whether a rule permits a request. A rule for one namespace does not permit requests for all namespaces.
func matches(rule string, asked ...string) bool {
	for i, want := range strings.Split(rule, " ") {
		if want != "*" && want != asked[i] {
			return false
		}
	}
	return true
}

func (s *apiServer) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *apiServer) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[kind]
}

// objects is a cache with the objects of a cluster.
type objects struct {
	client.Client
	*informertest.FakeInformers
}

// Get implements cache.Cache.
func (o *objects) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return o.Client.Get(ctx, key, obj, opts...)
}

// List implements cache.Cache.
func (o *objects) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return o.Client.List(ctx, list, opts...)
}

// configMaps has the ConfigMaps that watches return.
type configMaps struct {
	mu     sync.Mutex
	found  map[types.NamespacedName]*corev1.ConfigMap
	failed error
	open   int
	// changed has the functions to call after a change.
	changed []func()
}

type configMapWatch struct {
	*configMaps
	key types.NamespacedName
}

func (c *configMaps) watch(key types.NamespacedName, changed func()) ConfigMapWatch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.changed = append(c.changed, changed)
	return &configMapWatch{c, key}
}

func (c *configMapWatch) Latest() (*corev1.ConfigMap, bool) { return c.found[c.key], true }
func (c *configMapWatch) Failed() error                     { return c.failed }
func (c *configMapWatch) Stop()                             { c.open-- }

// pages are the pages of a replica.
type pages struct {
	*testing.T
	http.Handler
	viewers    *Viewers
	server     *apiServer
	objects    *objects
	configMaps *configMaps
	clock      *clocktesting.FakePassiveClock
	registry   *prometheus.Registry
	logged     *strings.Builder
}

// newPages returns the pages for some objects. Ada may see all objects, Ben the Gates and their targets in shop, and Cy none.
func newPages(t *testing.T, change func(*Options), all ...client.Object) *pages {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "kustomize.toolkit.fluxcd.io", Version: "v1"}, {Group: "source.toolkit.fluxcd.io", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}, meta.RESTScopeNamespace)
	for _, kind := range []string{v1alpha1.GateKind, v1alpha1.GateExceptionKind, v1alpha1.CalendarFeedKind} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	o := &objects{Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithReturnManagedFields().WithObjects(all...).Build(), FakeInformers: &informertest.FakeInformers{Scheme: scheme}}
	p := &pages{
		T: t, objects: o, configMaps: &configMaps{found: map[types.NamespacedName]*corev1.ConfigMap{}}, clock: clocktesting.NewFakePassiveClock(testNow), registry: prometheus.NewRegistry(), logged: &strings.Builder{},
		server: &apiServer{
			people:  map[string]string{"token-of-ada": "ada", "another-of-ada": "ada", "token-of-ben": "ben", "token-of-cy": "cy", "another-of-cy": "cy"},
			allowed: map[string][]string{"ada": {"* * * *"}, "ben": {"* gates shop *", "* gateexceptions shop *", "* kustomizations shop *"}},
			asked:   map[string]int{},
		},
	}
	var mu sync.Mutex
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		p.logged.WriteString(line + "\n")
	}, funcr.Options{Verbosity: 9})
	metrics := MustMakeMetrics(p.registry)
	options := Options{
		Source: &Source{Cache: o, Watch: p.configMaps.watch}, Reviews: NewReviews(p.server, p.clock, log, metrics), Live: o.Client, Mapper: mapper, Clock: p.clock,
		Own: "gating-system", Namespaces: o.Client, Calendars: true,
	}
	if change != nil {
		change(&options)
	}
	p.viewers = New(options)
	p.Handler = p.viewers.Handler(log, metrics)
	return p
}

var _ cache.Cache = &objects{}

func anonymous(o *Options) { o.Anonymous = true }

// get returns the response for a path and a token. An empty token means a request without a token.
func (p *pages) get(path, token string) (code int, page string) {
	p.Helper()
	r := httptest.NewRequestWithContext(p.Context(), http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// answers checks the status code and the texts of a response. Texts that start with an exclamation mark must not occur.
func (p *pages) answers(path, token string, want int, texts ...string) string {
	p.Helper()
	code, page := p.get(path, token)
	_, content, _ := strings.Cut(page, "<main")
	content = content[:min(len(content), 700)]
	if code != want {
		p.Errorf("%s answers %d to %q, want %d: %s", path, code, token, want, content)
	}
	for _, text := range texts {
		if without, ok := strings.CutPrefix(text, "!"); strings.Contains(page, strings.TrimPrefix(text, "!")) == ok {
			p.Errorf("%s to %q, %q: %s", path, token, without, content)
		}
	}
	return page
}

// gateOf returns a Gate that is open from 10:00 to 16:00 in UTC, with changes.
func gateOf(namespace, name string, change ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
	start, end := "10:00", "16:00"
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + name), Generation: 1, Labels: map[string]string{"team": "t-" + name}},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "w-" + name, Start: &start, End: &end}}, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}},
		Status: v1alpha1.GateStatus{
			ObservedGeneration: 1, LastTransition: &v1alpha1.Transition{At: metav1.NewTime(testNow.Add(-3 * time.Hour)), State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason},
			NextTransition: &v1alpha1.Transition{At: metav1.NewTime(testNow.Add(time.Hour / 2)), State: v1alpha1.StateOpened, Reason: v1alpha1.OpenPeriodReason, Period: "w-" + name},
			Conditions:     []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Message: "m-" + name}, {Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse}},
		},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func exceptionOf(g *v1alpha1.Gate, name string) *v1alpha1.GateException {
	from, until := metav1.NewTime(testNow.AddDate(0, 0, 1)), metav1.NewTime(testNow.AddDate(0, 0, 2))
	return &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name}, Spec: v1alpha1.GateExceptionSpec{
		GateRef: v1alpha1.GateReference{Name: g.Name}, ValidFrom: from, ValidUntil: until, OpenPeriods: []v1alpha1.Period{{Name: "x", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}},
	}}
}

// held returns a Kustomization that a Gate in its namespace holds, and its source with a newer revision.
func held(namespace, name, gate string) (obj, source *unstructured.Unstructured) {
	fields := `{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{}}},"f:spec":{"f:suspend":{}}}`
	obj = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": namespace, "name": name, "annotations": map[string]any{v1alpha1.HeldByAnnotation: namespace + "/" + gate}},
		"spec":     map[string]any{"suspend": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": name}},
		"status":   map[string]any{"lastAppliedRevision": "main@sha1:0000000000000000"},
	}}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), APIVersion: "kustomize.toolkit.fluxcd.io/v1",
	}})
	source = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"namespace": namespace, "name": name},
		"status": map[string]any{"artifact": map[string]any{"revision": "main@sha1:1111111111111111", "lastUpdateTime": testNow.Add(-time.Hour).Format(time.RFC3339)}},
	}}
	return obj, source
}
