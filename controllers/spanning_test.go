package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
)

// fleetLabel distinguishes the objects and the namespaces of one world from those of others, because references that span namespaces match
// all of them.
const fleetLabel = "fleet"

// everywhere returns a reference to all Kustomizations of a world.
func (w *world) everywhere() v1alpha1.TargetReference {
	ref := all(fleetLabel, w.Namespace)
	ref.Namespace = v1alpha1.AnyName
	return ref
}

// inLabelled returns a reference to all Kustomizations in the namespaces of a world that also have another label.
func (w *world) inLabelled(key, value string) v1alpha1.TargetReference {
	ref := all()
	ref.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{fleetLabel: w.Namespace, key: value}}
	return ref
}

// member creates a Kustomization of a world in a namespace.
func (w *world) member(namespace, name string) *target.Object {
	w.Helper()
	obj := inGit(namespace, name, map[string]string{fleetLabel: w.Namespace})
	w.Git(obj)
	return obj
}

// relabelNamespace sets the labels of a namespace in addition to that of the world, and handles the event.
func (w *world) relabelNamespace(name string, labels map[string]string) {
	w.Helper()
	before := view.NewNamespace()
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Name: name}, before))
	after := before.DeepCopy()
	after.Labels = map[string]string{fleetLabel: w.Namespace}
	maps.Copy(after.Labels, labels)
	w.Must(cluster.Client.Patch(w.Context(), after, client.MergeFrom(before)))
	w.Reconcilers().Handlers.Namespace(w.Context(), before, after)
}

// bear creates a namespace with labels, and handles the event.
func (w *world) bear(labels map[string]string) string {
	w.Helper()
	name := w.NewNamespace()
	w.relabelNamespace(name, labels)
	w.Queues.Clear()
	born := view.NewNamespace()
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Name: name}, born))
	w.Reconcilers().Handlers.Namespace(w.Context(), nil, born)
	return name
}

// settle reconciles all enqueued objects until nothing is left to do.
func (w *world) settle() {
	w.Helper()
	for range controllertest.MaxRounds {
		before := w.Writes.Count()
		w.Must(w.ReconcileEnqueued())
		if w.Writes.Count() == before {
			return
		}
	}
	w.Fatal("there is always more to do")
}

func TestGateWithTargetsInOtherNamespaces(t *testing.T) {
	w := reaching(t)
	shop, bank := w.NewNamespace(), w.NewNamespace()
	w.relabelNamespace(shop, map[string]string{"team": "shop"})
	w.relabelNamespace(bank, map[string]string{"team": "bank"})
	here, inShop, inBank, another, unlabelled := w.member(w.Namespace, "apps"), w.member(shop, "apps"), w.member(bank, "apps"), w.member(shop, "infrastructure"), inGit(bank, "unlabelled", nil)
	w.Git(unlabelled)
	g := w.ClosedGate("freeze")
	selected := w.inLabelled("team", "shop")
	selected.Name = "apps"
	excluded, named, byExpressions := selected, named("apps"), all()
	excluded.NamespaceSelector = &v1alpha1.LabelSelector{
		MatchLabels:      map[string]string{fleetLabel: w.Namespace},
		MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"shop"}}},
	}
	named.Namespace = shop
	byExpressions.Namespace = bank
	byExpressions.MatchExpressions = []v1alpha1.LabelSelectorRequirement{{Key: fleetLabel, Operator: metav1.LabelSelectorOpExists}, {Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}
	for name, tc := range map[string]struct {
		ref  v1alpha1.TargetReference
		held []*target.Object
	}{
		"all namespaces":                {w.everywhere(), []*target.Object{here, inShop, inBank, another}},
		"namespaces with a label":       {selected, []*target.Object{inShop}},
		"namespaces without a label":    {excluded, []*target.Object{inBank}},
		"one in another namespace":      {named, []*target.Object{inShop}},
		"objects there, by expressions": {byExpressions, []*target.Object{inBank}},
	} {
		w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{tc.ref} })
		w.Reconcile(g)
		equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: int64(len(tc.held)), Held: int64(len(tc.held))})
		for _, obj := range []*target.Object{here, inShop, inBank, another, unlabelled} {
			_, err := w.Reconcilers().Targets.Reconcile(w.Context(), target.KeyOf(obj)) // the index may find the Gate by the kind of the object
			w.Must(err)
			if slices.Contains(tc.held, obj) {
				w.ExpectHeld(obj, g)
			} else if w.Suspended(obj) {
				t.Errorf("%s: %s/%s is held", name, obj.GetNamespace(), obj.GetName())
			}
		}
	}
	w.ExpectUntouched(unlabelled)
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{w.everywhere()} })
	w.Reconcile(g)
	w.Open(g, start)
	w.Reconcile(g)
	w.ExpectReleased(here, g)
	w.ExpectReleased(inShop, g)
}

