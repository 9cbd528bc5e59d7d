package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// GatedSourceKind is the kind of a GatedSource.
	GatedSourceKind = "GatedSource"

	// MaxSeen is the number of entries that status.seen keeps.
	MaxSeen = 50

	// MaxPromotions is the number of entries that status.promotions keeps.
	MaxPromotions = 20

	// gatedSuffix is the suffix of the default name of a pinned source.
	gatedSuffix = "-gated"
)

// DeletionPolicy determines what happens to the pinned source when its
// GatedSource is deleted.
// +kubebuilder:validation:Enum=Orphan;Delete
type DeletionPolicy string

const (
	// DeletionPolicyOrphan keeps the pinned source.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
	// DeletionPolicyDelete deletes the pinned source as well.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// GatedSourceSpec determines which source is pinned, and when the pin moves.
// +kubebuilder:validation:XValidation:rule="!has(self.pinnedName) || self.pinnedName != self.sourceRef.name",message="the pinned source needs another name than the source in sourceRef"
type GatedSourceSpec struct {
	// SourceRef names the source that is followed, in the same namespace. Its kind
	// cannot be changed.
	// +required
	SourceRef PinnableReference `json:"sourceRef"`

	// PinnedName is the name of the pinned source, which has the kind of the
	// followed source. Kustomizations and HelmReleases refer to the pinned source.
	// An existing source of that name that does not belong to this GatedSource is
	// never changed. Defaults to the name of the GatedSource with the suffix
	// -gated.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="pinnedName must be the name of a source, such as apps-gated: lower case letters, digits, dashes and dots"
	// +optional
	PinnedName string `json:"pinnedName,omitempty"`

	// Approvals states how many different people must approve a revision before
	// the pin moves to it. If omitted, or with required: 0, the pin moves to the
	// newest revision. Either way it moves only while all Gates that govern the
	// GatedSource are open; if there are none, at once.
	// +optional
	Approvals *ApprovalRule `json:"approvals,omitempty"`

	// Revision to pin, as source-controller writes it, such as
	// main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11 or 6.5.1. It needs no
	// approval, and the pin moves to it while all Gates are open. It must be an
	// observed revision, unless nothing is pinned yet and the source is not
	// suspended. If omitted, approvals decides.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\S+$')",message="revision must be as source-controller writes it, such as main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11 or 6.5.1, without spaces"
	// +optional
	Revision string `json:"revision,omitempty"`

	// DeletionPolicy determines what happens to the pinned source when the
	// GatedSource is deleted: Orphan keeps it, Delete deletes it. Defaults to
	// Orphan.
	// +kubebuilder:default=Orphan
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Suspend stops the reconciliation of this GatedSource: nothing is promoted,
	// and the pinned revision stays. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// PinnableReference names a source that can be pinned.
// +kubebuilder:validation:XValidation:rule="self.kind != 'Bucket'",message="a Bucket cannot be pinned: it keeps no revision but the newest"
// +kubebuilder:validation:XValidation:rule="self.kind in ['Bucket', 'GitRepository', 'OCIRepository', 'HelmChart']",message="kind must be GitRepository, OCIRepository or HelmChart"
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="the kind cannot be changed: create another GatedSource"
type PinnableReference struct {
	// Kind of the source: GitRepository, OCIRepository or HelmChart.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the source.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of a source, such as apps: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`
}

// SeenRevision is a revision that the source had.
type SeenRevision struct {
	// Revision as source-controller writes it.
	Revision string `json:"revision"`

	// RecordedAt is when the controller first observed the revision.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// Pin has the revision and the spec of a pinned source.
type Pin struct {
	// Revision that is pinned, as source-controller writes it.
	Revision string `json:"revision"`

	// Digest of the spec of the followed source, without its ref.
	Digest string `json:"digest"`

	// Spec of the pinned source.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`

	// Reason of the pin: GateOpened, RevisionApproved, PinnedInSpec or Adopted.
	Reason string `json:"reason"`

	// At is when the controller decided to pin the revision.
	At metav1.Time `json:"at"`
}

// RevisionApproval is one person's approval of a revision.
type RevisionApproval struct {
	// Revision that was approved.
	Revision string `json:"revision"`

	// ApprovedBy is the name of the approver, as the API server stamped it.
	ApprovedBy string `json:"approvedBy"`

	// Message is the reason that the approver gave.
	// +optional
	Message string `json:"message,omitempty"`

	// RecordedAt is when the controller recorded the approval.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// Promotion is a move of the pin.
type Promotion struct {
	// Revision that was promoted.
	Revision string `json:"revision"`

	// From is the revision that was pinned before. Missing if there was none.
	// +optional
	From string `json:"from,omitempty"`

	// At is when the pin moved.
	At metav1.Time `json:"at"`

	// Reason of the promotion: GateOpened, RevisionApproved, PinnedInSpec or
	// Adopted.
	Reason string `json:"reason"`

	// Approvals lists the approvals of the revision. Missing unless the reason is
	// RevisionApproved.
	// +listType=atomic
	// +optional
	Approvals []RevisionApproval `json:"approvals,omitempty"`
}

// GatedSourceStatus is the observed state of a GatedSource.
type GatedSourceStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the GatedSource that the
	// controller reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Pinned is the revision and the spec of the pinned source. Missing before the
	// first promotion.
	// +optional
	Pinned *Pin `json:"pinned,omitempty"`

	// Latest is the newest revision of the followed source.
	// +optional
	Latest *SeenRevision `json:"latest,omitempty"`

	// Pending is the revision that waits for Gates or approvals. Missing if no
	// revision waits.
	// +optional
	Pending *SeenRevision `json:"pending,omitempty"`

	// Waiting is the number of revisions that are newer than the pinned one, at
	// most 50.
	// +optional
	Waiting int32 `json:"waiting"`

	// WaitingSince is when the first of these revisions was observed, or when the
	// spec of the source changed. Missing if nothing waits.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`

	// Seen lists the last observed revisions of the source, newest first, at most
	// 51. Only these and the promoted revisions can be approved.
	// +kubebuilder:validation:MaxItems=51
	// +listType=atomic
	// +optional
	Seen []SeenRevision `json:"seen,omitempty"`

	// Digest of the spec of the followed source, without its ref.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Round is the number of promotions and of changes of the spec of the source.
	// An approval counts only in the round in which it was given.
	// +optional
	Round int64 `json:"round"`

	// Approvals lists the approvals of this round, oldest first, at most 100.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Approvals []RevisionApproval `json:"approvals,omitempty"`

	// Promoting is the next value of pinned. The controller records it before it
	// writes the pinned source, and removes it afterwards.
	// +optional
	Promoting *Pin `json:"promoting,omitempty"`

	// Promotions lists the last 20 promotions, newest first.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Promotions []Promotion `json:"promotions,omitempty"`

	// Conditions of the GatedSource: Approved, Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GatedSource keeps a copy of a source that is pinned to one revision, and
// moves it to another one while its Gates are open.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gtsrc,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Pinned",type="string",JSONPath=".status.pinned.revision"
// +kubebuilder:printcolumn:name="Latest",type="string",JSONPath=".status.latest.revision"
// +kubebuilder:printcolumn:name="Waiting",type="integer",JSONPath=".status.waiting"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Suspended",type="boolean",priority=1,JSONPath=".spec.suspend"
// +kubebuilder:validation:XValidation:rule="has(self.spec.pinnedName) || size(self.metadata.name) <= 247",message="the name of the pinned source would be too long: give it one in spec.pinnedName"
// +kubebuilder:validation:XValidation:rule="has(self.spec.pinnedName) || self.spec.sourceRef.name != self.metadata.name + '-gated'",message="the source in sourceRef would be pinned in its own place: give the pinned source another name in spec.pinnedName"
type GatedSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec GatedSourceSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status GatedSourceStatus `json:"status,omitzero"`
}

// GatedSourceList is a list of GatedSources.
// +kubebuilder:object:root=true
type GatedSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatedSource `json:"items"`
}

// GetConditions returns the conditions of the GatedSource.
func (in *GatedSource) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the GatedSource.
func (in *GatedSource) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// PinnedName returns the name of the pinned source.
func (in *GatedSource) PinnedName() string { return cmp.Or(in.Spec.PinnedName, in.Name+gatedSuffix) }

// RequiredApprovals returns how many people must approve a revision.
func (in *GatedSource) RequiredApprovals() int { return in.Spec.Approvals.required() }
