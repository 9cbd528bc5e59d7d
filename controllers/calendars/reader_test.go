package calendars

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/configmap"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// largeConfigMaps is a reader that returns ConfigMaps of the largest size: a daily event in the entry ics, and padding in the same entry
// and in another one.
type largeConfigMaps struct {
	client.Reader
	padding, gets int
}

func (m *largeConfigMaps) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	m.gets++
	into, _ := obj.(*corev1.ConfigMap)
	*into = *m.configMap(key)
	return nil
}

func (m *largeConfigMaps) configMap(key types.NamespacedName) *corev1.ConfigMap {
	text := "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nSUMMARY:Day of " + key.Name + "\nDTSTART:20261101T000000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY\nEND:VEVENT\n" +
		strings.Repeat("X-PADDING:"+strings.Repeat("x", 54)+"\n", m.padding/65) + "END:VCALENDAR\n"
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: "1"},
		Data:       map[string]string{"ics": text, "junk": strings.Repeat("x", 1<<20-len(text))},
	}
}

// largeConfigMap is the watch of one of these ConfigMaps.
type largeConfigMap struct{ kept *corev1.ConfigMap }

func (w largeConfigMap) Get() (*corev1.ConfigMap, bool) { return w.kept, true }
func (largeConfigMap) Stop()                            {}

// gateWithManyCalendars returns a Gate with as many periods as validation accepts, each of which refers to another ConfigMap.
func gateWithManyCalendars(name string) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, UID: types.UID(name)}}
	for i := range 200 {
		p := v1alpha1.Period{Name: fmt.Sprint("p", i), Calendar: &v1alpha1.CalendarReference{
			ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: fmt.Sprintf("%s-%03d", name, i), Key: "ics"},
		}}
		if i < 100 {
			g.Spec.OpenPeriods = append(g.Spec.OpenPeriods, p)
		} else {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, v1alpha1.ClosePeriod{Period: p})
		}
	}
	return g
}

// mostRetained is how many MiB the calendars of all Gates retain at most, according to the guide.
const mostRetained = 50

// slowConfigMaps is a reader that sends each name that is read to started, and then waits until proceed is closed.
type slowConfigMaps struct {
	largeConfigMaps
	started chan string
	proceed chan struct{}
}

func (s *slowConfigMaps) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s.started <- key.Name
	<-s.proceed
	return s.largeConfigMaps.Get(ctx, key, obj, opts...)
}

// A Gate stops using a calendar while its ConfigMap is read for another Gate.
func TestReadOfConfigMapDelaysNoOtherGate(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	reader := &slowConfigMaps{started: make(chan string, 1), proceed: make(chan struct{})}
	r := &Reader{APIReader: reader}
	using := func(gate, category string) *v1alpha1.Gate {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: gate, UID: types.UID(gate)}}
		g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "p", Calendar: &v1alpha1.CalendarReference{
			ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "shared", Key: "ics"}, Categories: []string{category},
		}}}
		return g
	}
	if r.IsCached(using("first", "a"), now) {
		t.Error("a calendar is cached before it was read")
	}
	read := make(chan error)
	go func() {
		_, err := r.For(t.Context(), using("second", "b"), now)
		read <- err
	}()
	<-reader.started
	done := make(chan struct{})
	go func() {
		r.Forget("first")
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("eviction of a Gate waits for the read of a ConfigMap")
	}
	close(reader.proceed)
	if err := <-read; err != nil {
		t.Error(err)
	}
	<-done
}

func TestCalendarsForManyGatesUseLittleMemory(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc >> 20)
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, padding := range map[string]int{"junk in other entries": 0, "texts of the largest size": 1<<20 - 1000, "many that fit": 60_000} {
		t.Run(name, func(t *testing.T) {
			reader, before := &largeConfigMaps{padding: padding}, heap()
			r := &Reader{Queues: &wokenGates{}, APIReader: reader, Watches: func(key types.NamespacedName, _ func()) configMapWatch {
				return largeConfigMap{configmap.Metadata(reader.configMap(key))}
			}}
			for i := range 6 {
				g := gateWithManyCalendars(fmt.Sprint("g", i))
				found, err := r.For(t.Context(), g, now)
				if err != nil {
					t.Fatal(err)
				}
				over := 0
				for _, c := range found {
					if errors.Is(c.Err, timetable.ErrOverBudget) {
						over++
					}
				}
				if len(found) != 200 || over < 200-16 {
					t.Errorf("%d of %d calendars are over the budget", over, len(found))
				}
				gets := reader.gets
				if _, err := r.For(t.Context(), g, now); err != nil || reader.gets != gets {
					t.Errorf("%d more requests for the same versions, %v", reader.gets-gets, err)
				}
			}
			if len(r.Followed) != 6*16 {
				t.Errorf("%d ConfigMaps are followed", len(r.Followed))
			}
			if got := heap() - before; got > mostRetained {
				t.Errorf("%d MiB are retained", got)
			}
			for name, f := range r.Followed {
				for key := range f.Read {
					if !r.budget.has(key) {
						t.Errorf("%s: a calendar that does not count is in memory", name)
					}
				}
			}
			runtime.KeepAlive(r)
		})
	}
}
