package receiver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/receiver"
	"github.com/fluxcd/gating-controller/internal/calendarfeed"
)

// calendarReplica is a controller of calendars with its own table, and the handler that serves it.
type calendarReplica struct {
	*receiver.CalendarReconciler
	handler *calendarfeed.Handler
}

func newCalendarReplica(c client.Client, now time.Time) *calendarReplica {
	source := &calendarfeed.Source{Cache: c, Watch: func(types.NamespacedName) calendarfeed.ConfigMapWatch { return nil }}
	table := calendarfeed.NewTable(c, source)
	return &calendarReplica{
		&receiver.CalendarReconciler{Client: c, Table: table},
		calendarfeed.NewHandler(table, clocktesting.NewFakePassiveClock(now), logr.Discard(), calendarfeed.MustMakeMetrics(prometheus.NewRegistry())),
	}
}

// get returns the status code and the ETag of the response to a reader.
func (r *calendarReplica) get(t *testing.T, path string) (code int, tag string) {
	t.Helper()
	response := httptest.NewRecorder()
	r.handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return response.Code, response.Header().Get("ETag")
}

func TestCalendarFeedIsReadyOnceAllReplicasServeItsToken(t *testing.T) {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}
	}
	obj := &v1alpha1.CalendarFeed{ObjectMeta: named("all"), Spec: v1alpha1.CalendarFeedSpec{
		SecretRef: meta.LocalObjectReference{Name: "all"}, Selector: &v1alpha1.LabelSelector{},
	}}
	obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	scheme := runtime.NewScheme()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(corev1.AddToScheme(scheme))
	must(v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(obj).WithObjects(
		obj, &v1alpha1.Gate{ObjectMeta: named("production"), Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}},
	).Build()
	now, key := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), client.ObjectKeyFromObject(obj)
	one, two := newCalendarReplica(c, now), newCalendarReplica(c, now)
	digest := sha256.Sum256([]byte("t0" + "all" + "shop" + "/calendar"))
	path := "/calendar/" + hex.EncodeToString(digest[:]) + ".ics"
	expect := func(r *calendarReplica, reason, path string, atLeast, atMost time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		must(err)
		must(c.Get(t.Context(), key, obj))
		if got := conditions.GetReason(obj, meta.ReadyCondition); got != reason || conditions.IsReady(obj) != (path != "") || obj.Status.CalendarPath != path ||
			obj.Status.ObservedGeneration != obj.Generation || result.RequeueAfter < atLeast || result.RequeueAfter > atMost {
			t.Errorf("%s, requeued after %s: %+v", got, result.RequeueAfter, obj.Status)
		}
	}
	expect(one, v1alpha1.TokenNotFoundReason, "", 1, time.Minute)
	must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: named("all"), Data: map[string][]byte{"token": []byte("t0")}}))
	expect(one, meta.SucceededReason, path, 8*time.Minute, time.Hour)
	expect(two, meta.SucceededReason, path, 8*time.Minute, time.Hour)
	first, tag := one.get(t, path)
	second, other := two.get(t, path)
	if first != http.StatusOK || second != http.StatusOK || tag != other || obj.Status.LastHandledReconcileAt != "now" {
		t.Errorf("%d %s, %d %s, %+v", first, tag, second, other, obj.Status)
	}

	must(c.Delete(t.Context(), obj))
	_, err := two.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	must(err)
	if code, _ := two.get(t, path); code != http.StatusNotFound {
		t.Errorf("it is served although it is deleted: %d", code)
	}
}
