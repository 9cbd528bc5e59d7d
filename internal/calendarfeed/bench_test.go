package calendarfeed

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// BenchmarkLargest computes a calendar of 365 days: as the baseline that of a Gate with one window each day, and that of the largest Gate,
// with as many exceptions as can take effect, whose periods begin and end every two minutes. No calendar may take more than 2s.
func BenchmarkLargest(b *testing.B) {
	year := func(c *v1alpha1.CalendarFeed) { c.Spec.Days = 365 }
	for name, all := range map[string][]client.Object{"nights": {gateOf("web")}, "largest": largest()} {
		b.Run("calendar/"+name, func(b *testing.B) {
			r, _ := serving(b, year, all...)
			e, _ := r.Table.Find(r.load("production"))
			c, err := r.Table.Source.read(b.Context(), e)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := r.write(b.Context(), c, e, testNow.Truncate(24*time.Hour)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// largest returns the largest Gate and its exceptions.
func largest() (all []client.Object) {
	cron := func(schedule string, n int) (all []v1alpha1.Period) {
		for i := range n {
			all = append(all, v1alpha1.Period{Name: fmt.Sprintf("p%d", i), Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Minute}})
		}
		return all
	}
	all = append(all, gateOf("web", func(g *v1alpha1.Gate) { g.Spec.OpenPeriods = cron("*/2 * * * *", v1alpha1.MaxPeriods) }))
	for i := range v1alpha1.MaxEffectiveExceptions {
		all = append(all, &v1alpha1.GateException{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: fmt.Sprintf("x%d", i)},
			Spec: v1alpha1.GateExceptionSpec{
				GateRef: v1alpha1.GateReference{Name: "web"}, TimeZone: "UTC", LeadTime: &v1alpha1.Duration{Duration: time.Hour},
				ValidFrom: metav1.NewTime(testNow.Add(-time.Hour)), ValidUntil: metav1.NewTime(testNow.AddDate(0, 0, 80)), ClosePeriods: cron("1-59/2 * * * *", v1alpha1.MaxPeriods),
			},
		})
	}
	return all
}
