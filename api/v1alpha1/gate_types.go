package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// GateKind is the kind of a Gate.
	GateKind = "Gate"

	// DefaultInterval is the spec.interval of a Gate that has none.
	DefaultInterval = time.Minute

	// MaxPeriods is the number of windows and close periods that a Gate can have
	// together. It bounds the time of a decision.
	MaxPeriods = 100

	// MaxFailures is the number of entries that status.failures keeps.
	MaxFailures = 10

	// AnyName as the name of a target stands for all objects of its kind.
	AnyName = "*"
)

// State of a Gate.
// +kubebuilder:validation:Enum=closed;opened
type State string

const (
	// StateClosed means that the targets of the Gate are held.
	StateClosed State = "closed"
	// StateOpened means that the targets of the Gate go on as they are.
	StateOpened State = "opened"
)

// ResumePolicy says what happens when somebody resumes a held target.
// +kubebuilder:validation:Enum=Enforce;Respect
type ResumePolicy string

const (
	// ResumePolicyEnforce holds the target again at once.
	ResumePolicyEnforce ResumePolicy = "Enforce"
	// ResumePolicyRespect leaves the target alone until the Gate next closes.
	ResumePolicyRespect ResumePolicy = "Respect"
)

// GateSpec says when the objects that a Gate governs may be reconciled.
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || size(self.windows) == 0 || self.default == 'closed'",message="windows say when a gate that is closed by default is open: they need default: closed; use closePeriods with default: opened"
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter",message="notAfter must be later than notBefore"
// +kubebuilder:validation:XValidation:rule="(has(self.windows) ? size(self.windows) : 0) + (has(self.closePeriods) ? size(self.closePeriods) : 0) <= 100",message="a gate can have at most 100 windows and close periods together"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || !has(self.closePeriods) || [self.windows.map(w, w.name)].all(names, !self.closePeriods.exists(c, c.name in names))",message="a window and a close period must not have the same name"
type GateSpec struct {
	// Interval at which holds are asserted anew even if nothing changed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, such as 1m"
	// +kubebuilder:default="1m"
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`

	// Default is the state of the Gate while nothing else decides: closed or
	// opened.
	// +required
	Default State `json:"default"`

	// Window is how long an open or close request lasts. Omitted, a request
	// lasts until the opposite request.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8784h')",message="window must be a duration from 1s to 8784h (366 days), such as 1h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// TimeZone is the IANA name of the zone of all periods that name none.
	// Defaults to UTC.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`

	// NotBefore is the instant before which the Gate is closed unless an open
	// request is in force.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// NotAfter is the instant from which on the Gate is closed unless an open
	// request is in force. Must be later than notBefore.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// Windows in which a Gate that is closed by default is open.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Windows []Period `json:"windows,omitempty"`

	// ClosePeriods in which the Gate is closed. They win over windows.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	ClosePeriods []ClosePeriod `json:"closePeriods,omitempty"`

	// Targets are the objects that the Gate governs.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Targets []TargetReference `json:"targets,omitempty"`

	// ResumePolicy says what happens when somebody resumes a held target:
	// Enforce holds it again at once, Respect leaves it until the Gate next
	// closes.
	// +kubebuilder:default=Enforce
	// +optional
	ResumePolicy ResumePolicy `json:"resumePolicy,omitempty"`

	// Release says how fast targets are released when the Gate opens. Omitted, all
	// are released at once.
	// +optional
	Release *ReleasePolicy `json:"release,omitempty"`

	// Certificates says what happens to certificates that are about to expire
	// while the Gate is closed.
	// +optional
	Certificates *CertificatePolicy `json:"certificates,omitempty"`

	// Machines says how the certificates of Machines are refreshed while the Gate
	// is open.
	// +optional
	Machines *MachinePolicy `json:"machines,omitempty"`

	// Exceptions says which GateExceptions of this Gate count. Omitted, all do.
	// +optional
	Exceptions *ExceptionPolicy `json:"exceptions,omitempty"`

	// Watch names objects that the Gate follows. While one of them is not ready or
	// does not exist, the Gate is closed, whatever else decides but a close request and
	// a close period with manualOpen: Deny, which close it, too.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(w, self.exists_one(v, v.kind == w.kind && v.name == w.name && (has(v.__namespace__) ? has(w.__namespace__) && v.__namespace__ == w.__namespace__ : !has(w.__namespace__))))",message="an object can be watched only once"
	// +listType=atomic
	// +optional
	Watch []WatchReference `json:"watch,omitempty"`

	// Suspend stops the reconciliation of this Gate. What it holds stays held.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// TargetReference names objects that a Gate governs.
// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) == 0 || self.name == '*'",message="matchLabels needs name: '*'"
type TargetReference struct {
	// APIVersion of the targets. Only its group counts. Needed only if the kind
	// alone is ambiguous.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the targets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the target, or * for all objects of the kind in the namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Namespace of the targets. Defaults to the namespace of the Gate.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// MatchLabels restricts name * to the objects that have all these labels.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// Transition is a change of a Gate's state.
type Transition struct {
	// At is the instant of the change.
	At metav1.Time `json:"at"`

	// State from that instant on.
	State State `json:"state"`

	// Reason of that state, one of those of the condition Opened.
	Reason string `json:"reason"`

	// By is the name of the period or of the GateException that will decide, if one
	// does.
	// +optional
	By string `json:"by,omitempty"`
}

// TargetCounts has the number of targets by what became of them.
type TargetCounts struct {
	// Total number of objects that the Gate governs.
	Total int64 `json:"total"`

	// Held objects: those that the Gate keeps from being reconciled.
	Held int64 `json:"held"`

	// Foreign objects: those that somebody else had suspended. The Gate neither
	// holds nor resumes them.
	Foreign int64 `json:"foreign"`

	// Exempt objects: Certificates that may be renewed although the Gate is closed,
	// because they are not issued yet, are being issued, are about to expire, would not be
	// renewed before their margin, cannot be held, or are activated instead.
	// +optional
	Exempt int64 `json:"exempt,omitempty"`

	// Failed is the number of objects and of target references that are not as
	// the Gate wants them.
	Failed int64 `json:"failed"`
}

// TargetFailure is a target that is not as the Gate wants it.
type TargetFailure struct {
	// Kind of the target.
	Kind string `json:"kind"`

	// Namespace of the target.
	Namespace string `json:"namespace"`

	// Name of the target, or * as in the reference.
	Name string `json:"name"`

	// Reason of the failure in CamelCase.
	Reason string `json:"reason"`

	// Message for people.
	Message string `json:"message"`

	// At is when the failure was first seen.
	At metav1.Time `json:"at"`
}

// GateStatus is the observed state of a Gate.
type GateStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation that was reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// RequestedAt is the time of the request that is in force or was last.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// ResetToDefaultAt is the time at which that request ends. It is the same as
	// requestedAt if the request only brought the Gate back early to what it is
	// by itself, and missing if the request lasts until the opposite one.
	// +optional
	ResetToDefaultAt *metav1.Time `json:"resetToDefaultAt,omitempty"`

	// LastRequest is the request accepted last.
	// +optional
	LastRequest *LastRequest `json:"lastRequest,omitempty"`

	// Requests are the accepted requests that are in force, or that were last, those
	// that they have ended, and those that are planned. Of several closes in force,
	// the one that lasts longest is kept: one of people and one of webhooks.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Requests []AcceptedRequest `json:"requests,omitempty"`

	// HandledRequests is what is remembered of the annotations for open and close
	// requests.
	// +listType=map
	// +listMapKey=action
	// +optional
	HandledRequests []RequestMemory `json:"handledRequests,omitempty"`

	// NextTransition is the next change of state, missing if none is in sight.
	// +optional
	NextTransition *Transition `json:"nextTransition,omitempty"`

	// Targets counts the objects that the Gate governs.
	// +optional
	Targets *TargetCounts `json:"targets,omitempty"`

	// Release is how far the release of the targets is, or how far it came, if
	// spec.release paces it.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// Machines is how far the refresh of the certificates of Machines is, missing
	// if the Gate governs none or has no spec.machines.
	// +optional
	Machines *MachineStatus `json:"machines,omitempty"`

	// Failures are the targets that are not as the Gate wants them, the newest
	// first, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Failures []TargetFailure `json:"failures,omitempty"`

	// Exceptions are the GateExceptions of this Gate: those that apply, those that
	// will, and the last of those that did. At most 10; expired ones make room first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Exceptions []ExceptionRecord `json:"exceptions,omitempty"`

	// Watch is what was seen of the objects of spec.watch, in their order.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Watch []WatchStatus `json:"watch,omitempty"`

	// Conditions of the Gate: Opened, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Gate says when the objects that it governs may be reconciled.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=gt,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Opened",type="string",JSONPath=".status.conditions[?(@.type==\"Opened\")].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Opened\")].reason"
// +kubebuilder:printcolumn:name="Next",type="string",JSONPath=".status.nextTransition.at"
// +kubebuilder:printcolumn:name="Held",type="integer",JSONPath=".status.targets.held"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Opened\")].message"
type Gate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec GateSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status GateStatus `json:"status,omitzero"`
}

// GateList is a list of Gates.
// +kubebuilder:object:root=true
type GateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gate `json:"items"`
}

// GetConditions returns the conditions of the Gate.
func (in *Gate) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the Gate.
func (in *Gate) SetConditions(conditions []metav1.Condition) { in.Status.Conditions = conditions }

// GetInterval returns spec.interval, or its default if there is none.
func (in *Gate) GetInterval() time.Duration {
	if in.Spec.Interval.Duration <= 0 {
		return DefaultInterval
	}
	return in.Spec.Interval.Duration
}