func TestNamespaceLabelEnqueuesOnlyAffectedTargets(t *testing.T) {
	w := reaching(t)
	a, b := w.NewNamespace(), w.NewNamespace()
	w.relabelNamespace(a, map[string]string{"team": "shop"})
	w.relabelNamespace(b, nil)
	inA, inB := w.member(a, "apps"), w.member(b, "apps")
	g := w.ClosedGate("freeze", w.inLabelled("team", "shop"))
	w.Reconcile(g)
	w.Writes.Take("")

	w.relabelNamespace(b, map[string]string{"team": "shop"})
	w.settle()
	w.ExpectHeld(inB, g)
	equal(t, w.Writes.Take(""), []string{"apply Kustomization/apps", "patch-status Kustomization/apps"})

	w.relabelNamespace(b, map[string]string{"team": "shop", "unrelated": "yes"})
	w.settle()
	expectNone(t, w.Writes.Take(""))

	healthy := w.Client
	w.Client = blindClient{healthy}
	w.Queues.Targets(0, target.KeyOf(inB))
	if err := w.ReconcileEnqueued(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the labels of namespace %q cannot be read", b)) {
		t.Errorf("got %v", err)
	}
	w.Client = healthy
	w.settle()
	w.ExpectHeld(inB, g)
	expectNone(t, w.Writes.Take(""))

	w.relabelNamespace(b, map[string]string{"team": "bank"})
	w.settle()
	w.ExpectReleased(inB, g)
	equal(t, w.Writes.Take(""), []string{"apply Kustomization/apps", "patch-status Kustomization/apps"})
	w.ExpectHeld(inA, g)
}

// The events of a namespace, its labels and its objects arrive in any order.
func TestNamespaceCreatedWhileGateIsClosed(t *testing.T) {
	w := fleetLocking(t)
	g := w.ClosedGate("freeze", w.inLabelled("team", "shop"))
	w.Reconcile(g)
	w.Writes.Take("")
	isHeld := func(app *target.Object) {
		t.Helper()
		w.settle()
		w.ExpectHeld(app, g)
		equal(t, w.Writes.Take(""), []string{"apply Kustomization/apps", "patch-status Kustomization/apps"})
	}
	labels := map[string]string{"team": "shop"}
	newApp := func(namespace string) *target.Object {
		app := inGit(namespace, "apps", nil)
		w.Git(app)
		w.Queues.Targets(0, target.KeyOf(app))
		return app
	}
	t.Run("with its labels, before its objects", func(*testing.T) { isHeld(newApp(w.bear(labels))) })
	t.Run("before its labels", func(*testing.T) {
		created := w.NewNamespace()
		app := newApp(created)
		w.settle()
		w.ExpectUntouched(app)
		w.relabelNamespace(created, labels)
		isHeld(app)
	})
	t.Run("after its objects", func(*testing.T) {
		created := w.NewNamespace()
		w.relabelNamespace(created, labels)
		app := newApp(created)
		w.Queues.Clear() // the target is not enqueued for another reason
		w.ExpectUntouched(app)
		seen := view.NewNamespace()
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Name: created}, seen))
		w.Reconcilers().Handlers.Namespace(w.Context(), nil, seen)
		isHeld(app)
	})
	t.Run("its GateLock", func(t *testing.T) {
		ref := named("apps")
		ref.Namespace = w.Namespace + "-later"
		naming := w.ClosedGate("naming", ref)
		w.Reconcile(naming)
		w.Writes.Take("")
		created := view.NewNamespace()
		created.Name = ref.Namespace
		w.Must(cluster.Client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: created.Name}}))
		w.Reconcilers().Handlers.Namespace(w.Context(), nil, created)
		w.settle()
		equal(t, w.Writes.Take(""), []string{"create GateLock/" + created.Name})
		w.expectLock(created.Name, lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(naming): true}, Targets: map[string][]string{"Kustomization/apps": {key(naming)}}})
	})
}

