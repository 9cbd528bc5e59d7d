package view

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// memory is a TargetReader of objects by name. It counts what is read from the API server.
type memory struct {
	TargetReader
	mu      sync.Mutex
	objects map[string]*target.Object
	errs    map[string]error
	reads   int
}

// Select implements TargetReader.
func (m *memory) Select(_ context.Context, _ target.Adapter, _ string, ref *v1alpha1.TargetReference) ([]*target.Object, error) {
	if obj := m.objects[ref.Name]; obj != nil {
		return []*target.Object{obj}, nil
	}
	return nil, nil
}

// Read implements TargetReader.
func (m *memory) Read(ctx context.Context, _ target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	m.reads++
	err, obj := m.errs[key.Name], m.objects[key.Name]
	m.mu.Unlock()
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		err = ctx.Err()
	}
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.DeepCopy(), nil
}

// put stores a Kustomization in a version, ready or not.
func (m *memory) put(name, version, ready string) {
	obj := &target.Object{Unstructured: *NewTarget(kustomizationKind)}
	obj.SetNamespace("shop")
	obj.SetName(name)
	obj.SetResourceVersion(version)
	obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Tested", "message": "m"}}}
	m.objects[name] = obj
}

var (
	kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	errRefused        = errors.New("refused")
	errHangs          = errors.New("hangs")
	noon              = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
)

// dependent returns a Gate with dependencies, and a reader that has the ready Kustomization stage.
func dependent(refs ...v1alpha1.DependencyReference) (*v1alpha1.Gate, *DependencyReader, *memory) {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{DependsOn: refs}}
	g.Namespace, g.ResourceVersion = "shop", "1"
	m := &memory{objects: map[string]*target.Object{}, errs: map[string]error{}}
	m.put("stage", "1", "True")
	return g, &DependencyReader{Targets: m}, m
}

func TestUnreadableDependenciesAreNotReady(t *testing.T) {
	stage := v1alpha1.DependencyReference{Kind: "Kustomization", Name: "stage"}
	elsewhere := v1alpha1.DependencyReference{Kind: "Kustomization", Name: "stage", Namespace: "default"}
	for name, tc := range map[string]struct {
		ref              v1alpha1.DependencyReference
		reach            Reach
		err              error
		failure, message string
		retried          bool
	}{
		"an unsupported kind":         {ref: v1alpha1.DependencyReference{Kind: "Deployment", Name: "web"}, failure: "UnsupportedKind", message: "kind Deployment is not supported"},
		"in another namespace":        {ref: elsewhere, failure: "AccessDenied", message: "runs with --no-cross-namespace-refs"},
		"in an unwatched namespace":   {ref: elsewhere, reach: Reach{AllowCrossNamespaceRefs: true, Namespaces: map[string]ctrlcache.Config{"shop": {}}}, failure: "AccessDenied", message: `the controller does not watch namespace "default"`},
		"a kind that is missing":      {ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "b"}, err: ErrNotInstalled, failure: "CRDNotFound", message: "is not installed"},
		"a read that is refused":      {ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "b"}, err: errRefused, failure: "ReadFailed", message: "cannot be read: refused", retried: true},
		"a read that does not return": {ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "b"}, err: errHangs, failure: "ReadFailed", message: "context deadline exceeded", retried: true},
		"a deleted object":            {ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "b"}, message: "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, r, m := dependent(stage, tc.ref)
				r.Reach, m.errs["b"] = tc.reach, tc.err
				began := time.Now()
				status, faults, _ := r.Read(t.Context(), g, noon, false)
				if took := time.Since(began); took > dependencyTimeout {
					t.Errorf("it took %s", took)
				}
				if !status[0].Ready || status[1].Ready || !strings.Contains(status[1].Message, tc.message) {
					t.Errorf("got %+v", status)
				}
				switch {
				case tc.failure == "" && len(faults) == 0:
				case len(faults) != 1 || faults[0].Reason != tc.failure || faults[0].Kind != tc.ref.Kind || faults[0].Name != tc.ref.Name || (faults[0].Cause != nil) != tc.retried:
					t.Errorf("faults %+v", faults)
				}
			})
		})
	}
}

// Expressions read the whole object and the Gate, both with their kinds.
func TestExpressionsReadObjectAndGate(t *testing.T) {
	g, r, m := dependent(v1alpha1.DependencyReference{
		Kind: "Kustomization", Name: "stage", ReadyExpr: "dep.metadata.annotations['v'] == self.metadata.annotations['v'] && self.kind == 'Gate' && dep.kind == 'Kustomization'",
	})
	m.objects["stage"].SetAnnotations(map[string]string{"v": "2"})
	for _, step := range []struct{ version, message string }{{"", "readyExpr: no such key: annotations"}, {"1", "readyExpr is false"}, {"2", ""}} {
		if g.ResourceVersion += "1"; step.version != "" {
			g.Annotations = map[string]string{"v": step.version}
		}
		if status, _, _ := r.Read(t.Context(), g, noon, false); status[0].Message != step.message || status[0].Ready != (step.message == "") {
			t.Errorf("with %q: %+v", step.version, status[0])
		}
	}
}

func TestUnchangedDependenciesAreNotReadAgain(t *testing.T) {
	self := v1alpha1.DependencyReference{Kind: "Kustomization", Name: "stage", ReadyExpr: "!has(self.metadata.annotations)"}
	g, r, m := dependent(v1alpha1.DependencyReference{Kind: "Kustomization", Name: "stage"}, self, v1alpha1.DependencyReference{Kind: "Kustomization", Name: "absent"})
	for _, step := range []struct {
		what   string
		change func()
		at     time.Duration
		all    bool
		reads  int
		ready  bool
	}{
		{"at first", nil, 0, false, 3, true},
		{"nothing changed", nil, time.Minute, false, 0, true},
		{"before the Gate opens", nil, time.Minute, true, 3, true},
		{"the object changed", func() { m.put("stage", "2", "False") }, time.Minute, false, 2, false},
		{"it stays so", nil, time.Minute, false, 0, false},
		{"another object has the name", func() { m.put("stage", "2", "True"); m.objects["stage"].SetUID("b") }, time.Minute, false, 2, true},
		{"the Gate changed, which an expression reads", func() { g.ResourceVersion = "2" }, time.Minute, false, 1, true},
		{"the missing object exists", func() { m.put("absent", "1", "True") }, time.Minute, false, 1, true},
		{"the evaluations are old", nil, evaluationMaxAge + time.Minute, false, 3, true},
		{"the clock is set back", nil, 0, false, 3, true},
		{"the spec changed", func() { g.Spec.DependsOn[0].ReadyExpr = "false" }, 0, false, 1, false},
		{"a read fails", func() { m.put("stage", "3", "True"); m.errs["stage"] = errRefused }, 0, false, 2, false},
		{"a failed read is retried", nil, 0, false, 2, false},
		{"evicted", func() { r.Forget(g.UID) }, 0, false, 3, false},
	} {
		if step.change != nil {
			step.change()
		}
		m.reads = 0
		status, _, cached := r.Read(t.Context(), g, noon.Add(step.at), step.all)
		if m.reads != step.reads || cached != (step.reads < 3) || status[0].Ready != step.ready {
			t.Errorf("%s: %d reads, want %d, cached %t, %+v", step.what, m.reads, step.reads, cached, status[0])
		}
	}
}
