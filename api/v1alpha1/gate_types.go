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

	// DefaultInterval is the default of spec.interval of a Gate.
	DefaultInterval = time.Minute

	// MaxPeriods is the maximum number of open and close periods of a Gate or a
	// GateException together. It bounds the time of a decision.
	MaxPeriods = 100

	// MinWindow is the minimum of spec.window and of the duration of a request.
	MinWindow = time.Second
	// MaxWindow is the maximum of spec.window and of the duration of a request.
	MaxWindow = 366 * 24 * time.Hour

	// MaxAnnounced is the maximum number of entries in status.memory.announced.
	MaxAnnounced = 64

	// MaxFailures is the maximum number of entries in status.targets.failures.
	MaxFailures = 10

	// AnyName matches all objects of a kind if it is the name of a target, and all
	// namespaces if it is the namespace of a target.
	AnyName = "*"
)

// Mode determines how a Gate holds its targets.
// +kubebuilder:validation:Enum=Enforce;Lenient;Audit
type Mode string

const (
	// ModeEnforce holds the targets while the Gate is closed. A target that a user
	// resumes is held again immediately.
	ModeEnforce Mode = "Enforce"
	// ModeLenient holds the targets when the Gate closes. A target that a user
	// resumes stays released until the Gate closes the next time.
	ModeLenient Mode = "Lenient"
	// ModeAudit holds nothing. The Gate only reports which targets it would hold.
	ModeAudit Mode = "Audit"
)

// InitialReconciliation determines whether a closed Gate holds targets that have
// never been reconciled successfully.
// +kubebuilder:validation:Enum=Hold;Allow
type InitialReconciliation string

const (
	// InitialHold holds all targets while the Gate is closed.
	InitialHold InitialReconciliation = "Hold"
	// InitialAllow does not hold a target before its first success, for at most
	// MaxInitial after its creation.
	InitialAllow InitialReconciliation = "Allow"

	// MaxInitial is the time after the creation of a target in which it is not
	// held before its first success.
	MaxInitial = time.Hour
)

// State is the state of a Gate.
// +kubebuilder:validation:Enum=closed;opened
type State string

const (
	// StateClosed means that the Gate holds its targets.
	StateClosed State = "closed"
	// StateOpened means that the Gate does not hold its targets.
	StateOpened State = "opened"
)

