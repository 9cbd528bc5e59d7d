package install

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// A backup, for example by Velero, has no status. A restored object has another UID, and its field manager is the client that restored it.
func TestRestoredBackupOpensNothing(t *testing.T) {
	t.Parallel()
	restores(t, newInstalled(t))
}

// The page says to restore first. With the policies installed before, nothing opens either.
func TestRestoredBackupUnderPoliciesOpensNothing(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	i.Must(i.InstallComponent(i.Context(), "policies"))
	restores(t, i)
}

func restores(t *testing.T, i *installed) {
	t.Helper()
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	gates := map[string]struct {
		byDefault v1alpha1.State
		requests  []string
	}{
		"by-default": {v1alpha1.StateClosed, nil},
		"by-hand":    {v1alpha1.StateOpened, []string{v1alpha1.CloseRequestedAtAnnotation, ago(time.Second)}},
		"opened-and-closed": {v1alpha1.StateClosed, []string{
			v1alpha1.OpenRequestedAtAnnotation, ago(2 * time.Second), v1alpha1.CloseRequestedAtAnnotation, ago(time.Second),
		}},
	}
	var saved []*unstructured.Unstructured
	for name, of := range gates {
		i.Create(i.Kustomization(name))
		g := i.Gate(name, v1alpha1.GateSpec{Default: of.byDefault, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: name}}})
		if of.requests != nil {
			i.Annotate(g, of.requests...)
		}
	}
	for name := range gates {
		i.Opened(name, "False")
		i.Eventually(name+" is held", func() error { return i.isHeld(name) })
	}
	i.Must(i.controller.Stop())
	for _, kind := range []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind), i.app.GroupVersionKind()} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		i.Must(i.Client.List(i.Context(), list, client.InNamespace(i.Namespace)))
		for k := range list.Items {
			saved = append(saved, backedUp(&list.Items[k]))
			before := list.Items[k].DeepCopy()
			list.Items[k].SetFinalizers(nil)
			i.Must(i.Client.Patch(i.Context(), &list.Items[k], client.MergeFrom(before)))
			i.Must(client.IgnoreNotFound(i.Client.Delete(i.Context(), &list.Items[k])))
		}
	}
	versions := i.Record(i.app.GroupVersionKind())
	for _, obj := range saved {
		i.Must(i.Client.Create(i.Context(), obj, client.FieldOwner("velero-server")))
	}
	i.starts()
	for name := range gates {
		g := i.ReadGate(name)
		i.Decided(g)
		if !meta.IsStatusConditionFalse(g.Status.Conditions, v1alpha1.OpenedCondition) {
			t.Errorf("%s is open: %+v", name, g.Status.Conditions)
		}
		i.Must(i.isHeld(name))
	}
	for _, version := range versions.All() {
		if !harness.Suspended(version) && version.GetDeletionTimestamp() == nil {
			t.Errorf("%s was resumed", version.GetName())
		}
	}
	i.showsSuspendedByOthers()
	// For the API server, the client that restored the object has suspended it.
	for name := range gates {
		g := i.ReadGate(name)
		if g.Status.Targets == nil || g.Status.Targets.SuspendedByOthers != 1 {
			t.Errorf("%s has targets %+v", name, g.Status.Targets)
		}
		i.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		i.Opened(name, "True")
		i.Must(i.isHeld(name))
		i.Must(i.Flux(i.Kustomization(name), `{"spec":{"suspend":false}}`))
		i.Decided(i.ReadGate(name))
		if i.isHeld(name) == nil {
			t.Errorf("%s is held by an open gate", name)
		}
	}
}

// showsSuspendedByOthers runs the command of docs/operate/backup.md.
func (i *installed) showsSuspendedByOthers() {
	i.Helper()
	command, printed, _ := strings.Cut(markdown.BlocksOf(i, "docs/operate/backup.md", "console")[0].Text, "\n")
	i.Eventually("the command prints the targets suspended by others", func() error {
		if out, err := i.bash(i.Context(), strings.TrimPrefix(command, "$ ")); err != nil || out != printed {
			return errors.Join(err, errors.New(out))
		}
		return nil
	})
}

// isHeld returns an error unless the target with this name is suspended.
func (i *installed) isHeld(name string) error {
	app := i.Kustomization(name)
	if err := i.TryRead(app); err != nil {
		return err
	}
	if !harness.Suspended(app) {
		return fmt.Errorf("%s is not suspended", name)
	}
	return nil
}

// backedUp returns the part of an object that is in a backup.
func backedUp(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	unstructured.RemoveNestedField(obj.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return obj
}
