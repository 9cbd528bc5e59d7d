package bench

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestWriteLatencies(t *testing.T) {
	const metrics = `# TYPE apiserver_request_sli_duration_seconds histogram
apiserver_request_sli_duration_seconds_bucket{resource="kustomizations",verb="APPLY",le="0.05"} %[1]d
apiserver_request_sli_duration_seconds_bucket{resource="kustomizations",verb="APPLY",le="0.1"} %[2]d
apiserver_request_sli_duration_seconds_bucket{resource="kustomizations",verb="APPLY",le="+Inf"} %[2]d
apiserver_request_sli_duration_seconds_sum{resource="kustomizations",verb="APPLY"} 9
apiserver_request_sli_duration_seconds_count{resource="kustomizations",verb="APPLY"} %[2]d
apiserver_request_sli_duration_seconds_bucket{resource="gates",verb="PATCH",le="0.05"} 0
apiserver_request_sli_duration_seconds_bucket{resource="gates",verb="PATCH",le="0.1"} 0
apiserver_request_sli_duration_seconds_bucket{resource="gates",verb="PATCH",le="+Inf"} 1
apiserver_request_sli_duration_seconds_bucket{resource="gates",verb="LIST",le="+Inf"} 1000
apiserver_request_sli_duration_seconds_bucket{resource="leases",verb="PUT",le="+Inf"} 1000
`
	fast, all := 90, 100
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, metrics, fast, all) })) //nolint:errcheck // a test
	defer server.Close()
	b := &bench{http: server.Client(), server: server.URL}
	before, err := b.latencies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fast, all = 180, 200
	after, err := b.latencies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := []float64{after.quantile(.5), after.quantile(.99), after.quantile(1), after.since(before).quantile(.9), after.since(before).quantile(1)}; !slices.Equal(got, []float64{.05, .1, math.Inf(1), .05, .1}) {
		t.Errorf("got %v", got)
	}
}

