package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// CalendarFeedKind is the kind of a CalendarFeed.
	CalendarFeedKind = "CalendarFeed"

	// CalendarPath is how the path of every calendar begins. It ends with .ics.
	CalendarPath = "/calendar/"

	// DefaultCalendarDays applies if a CalendarFeed has no spec.days.
	DefaultCalendarDays = 90
)

// CalendarFeedSpec selects the Gates of a calendar, and its readers.
// +kubebuilder:validation:XValidation:rule="has(self.gateRefs) != has(self.selector)",message="exactly one of gateRefs and selector must be set"
type CalendarFeedSpec struct {
	// Interval is how often the Secret is read again even if nothing has changed.
	// At least 1s, such as 1m. Defaults to 10m. A token that is removed from the
	// Secret can work for that long.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// SecretRef names the Secret of the readers, in the same namespace. The path
	// of the calendar is derived from its key token. A second token in the key
	// previousToken gives a second path that also works.
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 253 && self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretRef.name must be the name of a Secret, such as webhook-token: lower case letters, digits, dashes and dots"
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`

	// GateRefs name the Gates of the calendar, in the same namespace. From 1 to
	// 100. Exactly one of gateRefs and selector must be set.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	GateRefs []GateReference `json:"gateRefs,omitempty"`

	// Selector selects the Gates of the calendar by their labels, in the same
	// namespace. An empty selector selects all. If it selects more than 100 Gates,
	// the calendar has the first 100 by name, and a note about that. Exactly one
	// of gateRefs and selector must be set.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// State selects what the calendar shows: the times when Gates are opened, or
	// those when they are closed. If omitted, both. A Gate whose state cannot be
	// determined is always shown with both.
	// +optional
	State State `json:"state,omitempty"`

	// Days is the number of days that the calendar covers, from 1 to 365,
	// beginning with the current day. Defaults to 90.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=365
	// +kubebuilder:default=90
	// +optional
	Days int32 `json:"days,omitempty"`

	// Suspend makes the path of the calendar return 503, so that readers keep
	// their last copy. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CalendarFeedStatus is the observed state of a CalendarFeed.
type CalendarFeedStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the calendar that the
	// controller reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CalendarPath is the secret path of the calendar: /calendar/, the SHA-256 of
	// the token, the name, the namespace and /calendar, and .ics. Empty while the
	// Secret has no token.
	// +optional
	CalendarPath string `json:"calendarPath,omitempty"`

	// Conditions of the calendar: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CalendarFeed shows the plans of Gates as a calendar that people subscribe
// to.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gtcal,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Days",type="integer",JSONPath=".spec.days"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Suspended",type="boolean",priority=1,JSONPath=".spec.suspend"
type CalendarFeed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec CalendarFeedSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status CalendarFeedStatus `json:"status,omitzero"`
}

// CalendarFeedList is a list of CalendarFeeds.
// +kubebuilder:object:root=true
type CalendarFeedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CalendarFeed `json:"items"`
}

// GetConditions returns the conditions of the calendar.
func (in *CalendarFeed) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the calendar.
func (in *CalendarFeed) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// SetLastHandledReconcileRequest notes the last request to reconcile.
func (in *CalendarFeed) SetLastHandledReconcileRequest(token string) {
	in.Status.SetLastHandledReconcileRequest(token)
}

// GetPath returns status.calendarPath.
func (in *CalendarFeed) GetPath() string { return in.Status.CalendarPath }

// SetPath sets status.calendarPath.
func (in *CalendarFeed) SetPath(path string) { in.Status.CalendarPath = path }

// SetObservedGeneration sets status.observedGeneration.
func (in *CalendarFeed) SetObservedGeneration(generation int64) {
	in.Status.ObservedGeneration = generation
}

// GetCalendarPath returns the path of the calendar for a token. The path of a
// GateReceiver with the same token and name cannot be derived from it.
func (in *CalendarFeed) GetCalendarPath(token string) string {
	return CalendarPath + digestOf(token, in.Name, in.Namespace, "/calendar") + ".ics"
}

// GetInterval returns spec.interval, or its default if there is none.
func (in *CalendarFeed) GetInterval() time.Duration {
	return in.Spec.Interval.Or(DefaultReceiverInterval)
}

// GetDays returns spec.days, or its default if there are none.
func (in *CalendarFeed) GetDays() int {
	if in.Spec.Days <= 0 {
		return DefaultCalendarDays
	}
	return int(in.Spec.Days)
}
