package ui

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Subscription is a calendar to which somebody may subscribe.
type Subscription struct {
	// Name is that of the CalendarFeed, Path where it is served.
	Name, Path string
}

// SubscriptionsTo returns those calendars that show a Gate and are served, by name.
func SubscriptionsTo(g *v1alpha1.Gate, calendars []v1alpha1.CalendarFeed) (found []Subscription) {
	for i := range calendars {
		c := &calendars[i]
		named := slices.ContainsFunc(c.Spec.GateRefs, func(ref v1alpha1.GateReference) bool { return ref.Name == g.Name })
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector.Kubernetes()) // none selects nothing
		selected := err == nil && selector.Matches(labels.Set(g.Labels))
		if c.Namespace == g.Namespace && c.Status.CalendarPath != "" && (named || selected) {
			found = append(found, Subscription{c.Name, c.Status.CalendarPath})
		}
	}
	slices.SortFunc(found, func(a, b Subscription) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
