package lock

import (
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
)

// editor returns a user who may edit Kustomizations in all namespaces and open Gates in the namespaces of gates, or in all namespaces if
// gates has "".
func (w *world) editor(name string, gates ...string) client.Client {
	w.Helper()
	name = w.Namespace + "-" + name
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations", "kustomizations/status"}, Verbs: []string{"*"}},
	}}
	review := authorizationv1.ResourceAttributes{Verb: "create", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations", Namespace: w.Namespace}
	for _, gate := range gates {
		rule := rbacv1.PolicyRule{APIGroups: []string{"gating.toolkit.fluxcd.io"}, Resources: []string{"gates"}, Verbs: []string{"open"}}
		review = authorizationv1.ResourceAttributes{Verb: "open", Group: "gating.toolkit.fluxcd.io", Resource: "gates"}
		if gate != "" {
			rule.ResourceNames, review.Namespace, review.Name = []string{gate}, w.Namespace, gate
		}
		role.Rules = append(role.Rules, rule)
	}
	w.Create(role)
	w.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	})
	w.Eventually("the role is in effect", func() error {
		r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &review}}
		if err := w.Client.Create(w.Context(), r); err != nil || r.Status.Allowed {
			return err
		}
		return errors.New("not yet")
	})
	return w.Person(name).Client
}

// hotfix returns an exception of a Gate that opens Kustomizations with a label, in a GateLock.
func hotfix(gate string, change ...func(*lockv1alpha1.OverlayLock)) lockv1alpha1.OverlayLock {
	l := lockv1alpha1.OverlayLock{Gate: gate, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "payments"}}}
	for _, f := range change {
		f(&l)
	}
	return l
}

func labelled(obj *unstructured.Unstructured, labels ...string) *unstructured.Unstructured {
	all := map[string]string{}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		all[key] = value
	}
	obj.SetLabels(all)
	return obj
}

// Users must not add objects to a hotfix for other objects, by a label or by creating them.
func TestMatchingExceptionLaterNeedsVerbOpen(t *testing.T) {
	w := newWorld(t)
	opener, other := w.editor("opener", "production"), w.editor("other", "staging")
	spec := w.locked()
	spec.Targets = map[string][]string{"Kustomization/*": {w.gate("production")}}
	production := w.gate("production")
	for name, tc := range map[string]struct {
		overlays []lockv1alpha1.OverlayLock
		// before and after are the labels of the object. A nil before means that it is created.
		before, after []string
		refused       bool
	}{
		"a new object with the label":     {[]lockv1alpha1.OverlayLock{hotfix(production)}, nil, []string{"team=payments"}, true},
		"a new object without it":         {[]lockv1alpha1.OverlayLock{hotfix(production)}, nil, []string{"team=search"}, false},
		"an added label":                  {[]lockv1alpha1.OverlayLock{hotfix(production)}, []string{"a=b"}, []string{"a=b", "team=payments"}, true},
		"a changed label":                 {[]lockv1alpha1.OverlayLock{hotfix(production)}, []string{"team=search"}, []string{"team=payments"}, true},
		"another label":                   {[]lockv1alpha1.OverlayLock{hotfix(production)}, []string{"team=search"}, []string{"team=search", "a=b"}, false},
		"another label of a target":       {[]lockv1alpha1.OverlayLock{hotfix(production)}, []string{"team=payments"}, []string{"team=payments", "a=b"}, false},
		"the last label is removed":       {[]lockv1alpha1.OverlayLock{hotfix(production)}, []string{"team=payments"}, []string{}, false},
		"a removed label, with NotIn":     {[]lockv1alpha1.OverlayLock{hotfix(production, without("critical"))}, []string{"critical=yes"}, []string{"a=b"}, true},
		"a second exception of the Gate":  {[]lockv1alpha1.OverlayLock{hotfix(production), hotfix(production, without("critical"))}, []string{"team=payments", "critical=yes"}, []string{"team=payments"}, true},
		"a request":                       {[]lockv1alpha1.OverlayLock{hotfix(production, func(l *lockv1alpha1.OverlayLock) { l.Requested = true })}, nil, []string{"team=payments"}, false},
		"an exception that closes":        {[]lockv1alpha1.OverlayLock{hotfix(production, func(l *lockv1alpha1.OverlayLock) { l.Locked = true })}, nil, []string{"team=payments"}, false},
		"the name of another object":      {[]lockv1alpha1.OverlayLock{hotfix(production, func(l *lockv1alpha1.OverlayLock) { l.Name = "another" })}, nil, []string{"team=payments"}, false},
		"a new object with the name":      {[]lockv1alpha1.OverlayLock{{Gate: production, Name: "app"}}, nil, []string{}, true},
		"a label of an object with it":    {[]lockv1alpha1.OverlayLock{{Gate: production, Name: "app"}}, []string{}, []string{"a=b"}, false},
		"an exception of an unknown Gate": {[]lockv1alpha1.OverlayLock{hotfix(w.gate("unknown"))}, []string{"a=b"}, []string{"team=payments"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{World: w.On(t), controller: w.controller}
			write := func(as client.Client, opts ...client.ApplyOption) error {
				config := labelled(w.inGit("app"), tc.after...)
				return as.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(config), append(opts, client.FieldOwner("git"), client.ForceOwnership)...)
			}
			if tc.before != nil {
				w.lock(lockv1alpha1.GateLockSpec{})
				w.Must(w.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(labelled(w.inGit("app"), tc.before...)), client.FieldOwner("git")))
			}
			spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": tc.overlays}
			w.lock(spec)
			err := write(other, client.DryRunAll)
			want := "user " + w.Namespace + "-other may not make Kustomization " + w.Namespace + "/app a target of an exception of gate '" + tc.overlays[0].Gate +
				"': that needs the verb open on the gate"
			switch {
			case tc.refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
				t.Errorf("got %v, want %s", err, want)
			case !tc.refused && err != nil:
				t.Errorf("got %v", err)
			}
			err = write(opener)
			if refused := tc.overlays[0].Gate == w.gate("unknown"); refused != apierrors.IsForbidden(err) || !refused && err != nil {
				t.Errorf("with the verb open on %s: %v", production, err)
			}
			if w.TryRead(w.inGit("app")) == nil {
				w.remove(w.inGit("app"))
			}
		})
	}
}

