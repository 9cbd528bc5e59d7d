package chaos

import (
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// try repeats a call of the API server, which may not be ready yet.
func (w *walk) try(do func() error) error {
	var result error
	err := harness.Eventually(w.Context(), time.Minute, "the API server responds", func() error {
		result = do()
		if decided[string(apierrors.ReasonForError(result))] {
			return nil
		}
		return result
	})
	if err != nil {
		return err
	}
	return result
}

// decided are the reasons of errors that a retry does not change.
var decided = map[string]bool{"NotFound": true, "AlreadyExists": true, "Invalid": true, "Forbidden": true, "BadRequest": true, "Conflict": true}

// get reads an object and returns whether it exists and is not being deleted.
func (w *walk) get(obj client.Object) bool {
	w.Helper()
	err := w.try(func() error { return w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj) })
	w.Must(client.IgnoreNotFound(err))
	return err == nil && obj.GetDeletionTimestamp() == nil
}

// create creates an object unless it exists.
func (w *walk) create(obj client.Object, manager string) bool {
	w.Helper()
	err := w.try(func() error { return w.Client.Create(w.Context(), obj, client.FieldOwner(manager)) })
	if apierrors.IsAlreadyExists(err) {
		return false
	}
	w.Must(err)
	w.log.Wrote(obj, time.Now())
	return true
}

// patch patches an existing object, and records the version if it is a new one.
func (w *walk) patch(obj client.Object, kind types.PatchType, content any, manager string, opts ...client.PatchOption) {
	w.Helper()
	raw, err := json.Marshal(content)
	w.Must(err)
	if !w.get(obj) {
		return
	}
	before := obj.GetResourceVersion()
	err = w.try(func() error {
		return w.Client.Patch(w.Context(), obj, client.RawPatch(kind, raw), append(opts, client.FieldOwner(manager))...)
	})
	w.Must(client.IgnoreNotFound(err))
	if err == nil && obj.GetResourceVersion() != before {
		w.log.Wrote(obj, time.Now())
	}
}

// remove deletes an existing object.
func (w *walk) remove(obj client.Object) {
	w.Helper()
	if !w.get(obj) {
		return
	}
	// From here on, the time of its end is unknown.
	w.log.Deleted(obj, time.Now())
	w.Must(client.IgnoreNotFound(w.try(func() error { return w.Client.Delete(w.Context(), obj) })))
}

func suspendPatch(value any) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": value}}
}

func annotationPatch(annotations map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

func (w *walk) logf(format string, args ...any) {
	w.Helper()
	w.Logf("    %s", fmt.Sprintf(format, args...))
}