// GateSpec specifies the targets of a Gate, and when they may be reconciled.
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || size(self.openPeriods) == 0 || self.default == 'closed'",message="openPeriods need default: closed; with default: opened use closePeriods"
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter",message="notAfter must be later than notBefore"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? size(self.openPeriods) : 0) + (has(self.closePeriods) ? size(self.closePeriods) : 0) <= 100",message="a gate can have at most 100 open and close periods together"
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || !has(self.closePeriods) || [self.openPeriods.map(w, w.name)].all(names, !self.closePeriods.exists(c, c.name in names))",message="an open period and a close period must not have the same name"
// +kubebuilder:validation:XValidation:rule="(has(self.targets) ? self.targets.map(t, (has(t.matchLabels) ? size(t.matchLabels) : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? size(t.namespaceSelector.matchLabels) : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) : 0)).sum() : 0) + (has(self.release) && has(self.release.waves) ? self.release.waves.map(w, (has(w.matchLabels) ? size(w.matchLabels) : 0) + (has(w.matchExpressions) ? w.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0)).sum() : 0) <= 1024",message="the selectors in targets and release.waves can have at most 1,024 labels, expressions and values together: use fewer targets, or select their objects by a common label"
// +kubebuilder:validation:XValidation:rule="(has(self.targets) ? self.targets.map(t, size(t.kind) + size(t.name) + (has(t.apiVersion) ? size(t.apiVersion) : 0) + (has(t.__namespace__) ? size(t.__namespace__) : 0) + (has(t.matchLabels) ? t.matchLabels.map(k, size(k)).sum() : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, size(e.key)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? t.namespaceSelector.matchLabels.map(k, size(k)).sum() : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, size(e.key)).sum() : 0) : 0)).sum() : 0) + (has(self.release) && has(self.release.waves) ? self.release.waves.map(w, (has(w.matchLabels) ? w.matchLabels.map(k, size(k)).sum() : 0) + (has(w.matchExpressions) ? w.matchExpressions.map(e, size(e.key)).sum() : 0)).sum() : 0) <= 65536",message="the references and the keys of labels in targets and release.waves can have at most 65,536 characters together: use fewer targets, or select their objects by a common label"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? self.openPeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? size(p.calendar.categories) : 0).sum() : 0) + (has(self.closePeriods) ? self.closePeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? size(p.calendar.categories) : 0).sum() : 0) <= 1024 && (has(self.openPeriods) ? self.openPeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? p.calendar.categories.map(c, size(c)).sum() : 0).sum() : 0) + (has(self.closePeriods) ? self.closePeriods.map(p, has(p.calendar) && has(p.calendar.categories) ? p.calendar.categories.map(c, size(c)).sum() : 0).sum() : 0) <= 16384",message="the calendars of a gate can have at most 1,024 categories with 16,384 characters together: use fewer, or omit categories to include all events"
type GateSpec struct {
	// interval is the interval at which the controller checks that all targets
	// have the desired state, even if nothing has changed. At least 10s, such as
	// 5m. Defaults to 1m.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('10s')",message="interval must be a duration of at least 10s, such as 1m"
	// +kubebuilder:default="1m"
	// +optional
	Interval Duration `json:"interval,omitzero"`

	// default is the state of the Gate if no request, period or exception
	// determines it: closed or opened. With closed, the Gate opens in openPeriods
	// and on open requests. With opened, it closes in closePeriods and on close
	// requests.
	// +required
	Default State `json:"default"`

	// window is the maximum duration of an open request, and the duration of a
	// close request without a duration. From 1s to 8784h (366 days), such as 1h.
	// It does not limit a close request that has a duration. If omitted, a request
	// without a duration lasts until a request for the opposite action.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8784h')",message="window must be a duration from 1s to 8784h (366 days), such as 1h"
	// +optional
	Window *Duration `json:"window,omitempty"`

	// timeZone is the time zone of all periods without a time zone of their own.
	// It is a name in the IANA database, such as Europe/Oslo. Defaults to UTC.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`

	// notBefore keeps the Gate closed before this time, unless an open request is
	// in force. A time in RFC 3339, such as 2026-12-01T00:00:00Z.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// notAfter keeps the Gate closed from this time on, unless an open request is
	// in force. A time in RFC 3339, later than notBefore.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// openPeriods lists the periods in which the Gate is open. Only for Gates with
	// default: closed. With default: opened, use closePeriods. At most 100
	// together with closePeriods, all with different names.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	OpenPeriods []Period `json:"openPeriods,omitempty"`

	// closePeriods lists the periods in which the Gate is closed. They take
	// precedence over openPeriods. At most 100 together with openPeriods, all with
	// different names.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	ClosePeriods []ClosePeriod `json:"closePeriods,omitempty"`

	// targets lists the objects that the Gate governs. They are held while the
	// Gate is closed, and released when it opens. At most 256 entries. Objects can
	// also refer to the Gate in the annotation gating.toolkit.fluxcd.io/gates.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Targets []TargetReference `json:"targets,omitempty"`

	// mode is Enforce, Lenient or Audit. With Enforce, a target that a user
	// resumes is held again immediately. With Lenient, it stays released until the
	// Gate closes the next time. With Audit, nothing is held: the Gate counts the
	// targets that it would hold in status.targets.wouldHold, and emits events. If
	// the mode is changed to Audit, the held targets are released. Defaults to
	// Enforce.
	// +kubebuilder:default=Enforce
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// initialReconciliation is Hold or Allow. With Allow, the closed Gate does
	// not hold a target that has never been reconciled successfully, for at most
	// 1h after its creation. New objects then bypass a freeze, including objects
	// that were deleted and created again. A target is not held only if all of
	// its closed Gates allow it. Defaults to Hold.
	// +optional
	InitialReconciliation InitialReconciliation `json:"initialReconciliation,omitempty"`

	// release limits the rate or specifies the order in which targets are released
	// when the Gate opens. If omitted, all targets are released at once.
	// +optional
	Release *ReleasePolicy `json:"release,omitempty"`

	// certificates specifies how the closed Gate handles the certificates of
	// cert-manager Certificates and of Machines that are about to expire. If
	// omitted, the defaults of its fields apply.
	// +optional
	Certificates *CertificatePolicy `json:"certificates,omitempty"`

	// approvals specifies how many users must approve open requests and
	// GateExceptions. Close requests and the periods of the Gate need no approval.
	// If omitted, nothing needs approval.
	// +optional
	Approvals *GateApprovals `json:"approvals,omitempty"`

	// dependsOn lists objects that must be ready for the Gate to be open. While
	// one of them is not ready or does not exist, the Gate is closed, even in an
	// open period or during an open request. At most 16, each only once.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(w, self.exists_one(v, v.kind == w.kind && v.name == w.name && (has(v.__namespace__) ? has(w.__namespace__) && v.__namespace__ == w.__namespace__ : !has(w.__namespace__))))",message="an object can be listed only once"
	// +kubebuilder:validation:XValidation:rule="self.map(d, has(d.readyExpr) ? size(d.readyExpr) : 0).sum() <= 16384",message="the readyExpr fields of a gate can have at most 16,384 characters together: use shorter expressions"
	// +listType=atomic
	// +optional
	DependsOn []DependencyReference `json:"dependsOn,omitempty"`

	// notifyBefore lists how long before a scheduled change of state an event
	// announces it, such as [24h, 1h]. At most 5 durations, all different, each
	// from 1m to 720h (30 days). If omitted, changes are not announced.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 30 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be a duration from 1m to 720h (30 days), such as 24h"
	// +kubebuilder:validation:XValidation:rule="!self.all(d, d.matches('^(([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+|[0-9]{1,4}[dw])$')) || self.all(d, self.exists_one(e, (e.matches('[dw]$') ? int(e.substring(0, size(e) - 1)) * (e.endsWith('w') ? 7 : 1) * 86400000 : duration(e).getMilliseconds()) == (d.matches('[dw]$') ? int(d.substring(0, size(d) - 1)) * (d.endsWith('w') ? 7 : 1) * 86400000 : duration(d).getMilliseconds())))",message="a duration can be listed only once"
	// +listType=atomic
	// +optional
	NotifyBefore []Duration `json:"notifyBefore,omitempty"`

	// suspend stops the reconciliation of the Gate. Held targets stay held.
	// Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// TargetReference refers to objects that a Gate governs.
// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) == 0 || self.name == '*'",message="matchLabels needs name: '*'"
// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) == 0 || self.name == '*'",message="matchExpressions needs name: '*'"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || !has(self.__namespace__)",message="a target has a namespace or a namespaceSelector, not both"
type TargetReference struct {
	// apiVersion is the API version of the targets, such as
	// kustomize.toolkit.fluxcd.io/v1. Only its group is used, and it is required
	// only if several groups have the kind.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$')",message="apiVersion must be a group and a version, such as kustomize.toolkit.fluxcd.io/v1"
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the targets, such as Kustomization, HelmRelease or
	// Certificate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, such as Kustomization: it begins with a capital letter and has only letters and digits"
	// +required
	Kind string `json:"kind"`

	// name is the name of the target, or * for all objects of the kind.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be * or the name of an object, such as apps: lower case letters, digits, dashes and dots; to select objects, use name: '*' with matchLabels"
	// +required
	Name string `json:"name"`

	// namespace is the namespace of the targets, or * for all namespaces except
	// that of the controller. Defaults to the namespace of the Gate. Any other
	// value requires --no-cross-namespace-refs=false.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be * or the name of a namespace, such as shop; omit it for the namespace of the Gate, and use namespaceSelector to select namespaces"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces of the targets by label, such as
	// matchLabels: {team: shop}. It must not be empty, and must not select the
	// namespace of the controller. To select all other namespaces, use namespace:
	// "*". Cannot be combined with namespace. Requires
	// --no-cross-namespace-refs=false.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty namespaceSelector selects all namespaces: write matchLabels or matchExpressions, or use namespace: '*'"
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// matchLabels are labels that the targets must have, such as tier: critical.
	// At most 32. Requires name: "*".
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// matchExpressions are label selector requirements that the targets must meet
	// in addition to matchLabels, such as {key: tier, operator: NotIn, values:
	// [test]}. At most 32. Requires name: "*".
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// SpansNamespaces returns whether the reference can match objects in several
// namespaces.
func (in *TargetReference) SpansNamespaces() bool {
	return in.Namespace == AnyName || in.NamespaceSelector != nil
}

// Selector returns the label selector of the reference.
func (in *TargetReference) Selector() *metav1.LabelSelector {
	return selectorOf(in.MatchLabels, in.MatchExpressions)
}

// Transition is a change of the state of a Gate.
type Transition struct {
	// at is the time of the change.
	At metav1.Time `json:"at"`

	// state is the state after the change: closed or opened.
	State State `json:"state"`

	// reason is the reason of that state, such as OpenPeriod. It is one of the
	// reasons of the condition Opened.
	Reason string `json:"reason"`

	// period is the name of the period that causes the change. Missing if no
	// period does.
	// +optional
	Period string `json:"period,omitempty"`

	// exception is the name of the GateException that causes the change. Missing
	// if no exception does.
	// +optional
	Exception string `json:"exception,omitempty"`
}

// DecidedBy returns the name of the period or exception that causes the
// change, empty if there is none.
func (in *Transition) DecidedBy() string { return cmp.Or(in.Period, in.Exception) }

// Announcement is a scheduled change of the state of a Gate that an event has
// announced.
type Announcement struct {
	// at is the time of the change.
	At metav1.Time `json:"at"`

	// state is the state after the change: closed or opened.
	State State `json:"state"`

	// before is the shortest duration in spec.notifyBefore at which the change has
	// been announced. It is not announced again at longer ones.
	Before Duration `json:"before"`
}

// TargetCounts has the numbers of targets by outcome.
type TargetCounts struct {
	// total is the number of objects that the Gate governs.
	Total int64 `json:"total"`

	// held is the number of objects that the Gate holds.
	Held int64 `json:"held"`

	// wouldHold is the number of objects that the Gate would hold if spec.mode
	// were Enforce. Only with mode Audit.
	// +optional
	WouldHold int64 `json:"wouldHold,omitempty"`

	// suspendedByOthers is the number of objects that a user, Git or another
	// controller has suspended. The Gate neither holds nor resumes them. They are
	// counted only while the Gate is closed.
	SuspendedByOthers int64 `json:"suspendedByOthers"`

	// exempt is the number of objects that are not held although the Gate is
	// closed. These are GatedSources without a waiting revision, and Certificates
	// that are not issued yet, are being issued, expire soon, are not due for
	// renewal before their safety margin, cannot be held, or have the annotation
	// gating.toolkit.fluxcd.io/activateInto.
	// +optional
	Exempt int64 `json:"exempt,omitempty"`

	// pending is the number of objects that are about to be held or released, or
	// that have not been evaluated yet. It does not include objects that wait for
	// their slot or wave in a release.
	// +optional
	Pending int64 `json:"pending,omitempty"`

	// overlaid is the number of objects whose state differs from the state of the
	// Gate because of status.overlays.
	// +optional
	Overlaid int64 `json:"overlaid,omitempty"`

	// failed is the number of objects and of entries in spec.targets that do not
	// have the desired state.
	Failed int64 `json:"failed"`
}

// TargetStatus has the numbers of targets by outcome, and the failures.
type TargetStatus struct {
	TargetCounts `json:",inline"`

	// failures lists the targets that do not have the desired state, newest first,
	// at most 10. failed has the total number.
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

// TargetFailure describes a target that does not have the desired state.
type TargetFailure struct {
	// kind is the kind of the target.
	Kind string `json:"kind"`

	// namespace is the namespace of the target.
	Namespace string `json:"namespace"`

	// name is the name of the target, or * as in the reference.
	Name string `json:"name"`

	// reason is the reason of the failure in CamelCase, such as CRDNotFound.
	Reason string `json:"reason"`

	// message describes the failure.
	Message string `json:"message"`

	// recordedAt is the time when the controller first observed the failure.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// GateStatus is the observed state of a Gate.
type GateStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// requestedAt is the time of the request in force. If no request is in force,
	// it is the time of the last one.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// resetToDefaultAt is the time when the request in requestedAt ends. It equals
	// requestedAt if the request only returned the Gate to its scheduled state
	// early. Missing if the request lasts until a request for the opposite action.
	// +optional
	ResetToDefaultAt *metav1.Time `json:"resetToDefaultAt,omitempty"`

	// requests lists the accepted requests, in this order: ended, in force,
	// waiting for approval, planned. At most 96. Only the last ended ones are
	// kept. A close request in force is dropped if a later one by the same user
	// lasts at least as long.
	// +kubebuilder:validation:MaxItems=96
	// +listType=atomic
	// +optional
	Requests []AcceptedRequest `json:"requests,omitempty"`

	// lastTransition is the change to the current state. Its reason, period and
	// exception are updated if they change later. If the state changed and changed
	// back between two reconciliations, at is the time of the second one.
	// +optional
	LastTransition *Transition `json:"lastTransition,omitempty"`

	// nextTransition is the next scheduled change of state. Missing if no change
	// is known, for example while an object in spec.dependsOn is not ready.
	// +optional
	NextTransition *Transition `json:"nextTransition,omitempty"`

	// history lists the last changes of state, requests and passes, newest first.
	// At most 50, and fewer if their texts are long. To keep more, see
	// docs/operate/audit.md.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	// targets has the numbers of targets by outcome, and the failures.
	// +optional
	Targets *TargetStatus `json:"targets,omitempty"`

	// release is the progress of the release of the targets. It is kept after the
	// Gate closes. Only with spec.release.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// exceptions lists the GateExceptions of the Gate: first those that apply,
	// then others that have not ended, then ended ones. At most 30. If there are
	// more, the last ones in this order are dropped.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	Exceptions []ExceptionRecord `json:"exceptions,omitempty"`

	// overlays lists the targets whose state differs from the state of the Gate,
	// now or at the next change, because of GateExceptions or requests with
	// targets. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Overlays []Overlay `json:"overlays,omitempty"`

	// dependencies lists the observed states of the objects in spec.dependsOn, in
	// the same order. At most 16.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Dependencies []DependencyStatus `json:"dependencies,omitempty"`

	// memory is internal state of the controller. It is not part of the API and
	// may change in any release.
	// +optional
	Memory GateMemory `json:"memory,omitzero"`

	// conditions of the Gate: Opened, Ready, Reconciling, Stalled,
	// HoldsItsOwnSource, ReleaseStopped.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateMemory is internal state of the controller for a Gate.
type GateMemory struct {
	// handledRequests has the last handled values of the annotations for open and
	// close requests, by action.
	// +listType=map
	// +listMapKey=action
	// +optional
	HandledRequests []HandledRequest `json:"handledRequests,omitempty"`

	// lastHandledLine is the number of the last handled line of the annotation
	// gating.toolkit.fluxcd.io/unhandled.
	// +optional
	LastHandledLine int64 `json:"lastHandledLine,omitempty"`

	// announced lists the scheduled changes of state that events have announced
	// because of spec.notifyBefore, soonest first. At most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Announced []Announcement `json:"announced,omitempty"`
}

// Gate determines when its targets may be reconciled. While it is closed, it
// holds them.
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

// LatestRequest returns the last accepted request in the status, nil if there
// is none.
func (in *Gate) LatestRequest() (latest *AcceptedRequest) {
	for i := range in.Status.Requests {
		if r := &in.Status.Requests[i]; latest == nil || !r.AcceptedAt.Before(&latest.AcceptedAt) {
			latest = r
		}
	}
	return latest
}

// RequiredApprovals returns the number of approvals that an open request
// needs.
func (in *Gate) RequiredApprovals() int {
	if in.Spec.Approvals == nil {
		return 0
	}
	return in.Spec.Approvals.OpenRequests.required()
}

// RequiredExceptionApprovals returns the number of approvals that a
// GateException needs, unless it has only closePeriods.
func (in *Gate) RequiredExceptionApprovals() int {
	if a := in.Spec.Approvals; a != nil && a.Exceptions != nil {
		return a.Exceptions.required()
	}
	return in.RequiredApprovals()
}

// GetInterval returns spec.interval, or its default if it is not set.
func (in *Gate) GetInterval() time.Duration { return in.Spec.Interval.Or(DefaultInterval) }
