package ui

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Subscription is a calendar that users can subscribe to.
type Subscription struct {
	// Name is the name of the CalendarFeed, and Path is the path at which it is served.
	Name, Path string
}

// SubscriptionsTo returns the served calendars that show a Gate, sorted by name.
func SubscriptionsTo(g *v1alpha1.Gate, calendars []v1alpha1.CalendarFeed) (found []Subscription) {
	for i := range calendars {
		c := &calendars[i]
		named := slices.ContainsFunc(c.Spec.GateRefs, func(ref v1alpha1.GateReference) bool { return ref.Name == g.Name })
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector.Kubernetes()) // an invalid selector selects nothing
		selected := err == nil && selector.Matches(labels.Set(g.Labels))
		if c.Namespace == g.Namespace && c.Status.CalendarPath != "" && (named || selected) {
			found = append(found, Subscription{c.Name, c.Status.CalendarPath})
		}
	}
	slices.SortFunc(found, func(a, b Subscription) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