func TestRequestsAreSummedWithoutLeases(t *testing.T) {
	const metrics = `# HELP apiserver_request_total Counter.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="kustomizations",subresource="",verb="APPLY"} 7
apiserver_request_total{code="409",resource="kustomizations",subresource="",verb="APPLY"} 2
apiserver_request_total{code="200",resource="kustomizations",subresource="status",verb="PATCH"} 4
apiserver_request_total{code="200",resource="gates",subresource="",verb="WATCH"} 1
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 100
apiserver_request_total{code="200",resource="",subresource="",verb="GET"} 50
# TYPE apiserver_request_totally_else counter
apiserver_request_totally_else 1
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, metrics) })) //nolint:errcheck // a test
	defer server.Close()
	b := &bench{http: server.Client(), server: server.URL}
	got, conflicts, err := b.counted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (calls{{"APPLY", "kustomizations", ""}: 2}); !reflect.DeepEqual(conflicts, want) {
		t.Errorf("the conflicts are %v, want %v", conflicts, want)
	}
	before := calls{{"APPLY", "kustomizations", ""}: 5}
	added := got.since(before)
	want := calls{{"APPLY", "kustomizations", ""}: 4, {"PATCH", "kustomizations", "status"}: 4, {"WATCH", "gates", ""}: 1}
	if !reflect.DeepEqual(added, want) {
		t.Errorf("got %v, want %v", added, want)
	}
	if writes, reads := added.writes().total(), added.reads().total(); writes != 8 || reads != 1 {
		t.Errorf("%g writes, %g reads", writes, reads)
	}
	requests := calls{{"GET", "gates", ""}: 2, {"LIST", "kustomizations", ""}: 3, {"WATCH", "gates", ""}: 1, {"GET", "endpoints", ""}: 12, {"PATCH", "gates", ""}: 1}
	if n := requests.lookups().total(); n != 5 {
		t.Errorf("%g reads of clients", n)
	}
	if n := added.of("gates").total(); n != 1 {
		t.Errorf("%g of Gates", n)
	}
}

func TestNextTransitionFollowsPeriod(t *testing.T) {
	const lead = 7 * time.Second
	start := time.Date(2026, 11, 25, 18, 14, 0, 0, time.UTC)
	for passed := time.Duration(0); passed < time.Minute; passed += 136 * time.Millisecond {
		for byCron, within := range map[bool]time.Duration{false: time.Second, true: time.Minute + time.Second} {
			now := start.Add(passed)
			f := &fleet{cron: byCron}
			due, period := f.next(now, true, lead)
			f.from = due
			end, longer := f.next(now, false, lead)
			if due.Before(now.Add(lead)) || due.After(now.Add(lead+within)) || !due.Equal(due.Truncate(time.Second)) {
				t.Errorf("due at %s, now is %s", due, now)
			}
			if byCron {
				ticks(t, now, due, end, period, longer)
			} else if period["from"] != due.Format(time.RFC3339) || longer["from"] != period["from"] || longer["until"] != end.Format(time.RFC3339) {
				t.Errorf("due at %s and %s by %v and %v", due, end, period, longer)
			}
		}
	}
}

// ticks checks two periods with the same cron expression. Only the second one also has an end.
func ticks(t *testing.T, now, due, end time.Time, period, longer map[string]any) {
	t.Helper()
	schedule, err := cron.ParseStandard(fmt.Sprint(period["schedule"]))
	if err != nil {
		t.Fatal(err)
	}
	if tick := schedule.Next(now); !tick.Equal(due) {
		t.Errorf("due at %s, the cron ticks at %s", due, tick)
	}
	if length, err := time.ParseDuration(fmt.Sprint(longer["duration"])); err != nil || !due.Add(length).Equal(end) || length < time.Minute {
		t.Errorf("due at %s, it ends after %s: %v", end, length, err)
	}
}

func TestWaveIsOverOnceAllTargetsArrived(t *testing.T) {
	o := &observer{}
	none, one := o.expect(nil, true), o.expect([]client.ObjectKey{{Namespace: "a", Name: "b"}}, false)
	if !none.isOver() || one.isOver() {
		t.Fatalf("over without targets: %t, before its target arrived: %t", none.isOver(), one.isOver())
	}
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	if o.target(watch.Event{Type: watch.Modified, Object: obj}); !one.isOver() || len(one.arrivals) != 1 || len(o.waves) != 0 {
		t.Errorf("over once its target has arrived: %t, %d arrivals, %d waves left", one.isOver(), len(one.arrivals), len(o.waves))
	}
}

func TestProcessStartHasFractionOfSecond(t *testing.T) {
	now := time.Unix(1700000100, 250_000_000)
	got, err := cutFromBoot("cpu  1 2 3\nbtime 1700000000\nprocesses 4\n", "99.50 180.00\n", now)
	if err != nil || got != 750*time.Millisecond {
		t.Errorf("got %s: %v", got, err)
	}
	for _, none := range [][2]string{{"cpu  1 2 3\n", "99.50 180.00\n"}, {"btime 1700000000\n", ""}} {
		if _, err := cutFromBoot(none[0], none[1], now); err == nil {
			t.Errorf("no error from %q", none)
		}
	}
}

func TestTargetsBelongToOneGateOfTheirNamespace(t *testing.T) {
	f := &fleet{}
	for i := range 12 {
		f.gates = append(f.gates, client.ObjectKey{Namespace: namespaceOf("apps", i%3), Name: fmt.Sprint("gate-", i)})
	}
	for i := range 120 {
		f.targets = append(f.targets, client.ObjectKey{Namespace: namespaceOf("apps", i%3), Name: fmt.Sprint("app-", i)})
	}
	governed, seen := f.governed(), map[client.ObjectKey]bool{}
	for _, gate := range f.gates {
		targets := governed(gate)
		if len(targets) != 10 {
			t.Errorf("%s governs %d targets", gate, len(targets))
		}
		for _, target := range targets {
			if target.Namespace != gate.Namespace || seen[target] {
				t.Errorf("%s is also governed by %s", target, gate)
			}
			seen[target] = true
		}
	}
	if len(seen) != len(f.targets) {
		t.Errorf("%d targets are governed", len(seen))
	}
}

// The bare client is a valid baseline only if it sends the same writes as the controller.
func TestYardstickSendsSamePatchesInOrder(t *testing.T) {
	gate, key := client.ObjectKey{Namespace: "apps", Name: "all"}, client.ObjectKey{Namespace: "apps", Name: "app"}
	held, free := newKustomization(key), newKustomization(key)
	held.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: "apps/all"})
	conditions := []any{map[string]any{"type": "Approved", "status": "False"}}
	held.Object["status"] = map[string]any{"conditions": conditions}
	free.SetResourceVersion("4711")
	f := &fleet{gates: []client.ObjectKey{gate}, targets: []client.ObjectKey{key}}
	c := newCopied(f)
	of := func(obj *unstructured.Unstructured) map[client.ObjectKey]*unstructured.Unstructured {
		return map[client.ObjectKey]*unstructured.Unstructured{key: obj}
	}
	for closed, obj := range map[bool]*unstructured.Unstructured{true: held, false: free} {
		c.objects[closed] = of(obj)
		c.gates[closed] = map[client.ObjectKey]*v1alpha1.Gate{gate: {}}
		c.writes[closed] = calls{{"APPLY", "kustomizations", ""}: 1, {"PATCH", "kustomizations", "status"}: 1, {"PATCH", "gates", "status"}: 4, {"POST", "events", ""}: 3}
	}
	closing := c.work(of(free), f.governed(), true)[0]
	want := []patch{
		{types.ApplyPatchType, "", map[string]any{
			"apiVersion": kustomizeVersion, "kind": kustomization, "spec": map[string]any{"suspend": true},
			"annotations": map[string]any{v1alpha1.HeldByAnnotation: "apps/all"},
		}},
		{types.MergePatchType, "status", map[string]any{"status": map[string]any{"conditions": conditions}}},
	}
	if got := closing.targets[0]; !reflect.DeepEqual(got.patches, want) || got.version != "4711" {
		t.Errorf("closing: %+v", got)
	}
	if n := len(closing.before) + len(closing.after); n != 4 || len(closing.before) == 0 || len(closing.after) == 0 {
		t.Errorf("%d patches of the Gate before its targets, %d after them", len(closing.before), len(closing.after))
	}
	var involved []string
	for _, about := range closing.involved() {
		involved = append(involved, about.Kind+" "+about.Namespace+"/"+about.Name)
	}
	if !slices.Equal(involved, []string{"Kustomization apps/app", "Gate apps/all", "Gate apps/all"}) {
		t.Errorf("events about %v", involved)
	}
	opening := c.work(of(held), f.governed(), false)[0].targets[0].patches
	if len(opening) != 2 || opening[1].subresource != "status" || opening[0].kind != types.ApplyPatchType || opening[0].body["spec"] != nil {
		t.Errorf("opening: %+v", opening)
	}
}
