package controllers_test

import (
	"errors"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fluxcd/gating-controller/internal/configmap"
)

// unreachable is an API server that does not respond while fails is set.
type unreachable struct {
	http.RoundTripper
	fails *atomic.Bool
}

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.fails.Load() {
		return nil, errors.New("nobody answers")
	}
	return u.RoundTripper.RoundTrip(r)
}

func TestWatchIsUnusedUntilSynced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	days := w.days(holiday("20271225", "Christmas"))
	fails := &atomic.Bool{}
	fails.Store(true)
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return unreachable{inner, fails} })
	c, err := corev1client.NewForConfig(config)
	w.Must(err)
	var woken atomic.Int64
	watch := configmap.NewWatch(c, types.NamespacedName{Namespace: days.Namespace, Name: days.Name}, nil, func() { woken.Add(1) })
	t.Cleanup(watch.Stop)
	soon(t, "the failure is noticed", func() bool { return woken.Load() > 0 })
	if found, ok := watch.Get(); ok {
		t.Errorf("it has %v", found)
	}
	fails.Store(false)
	soon(t, "the file is there", func() bool {
		found, ok := watch.Get()
		return ok && found.Data["no.ics"] == days.Data["no.ics"]
	})
	before := woken.Load()
	w.change(days, holiday("20261123", "Labour Day"))
	soon(t, "the change wakes", func() bool { return woken.Load() > before })
	w.Must(cluster.Client.Delete(w.Context(), days))
	soon(t, "what is gone is to be looked up", func() bool {
		_, ok := watch.Get()
		return !ok
	})
}

func TestWatchOfControllersKeepsNoTexts(t *testing.T) {
	found := configmap.Metadata(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "days", UID: "1", ResourceVersion: "2",
			Annotations: map[string]string{"note": "long"}, Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Data: map[string]string{"no.ics": "text"}, BinaryData: map[string][]byte{"no.ics": []byte("text")},
	})
	if want := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "days", UID: "1", ResourceVersion: "2"}}); !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v", found)
	}
}
