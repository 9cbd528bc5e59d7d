package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// GateKind is the kind of a Gate.
	GateKind = "Gate"

	// DefaultInterval applies if a Gate has no spec.interval.
	DefaultInterval = time.Minute

	// MaxPeriods is the number of open and close periods that a Gate can have
	// together. It bounds the time of a decision.
	MaxPeriods = 100

	// MinWindow is the shortest spec.window, and the shortest window of a request.
	MinWindow = time.Second
	// MaxWindow is the longest spec.window, and the longest window of a request.
	MaxWindow = 366 * 24 * time.Hour

	// MaxAnnounced is the number of entries that status.memory.announced keeps.
	MaxAnnounced = 64

	// MaxFailures is the number of entries that status.targets.failures keeps.
	MaxFailures = 10

	// AnyName as the name of a target matches all objects of its kind, and as its
	// namespace all namespaces.
	AnyName = "*"
)

// Mode determines how strictly a Gate holds its targets.
// +kubebuilder:validation:Enum=Enforce;Lenient;Audit
type Mode string

const (
	// ModeEnforce holds the targets while the Gate is closed. A target that a user
	// resumes is held again at once.
	ModeEnforce Mode = "Enforce"
	// ModeLenient holds the targets when the Gate closes. A target that a user
	// resumes is not held again until the Gate next closes.
	ModeLenient Mode = "Lenient"
	// ModeAudit holds nothing: the Gate decides, and reports the targets that it
	// would hold.
	ModeAudit Mode = "Audit"
)

// State of a Gate.
// +kubebuilder:validation:Enum=closed;opened
type State string

const (
	// StateClosed means that the targets of the Gate are held.
	StateClosed State = "closed"
	// StateOpened means that the targets of the Gate are not held.
	StateOpened State = "opened"
)