// fleetLocking returns a world with GateLocks whose controller has its own namespace.
func fleetLocking(t *testing.T) *world {
	t.Helper()
	w := locking(t)
	w.AllowCrossNamespaceRefs = true
	w.Own = w.NewNamespace()
	return w
}

// expectFleetLock checks the part of a Gate in the GateLock of all namespaces, nil for none. It ignores other Gates.
func (w *world) expectFleetLock(g *v1alpha1.Gate, want *lock.Part) {
	w.Helper()
	obj := &lockv1alpha1.GateLock{}
	w.Must(client.IgnoreNotFound(cluster.Client.Get(w.Context(), view.LockKey(v1alpha1.AnyName, w.Own), obj)))
	got, has := lock.Read(&obj.Spec)[key(g)]
	if has != (want != nil) || has && !got.Equal(*want) {
		w.Errorf("got %+v, want %+v", got, want)
	}
}

func expectNone[T any](t *testing.T, got []T) {
	t.Helper()
	if len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestOneGateLockCoversAllNamespaces(t *testing.T) {
	w := fleetLocking(t)
	var app *target.Object
	for range 3 {
		app = w.member(w.NewNamespace(), "apps")
	}
	selected := w.inLabelled("team", "shop")
	selected.Name = "web"
	g := w.ClosedGate("freeze", w.everywhere(), selected, v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	w.Reconcile(g)
	w.expectFleetLock(g, ptr.To(lock.NewPart(true, g.Spec.Targets[:2]...)))
	equal(t, w.Writes.Take("GateLock"), []string{"create GateLock/" + w.Namespace, "create GateLock/" + w.Own})
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): true}, Targets: map[string][]string{"Kustomization/apps": {key(g)}}})

	w.Writes.Before = failing("GateLock/" + w.Own)
	w.Open(g, start)
	if _, err := w.Try(g); err == nil {
		t.Error("no error although the GateLock cannot be written")
	}
	w.ExpectHolder(app, g)
	equal(t, failuresOf(g), []string{"GateLock/all-namespaces WriteFailed"})
	w.Writes.Reset()
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	w.expectFleetLock(g, ptr.To(lock.NewPart(false)))
	writes := w.Writes.Take("")
	unlocked, released := indexWith(writes, "update GateLock/"+w.Own), indexWith(writes, "apply Kustomization")
	if unlocked < 0 || released < unlocked {
		t.Errorf("released before it was unlocked: %q", writes)
	}

	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Reconcile(g)
	w.expectFleetLock(g, nil)
}

func indexWith(writes []string, text string) int {
	for i, write := range writes {
		if strings.Contains(write, text) {
			return i
		}
	}
	return -1
}

func TestControllerNamespaceIsNotSpanned(t *testing.T) {
	w := fleetLocking(t)
	w.relabelNamespace(w.Own, map[string]string{"team": "shop"})
	own, other := w.member(w.Own, "gating-controller"), w.member(w.NewNamespace(), "apps")
	g := w.ClosedGate("freeze", w.everywhere())
	w.Reconcile(g)
	w.ExpectUntouched(own)
	w.ExpectHeld(other, g)
	expectNone(t, failuresOf(g))

	t.Run("who selects it is told", func(t *testing.T) {
		g := w.ClosedGate("selecting", w.inLabelled("team", "shop"))
		w.Reconcile(g)
		w.ExpectUntouched(own)
		equal(t, failuresOf(g), []string{"Kustomization/* AccessDenied"})
		want := fmt.Sprintf("namespaceSelector selects %q, the namespace of the controller, where nothing is held: exclude it with "+
			"{key: kubernetes.io/metadata.name, operator: NotIn, values: [%s]}", w.Own, w.Own)
		equal(t, g.Status.TargetFailures()[0].Message, want)

		w.Edit(g, func() {
			g.Spec.Targets[0].NamespaceSelector.MatchExpressions = []v1alpha1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{w.Own}},
			}
		})
		w.Reconcile(g)
		expectNone(t, failuresOf(g))
	})
	t.Run("who names it means it", func(*testing.T) {
		ref := named("gating-controller")
		ref.Namespace = w.Own
		g := w.ClosedGate("naming", ref)
		w.Reconcile(g)
		w.ExpectHeld(own, g)
	})
}

// blindClient cannot read namespaces.
type blindClient struct{ client.Client }

func (b blindClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok && obj.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, key.Name, nil)
	}
	return b.Client.Get(ctx, key, obj, opts...)
}
