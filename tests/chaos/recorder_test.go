package chaos

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// recorded are the kinds whose versions are all in the history.
func recorded() map[string]string {
	all := map[string]string{v1alpha1.GateKind: v1alpha1.GroupVersion.String()}
	for kind, apiVersion := range kinds {
		all[kind] = apiVersion
	}
	return all
}

// record watches all Gates and targets until the end of the walk.
func (w *walk) record() {
	for kind, apiVersion := range recorded() {
		for _, namespace := range w.namespaces {
			go w.recordKind(w.Context(), apiVersion, kind, namespace)
		}
	}
}

// recordKind watches one kind. Changes between two watches are observed in the next list, see caughtUp.
func (w *walk) recordKind(ctx context.Context, apiVersion, kind, namespace string) {
	for from := ""; ctx.Err() == nil; {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		if from == "" {
			if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				w.pass(100 * time.Millisecond)
				continue
			}
			for i := range list.Items {
				w.history.Saw(&list.Items[i], true, time.Now())
			}
			from = list.GetResourceVersion()
		}
		watcher, err := w.Client.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
		if err != nil {
			from = ""
			w.pass(100 * time.Millisecond)
			continue
		}
		for event := range watcher.ResultChan() {
			obj, ok := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Error || !ok {
				from = ""
				break
			}
			from = obj.GetResourceVersion()
			if event.Type != watch.Deleted {
				w.history.Saw(obj, false, time.Now())
			}
		}
		watcher.Stop()
	}
}

// awaitRecorded waits until the history has the current version of an object. The watch ends with the API server, and a resume counts only
// for a target whose hold was recorded.
func (w *walk) awaitRecorded(obj *unstructured.Unstructured) {
	w.Helper()
	w.Must(harness.Eventually(w.Context(), w.patience, "the history has the object", func() error {
		if !w.get(obj) {
			return nil
		}
		if seen := w.history.Version(obj.GetUID()); seen != obj.GetResourceVersion() {
			return fmt.Errorf("the history has version %q of %s, not %s", seen, obj.GetName(), obj.GetResourceVersion())
		}
		return nil
	}))
}

// caughtUp returns nil if the history has the last version of all objects.
func (w *walk) caughtUp() error {
	for kind, apiVersion := range recorded() {
		list, err := w.list(apiVersion, kind)
		if err != nil {
			return err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if seen := w.history.Version(obj.GetUID()); seen != obj.GetResourceVersion() {
				return fmt.Errorf("the history has version %q of %s %s, not %s", seen, kind, obj.GetName(), obj.GetResourceVersion())
			}
		}
	}
	return nil
}