// GateSpec determines when the targets of a Gate may be reconciled.
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || size(self.openPeriods) == 0 || self.default == 'closed'",message="openPeriods need default: closed; with default: opened use closePeriods"
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter",message="notAfter must be later than notBefore"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? size(self.openPeriods) : 0) + (has(self.closePeriods) ? size(self.closePeriods) : 0) <= 100",message="a gate can have at most 100 open and close periods together"
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || !has(self.closePeriods) || [self.openPeriods.map(w, w.name)].all(names, !self.closePeriods.exists(c, c.name in names))",message="an open period and a close period must not have the same name"
// +kubebuilder:validation:XValidation:rule="(has(self.targets) ? self.targets.map(t, (has(t.matchLabels) ? size(t.matchLabels) : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? size(t.namespaceSelector.matchLabels) : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) : 0)).sum() : 0) + (has(self.release) && has(self.release.waves) ? self.release.waves.map(w, (has(w.matchLabels) ? size(w.matchLabels) : 0) + (has(w.matchExpressions) ? w.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0)).sum() : 0) <= 1024",message="the selectors in targets and release.waves can have at most 1,024 labels, expressions and values together: use fewer targets, or label their objects and select those by one label"
// +kubebuilder:validation:XValidation:rule="(has(self.targets) ? self.targets.map(t, size(t.kind) + size(t.name) + (has(t.apiVersion) ? size(t.apiVersion) : 0) + (has(t.__namespace__) ? size(t.__namespace__) : 0) + (has(t.matchLabels) ? t.matchLabels.map(k, size(k)).sum() : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, size(e.key)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? t.namespaceSelector.matchLabels.map(k, size(k)).sum() : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, size(e.key)).sum() : 0) : 0)).sum() : 0) + (has(self.release) && has(self.release.waves) ? self.release.waves.map(w, (has(w.matchLabels) ? w.matchLabels.map(k, size(k)).sum() : 0) + (has(w.matchExpressions) ? w.matchExpressions.map(e, size(e.key)).sum() : 0)).sum() : 0) <= 65536",message="the references and the keys of labels in targets and release.waves can have at most 65,536 characters together: use fewer targets, or label their objects and select those by one label"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? self.openPeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? size(p.calendar.categories) : 0).sum() : 0) + (has(self.closePeriods) ? self.closePeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? size(p.calendar.categories) : 0).sum() : 0) <= 1024 && (has(self.openPeriods) ? self.openPeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? p.calendar.categories.map(c, size(c)).sum() : 0).sum() : 0) + (has(self.closePeriods) ? self.closePeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? p.calendar.categories.map(c, size(c)).sum() : 0).sum() : 0) <= 16384",message="the calendars of a gate can have at most 1,024 categories with 16,384 characters together: use fewer, or omit categories to count all events"
type GateSpec struct {
	// Interval is how often the controller checks that every target has the
	// desired state, even if nothing has changed. At least 10s, such as 5m.
	// Defaults to 1m.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('10s')",message="interval must be a duration of at least 10s, such as 1m"
	// +kubebuilder:default="1m"
	// +optional
	Interval Duration `json:"interval,omitzero"`

	// Default is the state of the Gate while nothing else decides: closed or
	// opened. A Gate that is closed by default opens in open periods and on open
	// requests. One that is opened by default closes in close periods and on close
	// requests.
	// +required
	Default State `json:"default"`

	// Window is how long an open request lasts at most, from 1s to 8784h (366
	// days), such as 1h. A close request without a duration lasts that long, too;
	// one with a duration lasts for that. If omitted, a request without a duration
	// lasts until the opposite request.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8784h')",message="window must be a duration from 1s to 8784h (366 days), such as 1h"
	// +optional
	Window *Duration `json:"window,omitempty"`

	// TimeZone is the time zone of all periods that have none of their own: a name
	// of the IANA database, such as Europe/Oslo. Defaults to UTC.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`

	// NotBefore keeps the Gate closed before this time, unless an open request is
	// in force. A time in RFC 3339, such as 2026-12-01T00:00:00Z.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// NotAfter keeps the Gate closed from this time on, unless an open request is
	// in force. A time in RFC 3339, later than notBefore.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// OpenPeriods are the periods in which a Gate with default: closed is open. It
	// is open while at least one of them applies. Only for default: closed; with
	// default: opened, use closePeriods. At most 100 together with closePeriods,
	// all with different names.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	OpenPeriods []Period `json:"openPeriods,omitempty"`

	// ClosePeriods are the periods in which the Gate is closed. They win over
	// openPeriods. At most 100 together with openPeriods, all with different
	// names.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	ClosePeriods []ClosePeriod `json:"closePeriods,omitempty"`

	// Targets are the objects that the Gate governs: they are held while it is
	// closed and released when it opens. At most 256 entries. An object can also
	// name its Gates itself, in the annotation gating.toolkit.fluxcd.io/gates.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Targets []TargetReference `json:"targets,omitempty"`

	// Mode is Enforce, Lenient or Audit. Enforce holds the targets, and holds a
	// target again at once if a user resumes it. Lenient holds a resumed target
	// again only when the Gate next closes. Audit holds nothing: it counts the
	// targets in status.targets.wouldHold and emits events. A change to Audit
	// releases the held targets. Defaults to Enforce.
	// +kubebuilder:default=Enforce
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// Release limits how fast targets are released when the Gate opens. If
	// omitted, all are released at once.
	// +optional
	Release *ReleasePolicy `json:"release,omitempty"`

	// Certificates determines how a closed Gate treats certificates that are about
	// to expire: Certificates of cert-manager and certificates of Machines. If
	// omitted, the defaults of its fields apply.
	// +optional
	Certificates *CertificatePolicy `json:"certificates,omitempty"`

	// Approvals states how many other people must approve open requests and
	// GateExceptions. Close requests and the periods of the Gate need no approval.
	// If omitted, nothing needs approval.
	// +optional
	Approvals *GateApprovals `json:"approvals,omitempty"`

	// DependsOn lists objects that must be ready for the Gate to open. While one
	// of them is not ready or does not exist, neither an open period nor an open
	// request opens the Gate. At most 16, each once.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(w, self.exists_one(v, v.kind == w.kind && v.name == w.name && (has(v.__namespace__) ? has(w.__namespace__) && v.__namespace__ == w.__namespace__ : !has(w.__namespace__))))",message="an object can be listed only once"
	// +kubebuilder:validation:XValidation:rule="self.map(d, has(d.readyExpr) ? size(d.readyExpr) : 0).sum() <= 16384",message="all readyExpr of a gate can have at most 16,384 characters together: use shorter expressions"
	// +listType=atomic
	// +optional
	DependsOn []DependencyReference `json:"dependsOn,omitempty"`

	// NotifyBefore is how long before the Gate opens or closes an event announces
	// it. Each change of state is announced once at each of these times, such as
	// [24h, 1h]. At most 5, each once and from 1m to 720h (30 days). If omitted,
	// nothing is announced.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 30 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be a duration from 1m to 720h (30 days), such as 24h"
	// +kubebuilder:validation:XValidation:rule="!self.all(d, d.matches('^(([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+|[0-9]{1,4}[dw])$')) || self.all(d, self.exists_one(e, (e.matches('[dw]$') ? int(e.substring(0, size(e) - 1)) * (e.endsWith('w') ? 7 : 1) * 86400000 : duration(e).getMilliseconds()) == (d.matches('[dw]$') ? int(d.substring(0, size(d) - 1)) * (d.endsWith('w') ? 7 : 1) * 86400000 : duration(d).getMilliseconds())))",message="a duration can be listed only once"
	// +listType=atomic
	// +optional
	NotifyBefore []Duration `json:"notifyBefore,omitempty"`

	// Suspend stops the reconciliation of this Gate. Targets that it holds stay
	// held. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// TargetReference names objects that a Gate governs.
// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) == 0 || self.name == '*'",message="matchLabels needs name: '*'"
// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) == 0 || self.name == '*'",message="matchExpressions needs name: '*'"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || !has(self.__namespace__)",message="a target has a namespace or a namespaceSelector, not both"
type TargetReference struct {
	// APIVersion of the targets, such as kustomize.toolkit.fluxcd.io/v1. Only its
	// group counts, and it is needed only if the kind alone is ambiguous.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$')",message="apiVersion must be a group and a version, such as kustomize.toolkit.fluxcd.io/v1"
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the targets, such as Kustomization, HelmRelease or Certificate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, such as Kustomization: it begins with a capital letter and has only letters and digits"
	// +required
	Kind string `json:"kind"`

	// Name of the target, or * for all objects of the kind in the namespace.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be * or the name of an object, such as apps: lower case letters, digits, dashes and dots; to select objects, use name: '*' with matchLabels"
	// +required
	Name string `json:"name"`

	// Namespace of the targets, or * for all namespaces except that of the
	// controller. Defaults to the namespace of the Gate. Another namespace needs
	// --no-cross-namespace-refs=false.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be * or the name of a namespace, such as shop; omit it for the namespace of the Gate, and use namespaceSelector to select namespaces"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// NamespaceSelector selects the namespaces of the targets by their labels,
	// such as matchLabels: {team: shop}. It must not select the namespace of the
	// controller, and it must not be empty: for all namespaces, use namespace:
	// "*". Not together with namespace. Needs --no-cross-namespace-refs=false.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty namespaceSelector selects all namespaces: write matchLabels or matchExpressions, or use namespace: '*'"
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// MatchLabels are labels that the targets must have, all of them, such as
	// tier: critical. Only for name *. At most 32.
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// MatchExpressions are further conditions on the labels of the targets, such
	// as {key: tier, operator: NotIn, values: [test]}. All must be true. Only for
	// name *. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// SpansNamespaces returns whether the reference is not about one namespace.
func (in *TargetReference) SpansNamespaces() bool {
	return in.Namespace == AnyName || in.NamespaceSelector != nil
}

// Selector returns the label selector of the reference.
func (in *TargetReference) Selector() *metav1.LabelSelector {
	return selectorOf(in.MatchLabels, in.MatchExpressions)
}

// Transition is a change of a Gate's state.
type Transition struct {
	// At is when the state changes.
	At metav1.Time `json:"at"`

	// State of the Gate after the change: closed or opened.
	State State `json:"state"`

	// Reason of that state, such as OpenPeriod: one of the reasons of the
	// condition Opened.
	Reason string `json:"reason"`

	// Period is the name of the period that causes the state. Missing if no period
	// does.
	// +optional
	Period string `json:"period,omitempty"`

	// Exception is the name of the GateException that causes the state. Missing if
	// no exception does.
	// +optional
	Exception string `json:"exception,omitempty"`
}

// DecidedBy returns the name of the period or exception that decides, empty if
// none does.
func (in *Transition) DecidedBy() string { return cmp.Or(in.Period, in.Exception) }

// Announcement is a change of a Gate's state that has been announced.
type Announcement struct {
	// At is when the state will change.
	At metav1.Time `json:"at"`

	// State of the Gate after that change: closed or opened.
	State State `json:"state"`

	// Before is the shortest duration of spec.notifyBefore at which the change has
	// been announced. Longer ones are no longer announced.
	Before Duration `json:"before"`
}

// TargetCounts counts the targets by outcome.
type TargetCounts struct {
	// Total is the number of objects that the Gate governs.
	Total int64 `json:"total"`

	// Held is the number of objects that the Gate holds.
	Held int64 `json:"held"`

	// WouldHold is the number of objects that the Gate would hold if spec.mode
	// were Enforce. Only with mode Audit.
	// +optional
	WouldHold int64 `json:"wouldHold,omitempty"`

	// SuspendedByOthers is the number of objects that a user, Git or another
	// controller has suspended. The Gate neither holds nor resumes them.
	SuspendedByOthers int64 `json:"suspendedByOthers"`

	// Exempt is the number of Certificates that may be renewed although the Gate
	// is closed. These are Certificates that are not issued yet, are being issued,
	// expire soon, would not be renewed before their safety margin, cannot be
	// held, or are activated instead.
	// +optional
	Exempt int64 `json:"exempt,omitempty"`

	// Pending is the number of objects that are about to be held or released,
	// without those that wait for their turn in a release with perMinute.
	// +optional
	Pending int64 `json:"pending,omitempty"`

	// Failed is the number of objects and of target references that do not have
	// the desired state.
	Failed int64 `json:"failed"`
}

// TargetStatus is the outcome of the targets.
type TargetStatus struct {
	TargetCounts `json:",inline"`

	// Failures lists the targets that do not have the desired state, newest first,
	// at most 10. The number of all of them is failed.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Failures []TargetFailure `json:"failures,omitempty"`
}

// TargetFailures returns status.targets.failures.
func (in *GateStatus) TargetFailures() []TargetFailure {
	if in.Targets == nil {
		return nil
	}
	return in.Targets.Failures
}

// TargetFailure is a target that does not have the desired state.
type TargetFailure struct {
	// Kind of the target.
	Kind string `json:"kind"`

	// Namespace of the target.
	Namespace string `json:"namespace"`

	// Name of the target, or * as in the reference.
	Name string `json:"name"`

	// Reason of the failure in CamelCase, such as CRDNotFound.
	Reason string `json:"reason"`

	// Message describes the failure.
	Message string `json:"message"`

	// RecordedAt is when the controller first observed the failure.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// GateStatus is the observed state of a Gate.
type GateStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the Gate that the controller
	// reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// RequestedAt is the time of the request in force, or of the last one that
	// was.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// ResetToDefaultAt is when that request ends. It equals requestedAt if the
	// request only returned the Gate to its scheduled state. Missing if the
	// request lasts until the opposite one.
	// +optional
	ResetToDefaultAt *metav1.Time `json:"resetToDefaultAt,omitempty"`

	// Requests lists the accepted requests in this order: ended, in force, waiting
	// for approval, planned. At most 64: only the last ended ones are kept. A
	// close request in force is dropped if a later one by the same user lasts at
	// least as long.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Requests []AcceptedRequest `json:"requests,omitempty"`

	// LastTransition is the change to the current state. Its reason, period and
	// exception are the current ones. If the Gate changed its state and changed it
	// back between two reconciliations, its time is that of the second one.
	// +optional
	LastTransition *Transition `json:"lastTransition,omitempty"`

	// NextTransition is the next scheduled change of the state. Missing if none is
	// scheduled.
	// +optional
	NextTransition *Transition `json:"nextTransition,omitempty"`

	// History lists the last changes of the state, requests and passes, newest
	// first. At most 50, and fewer if their texts are long. docs/operate/audit.md
	// describes how to keep more.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	// Targets counts the objects that the Gate governs, by their state, and lists
	// failures.
	// +optional
	Targets *TargetStatus `json:"targets,omitempty"`

	// Release is the progress of the release of the targets. It is kept after the
	// Gate has closed. Only with spec.release.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// Exceptions lists the GateExceptions of this Gate: current ones, future ones,
	// and the last expired ones. At most 30; expired ones are dropped first, and
	// current ones only if there are too many.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	Exceptions []ExceptionRecord `json:"exceptions,omitempty"`

	// Overlays lists the states of targets that differ from the state of the Gate
	// now or at the next change, because of GateExceptions with spec.targets. At
	// most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Overlays []Overlay `json:"overlays,omitempty"`

	// Dependencies are the observed states of the objects in spec.dependsOn, in
	// the same order. At most 16.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Dependencies []DependencyStatus `json:"dependencies,omitempty"`

	// Memory is the internal state of the controller. It is not API: a release may
	// change it.
	// +optional
	Memory GateMemory `json:"memory,omitzero"`

	// Conditions of the Gate: Opened, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateMemory is the internal state of the controller about a Gate.
type GateMemory struct {
	// HandledRequests has the last values of the annotations for open and close
	// requests that the controller handled.
	// +listType=map
	// +listMapKey=action
	// +optional
	HandledRequests []HandledRequest `json:"handledRequests,omitempty"`

	// LastHandledLine is the number of the last line of the annotation
	// gating.toolkit.fluxcd.io/unhandled that the controller handled.
	// +optional
	LastHandledLine int64 `json:"lastHandledLine,omitempty"`

	// Announced lists the future changes of the state that the controller has
	// announced, as spec.notifyBefore requires, soonest first. At most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Announced []Announcement `json:"announced,omitempty"`
}

// Gate determines when the objects that it governs may be reconciled.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gt,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Opened",type="string",JSONPath=".status.conditions[?(@.type==\"Opened\")].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Opened\")].reason"
// +kubebuilder:printcolumn:name="Next",type="string",JSONPath=".status.nextTransition.at"
// +kubebuilder:printcolumn:name="Held",type="integer",JSONPath=".status.targets.held"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Suspended",type="boolean",priority=1,JSONPath=".spec.suspend"
// +kubebuilder:printcolumn:name="Mode",type="string",priority=1,JSONPath=".spec.mode"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Opened\")].message"
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

// Audits returns whether the mode of the Gate is Audit.
func (in *Gate) Audits() bool { return in.Spec.Mode == ModeAudit }

// LatestRequest returns the request in the status that was accepted last, nil if
// there is none.
func (in *Gate) LatestRequest() (latest *AcceptedRequest) {
	for i := range in.Status.Requests {
		if r := &in.Status.Requests[i]; latest == nil || !r.AcceptedAt.Before(&latest.AcceptedAt) {
			latest = r
		}
	}
	return latest
}

// RequiredApprovals returns how many people must approve an open request.
func (in *Gate) RequiredApprovals() int {
	if in.Spec.Approvals == nil {
		return 0
	}
	return in.Spec.Approvals.OpenRequests.required()
}

// RequiredExceptionApprovals returns how many people must approve a
// GateException with more than closePeriods.
func (in *Gate) RequiredExceptionApprovals() int {
	if a := in.Spec.Approvals; a != nil && a.Exceptions != nil {
		return a.Exceptions.required()
	}
	return in.RequiredApprovals()
}

// GetInterval returns spec.interval, or its default if there is none.
func (in *Gate) GetInterval() time.Duration { return in.Spec.Interval.Or(DefaultInterval) }
