package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// BenchmarkOverview renders the first page of 1,000 Gates with ten periods each, and the preview that it needs without caches. A page is
// rendered again after a Gate has changed, or in the next minute. It is the same for viewers with the same permissions.
func BenchmarkOverview(b *testing.B) {
	reader := &fake{gates: many(1000), versioned: true}
	b.Run("preview alone", func(b *testing.B) {
		for b.Loop() {
			set := preview.FromCluster(reader.gates, nil)
			if _, _, err := set.Preview(preview.Range{From: noon, Until: noon.AddDate(0, 0, 14)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, change := range map[string]func(i int){
		"the first page": func(i int) {
			for _, g := range reader.gates {
				g.ResourceVersion = fmt.Sprint(i)
			}
		},
		"a page after a change": func(i int) { reader.gates[i%len(reader.gates)].ResourceVersion = fmt.Sprint("x", i) },
		"the same page":         func(int) {},
	} {
		b.Run(name, func(b *testing.B) {
			handler, size, i := pages(b, reader), 0, 0
			for b.Loop() {
				i++
				change(i)
				size = overviewOf(b, handler)
			}
			b.ReportMetric(float64(size)/1e3, "kB")
		})
	}
}

// overviewOf loads the first page, and returns its size.
func overviewOf(t testing.TB, handler http.Handler) int {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		t.Fatal(recorder.Code, recorder.Body)
	}
	return recorder.Body.Len()
}

// BenchmarkLargest renders the pages of 92 days of one Gate: one with a window each night, as the baseline, and the largest one, with as
// many exceptions as can take effect, whose periods start and end every two minutes. No page may take more than 2s.
func BenchmarkLargest(b *testing.B) {
	for name, reader := range map[string]*fake{"nights": {gates: []*v1alpha1.Gate{gateOf("web")}}, "largest": largest()} {
		web := reader.gates[0].DeepCopy()
		web.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GateKind}
		web.Spec.OpenPeriods = web.Spec.OpenPeriods[1:]
		changed, err := yaml.Marshal(web)
		if err != nil {
			b.Fatal(err)
		}
		upload := func(b *testing.B) *http.Request {
			r := form(b, map[string]string{"manifests": string(changed)})
			r.URL.RawQuery = "days=92"
			return r
		}
		get := func(path string) func(b *testing.B) *http.Request {
			return func(b *testing.B) *http.Request {
				return httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
			}
		}
		for page, request := range map[string]func(b *testing.B) *http.Request{
			"gate": get("/gate/shop/web?days=92"), "month": get("/gate/shop/web/month"), "overview": get("/?days=92"), "what-if": upload,
		} {
			b.Run(page+"/"+name, func(b *testing.B) {
				handler := pages(b, reader)
				for b.Loop() {
					recorder := httptest.NewRecorder()
					if handler.ServeHTTP(recorder, request(b)); recorder.Code != http.StatusOK {
						b.Fatal(recorder.Code, recorder.Body)
					}
				}
			})
		}
	}
}

// largest returns a reader of the largest Gate.
func largest() *fake {
	cron := func(schedule string, n int) (all []v1alpha1.Period) {
		for i := range n {
			all = append(all, v1alpha1.Period{Name: fmt.Sprintf("p%d", i), Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Minute}})
		}
		return all
	}
	reader := &fake{gates: []*v1alpha1.Gate{gateOf("web", func(g *v1alpha1.Gate) {
		g.Spec.OpenPeriods, g.Spec.ClosePeriods = cron("*/2 * * * *", v1alpha1.MaxPeriods/2), nil
		for _, p := range cron("1-59/2 * * * *", v1alpha1.MaxPeriods/2) {
			p.Name = "c" + p.Name
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, v1alpha1.ClosePeriod{Period: p})
		}
	})}}
	for i := range v1alpha1.MaxEffectiveExceptions {
		reader.exceptions = append(reader.exceptions, &v1alpha1.GateException{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("x%d", i)},
			Spec: v1alpha1.GateExceptionSpec{
				GateRef: v1alpha1.GateReference{Name: "web"}, TimeZone: "UTC", LeadTime: &v1alpha1.Duration{Duration: time.Hour},
				ValidFrom: metav1.NewTime(noon.Add(-time.Hour)), ValidUntil: metav1.NewTime(noon.AddDate(0, 0, 80)), ClosePeriods: cron("1-59/2 * * * *", v1alpha1.MaxPeriods),
			},
		})
	}
	return reader
}