// without makes an exception open the objects that lack a label.
func without(key string) func(*lockv1alpha1.OverlayLock) {
	return func(l *lockv1alpha1.OverlayLock) {
		l.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"yes"}}}}
	}
}

// The controller creates the pinned sources of GatedSources also during an exception for all sources.
func TestControllerNeedsNoVerbOpen(t *testing.T) {
	w := newWorld(t)
	spec := w.locked()
	spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": {{Gate: w.gate("production")}}}
	w.lock(spec)
	other := w.editor("other")
	if err := other.Create(w.Context(), w.inGit("app")); !apierrors.IsForbidden(err) {
		t.Errorf("by a user: %v", err)
	}
	w.Must(w.controller.Create(w.Context(), w.inGit("app")))
}

// Any form of write that adds the label needs the verb.
func TestAttacksOnMatchingException(t *testing.T) {
	w := newWorld(t)
	other := w.editor("other")
	spec := w.locked()
	spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": {hotfix(w.gate("production"))}}
	app := w.inGit("app")
	w.lock(spec)
	w.apply(app)
	replaced := labelled(w.inGit("app"), "team=payments")
	replaced.SetResourceVersion(w.read(app.DeepCopy()).GetResourceVersion())
	suspended := labelled(w.inGit("suspended", "true"), "team=payments")
	generated := labelled(w.inGit(""), "team=payments")
	generated.SetGenerateName("app-")
	const labels = `{"metadata":{"labels":{"team":"payments"}}}`
	for name, write := range map[string]func() error{
		"merge patch": func() error {
			return other.Patch(w.Context(), app.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(labels)))
		},
		"JSON patch": func() error {
			patch := `[{"op":"add","path":"/metadata/labels","value":{"team":"payments"}}]`
			return other.Patch(w.Context(), app.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
		},
		"update":                             func() error { return other.Update(w.Context(), replaced) },
		"created suspended, to resume later": func() error { return other.Create(w.Context(), suspended) },
		"created with a generated name":      func() error { return other.Create(w.Context(), generated) },
	} {
		if err := write(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// The API server ignores labels in a write of the status.
	w.Must(other.Status().Patch(w.Context(), app.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(labels))))
	if w.expectHeld(app, w.gate("production")); len(app.GetLabels()) > 0 {
		t.Errorf("labels %v", app.GetLabels())
	}
	w.lock(w.unlocked())
	w.remove(app)
}

// If exceptions of several Gates match, a write needs the verb on each of these Gates, or on all Gates if there are too many to check.
func TestMatchingExceptionsOfSeveralGates(t *testing.T) {
	w := newWorld(t)
	two, all := w.editor("two", "one", "two"), w.editor("all", "")
	for gates, allowed := range map[string]map[client.Client]bool{"one,two": {two: true, all: true}, "one,three": {all: true}, "one,two,three": {all: true}} {
		spec := lockv1alpha1.GateLockSpec{Gates: map[string]bool{}, Overlays: map[string][]lockv1alpha1.OverlayLock{}}
		for gate := range strings.SplitSeq(gates, ",") {
			spec.Gates[w.gate(gate)] = true
			spec.Overlays["Kustomization"] = append(spec.Overlays["Kustomization"], hotfix(w.gate(gate)))
		}
		w.lock(spec)
		for _, as := range []client.Client{two, all} {
			want := allowed[as]
			err := as.Create(w.Context(), labelled(w.inGit("app"), "team=payments"), client.DryRunAll)
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "that needs the verb open on ") {
				t.Errorf("%s: got %v, want allowed %t", gates, err, want)
			}
		}
	}
}

// An exception of a Gate that spans namespaces is in the GateLock of all namespaces.
func TestMatchingExceptionOfSpanningGate(t *testing.T) {
	w := newWorld(t)
	other := w.editor("other")
	for namespace, refused := range map[string]bool{w.Namespace: true, "elsewhere": false} {
		spec := w.freeze()
		spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": {hotfix("ops/freeze", func(l *lockv1alpha1.OverlayLock) {
			l.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
		})}}
		func() {
			defer w.fleet(spec)()
			if err := other.Create(w.Context(), labelled(w.inGit("app"), "team=payments"), client.DryRunAll); apierrors.IsForbidden(err) != refused || !refused && err != nil {
				t.Errorf("in %s: got %v", namespace, err)
			}
		}()
	}
}
