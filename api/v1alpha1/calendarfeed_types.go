package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// CalendarFeedKind is the kind of a CalendarFeed.
	CalendarFeedKind = "CalendarFeed"

	// CalendarPath is the prefix of the paths of all calendars. The paths have the
	// suffix .ics.
	CalendarPath = "/calendar/"

	// DefaultCalendarDays is the default of spec.days of a CalendarFeed.
	DefaultCalendarDays = 90
)

// CalendarFeedSpec specifies the Gates and the content of a calendar, and the
// token in its path. Exactly one of gateRefs and selector must be set.
// +kubebuilder:validation:XValidation:rule="has(self.gateRefs) != has(self.selector)",message="exactly one of gateRefs and selector must be set"
type CalendarFeedSpec struct {
	// interval is the interval at which the controller reads the Secret again. At
	// least 1s, such as 1m. Defaults to 10m. A token that is removed from the
	// Secret may still work for this time.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// secretRef refers to a Secret in the same namespace. The path of the calendar
	// is derived from the token in its key token. If the Secret also has the key
	// previousToken, the calendar has a second path.
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 253 && self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretRef.name must be the name of a Secret, such as webhook-token: lower case letters, digits, dashes and dots"
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`

	// gateRefs lists the Gates in the calendar, in the same namespace. From 1 to
	// 100. Exactly one of gateRefs and selector must be set.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	GateRefs []GateReference `json:"gateRefs,omitempty"`

	// selector selects the Gates in the calendar by label, in the same namespace.
	// An empty selector selects all Gates. If it selects more than 100, the
	// calendar has the first 100 by name, and a note about the missing ones.
	// Exactly one of gateRefs and selector must be set.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// state limits the calendar to the times when Gates are opened, or when they
	// are closed. If omitted, the calendar has both. Gates whose state cannot be
	// determined are always included.
	// +optional
	State State `json:"state,omitempty"`

	// days is the number of days in the calendar, from 1 to 365, starting with the
	// current day. Defaults to 90.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=365
	// +kubebuilder:default=90
	// +optional
	Days int32 `json:"days,omitempty"`

	// suspend stops serving the calendar: the controller responds with 503, so
	// that clients keep their last copy. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CalendarFeedStatus is the observed state of a CalendarFeed.
type CalendarFeedStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// calendarPath is the secret path of the calendar. It is /calendar/ followed
	// by a hexadecimal SHA-256 and .ics. The SHA-256 is that of the token, the
	// name, the namespace and the text /calendar. Empty if the Secret has no
	// token.
	// +optional
	CalendarPath string `json:"calendarPath,omitempty"`

	// conditions of the CalendarFeed: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CalendarFeed serves the schedules of Gates as a calendar to which calendar
// apps can subscribe.
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

// GetConditions returns the conditions of the CalendarFeed.
func (in *CalendarFeed) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the CalendarFeed.
func (in *CalendarFeed) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// SetLastHandledReconcileRequest records the last handled reconcile request.
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
// GateReceiver with the same token, name and namespace cannot be derived from
// it.
func (in *CalendarFeed) GetCalendarPath(token string) string {
	return CalendarPath + digestOf(token, in.Name, in.Namespace, "/calendar") + ".ics"
}

// GetInterval returns spec.interval, or its default if it is not set.
func (in *CalendarFeed) GetInterval() time.Duration {
	return in.Spec.Interval.Or(DefaultReceiverInterval)
}

// GetDays returns spec.days, or its default if it is not set.
func (in *CalendarFeed) GetDays() int {
	if in.Spec.Days <= 0 {
		return DefaultCalendarDays
	}
	return int(in.Spec.Days)
}
