package configmap

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

var errRefused = errors.New("refused")

// apiServer serves one ConfigMap, and no streaming lists. While fails is set, it returns errors.
type apiServer struct {
	corev1client.ConfigMapInterface
	fails  atomic.Bool
	stored *corev1.ConfigMap
	events *watch.FakeWatcher
}

// ConfigMaps implements ConfigMapsGetter.
func (a *apiServer) ConfigMaps(string) corev1client.ConfigMapInterface { return a }

func (a *apiServer) refuses(o metav1.ListOptions) error {
	if a.fails.Load() || o.FieldSelector != "metadata.name=days" { // the Role has only this name
		return errRefused
	}
	return nil
}

// List implements ConfigMapInterface.
func (a *apiServer) List(_ context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{*a.stored}}, a.refuses(o)
}

// Watch implements ConfigMapInterface.
func (a *apiServer) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return a.events, a.refuses(o)
}

func days(version, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "days", UID: "1", ResourceVersion: version,
			Annotations: map[string]string{"note": "long"}, Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Data: map[string]string{"no.ics": text}, BinaryData: map[string][]byte{"no.ics": []byte(text)},
	}
}

func TestWatchIsUnusedUntilSynced(t *testing.T) {
	// One of the handlers waits until some time after the start of the process, which is decades away in a bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		a := &apiServer{stored: days("1", "old"), events: watch.NewFake()}
		a.fails.Store(true)
		changed := make(chan struct{}, 10)
		w := NewWatch(a, types.NamespacedName{Namespace: "shop", Name: "days"}, nil, func() { changed <- struct{}{} })
		defer w.Stop()
		expect := func(what, text string) {
			t.Helper()
			select {
			case <-changed:
			case <-time.After(time.Hour):
				t.Fatal(what + ": no change is reported")
			}
			synctest.Wait()
			found, ok := w.Get()
			if ok != (text != "") || ok && found.Data["no.ics"] != text {
				t.Errorf("%s: %t, %v", what, ok, found)
			}
		}
		expect("it cannot be read", "")
		if !errors.Is(w.Failed(), errRefused) {
			t.Errorf("the error is %v", w.Failed())
		}
		a.fails.Store(false)
		expect("it is read", "old")
		a.events.Modify(days("2", "new"))
		expect("it has changed", "new")
		a.fails.Store(true)
		a.events.Stop()
		expect("the watch has failed", "")
		a.stored = days("3", "newer")
		a.events.Reset()
		a.fails.Store(false)
		expect("the watch works again", "newer")
		a.events.Delete(days("4", "newer"))
		expect("it is deleted", "")
	})
}

func TestMetadataHasNoTexts(t *testing.T) {
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "days", UID: "1", ResourceVersion: "2"}}
	if found := Metadata(days("2", "text")); !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v", found)
	}
}
