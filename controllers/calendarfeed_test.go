package controllers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/receiver"
	"github.com/fluxcd/gating-controller/internal/calendarfeed"
)

// calendarReplica is a controller of calendars with its own table, and the handler that serves it.
type calendarReplica struct {
	*receiver.CalendarReconciler
	handler *calendarfeed.Handler
}

func newCalendarReplica(now time.Time) *calendarReplica {
	source := &calendarfeed.Source{Cache: cluster.Client, Watch: func(types.NamespacedName) calendarfeed.ConfigMapWatch { return nil }}
	table := calendarfeed.NewTable(cluster.Client, source)
	return &calendarReplica{
		&receiver.CalendarReconciler{Client: cluster.Client, Table: table},
		calendarfeed.NewHandler(table, clocktesting.NewFakePassiveClock(now), logr.Discard(), calendarfeed.MustMakeMetrics(prometheus.NewRegistry())),
	}
}

// looks makes a replica reconcile a calendar. It returns the conditions, the path and the delay of the next reconciliation.
func (w *world) looks(r *calendarReplica, obj *v1alpha1.CalendarFeed) ([]string, string, time.Duration) {
	w.Helper()
	result, err := r.Reconcile(w.Context(), requestFor(obj))
	w.Must(err)
	w.Must(client.IgnoreNotFound(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)))
	var says []string
	for _, c := range obj.Status.Conditions {
		says = append(says, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(says)
	if obj.Status.ObservedGeneration != obj.Generation {
		w.Errorf("observed %d of %d", obj.Status.ObservedGeneration, obj.Generation)
	}
	return says, obj.Status.CalendarPath, result.RequeueAfter
}

func (r *calendarReplica) code(t *testing.T, path string) (code int, tag string) {
	t.Helper()
	answer := httptest.NewRecorder()
	r.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer.Code, answer.Header().Get("ETag")
}

func TestCalendarFeedIsReadyOnceAllReplicasServeItsToken(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	one, two := newCalendarReplica(now), newCalendarReplica(now)
	w.Must(cluster.Client.Create(w.Context(), &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: w.Namespace}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}))
	obj := &v1alpha1.CalendarFeed{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: w.Namespace}, Spec: v1alpha1.CalendarFeedSpec{
		SecretRef: meta.LocalObjectReference{Name: "all"}, Selector: &v1alpha1.LabelSelector{},
	}}
	w.Must(cluster.Client.Create(w.Context(), obj))
	if says, path, again := w.looks(one, obj); !slices.Equal(says, []string{"Ready False TokenNotFound"}) || path != "" || again > time.Minute {
		t.Errorf("%q at %q, again after %s", says, path, again)
	}
	w.token("all", map[string]string{"token": "t0"})
	w.Annotate(obj, meta.ReconcileRequestAnnotation, "now")
	digest := sha256.Sum256([]byte("t0" + "all" + w.Namespace + "/calendar"))
	want := "/calendar/" + hex.EncodeToString(digest[:]) + ".ics"
	for _, r := range []*calendarReplica{one, two} {
		if says, path, again := w.looks(r, obj); !slices.Equal(says, []string{"Ready True Succeeded"}) || path != want || again < 8*time.Minute {
			t.Errorf("%q at %q, again after %s", says, path, again)
		}
	}
	first, tag := one.code(t, want)
	second, other := two.code(t, want)
	if first != http.StatusOK || second != http.StatusOK || tag != other || obj.Status.LastHandledReconcileAt != "now" {
		t.Errorf("%d %s, %d %s, %+v", first, tag, second, other, obj.Status)
	}

	w.Must(cluster.Client.Delete(w.Context(), obj))
	_, err := two.Reconcile(w.Context(), requestFor(obj))
	w.Must(err)
	if code, _ := two.code(t, want); code != http.StatusNotFound {
		t.Errorf("it is served although it is gone: %d", code)
	}
}
