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

	// MaxSeen is the maximum number of entries in status.seen.
	MaxSeen = 50

	// MaxHeldBy is the maximum number of entries in status.heldBy.
	MaxHeldBy = 32

	// MaxPromotions is the maximum number of entries in status.promotions.
	MaxPromotions = 20

	// gatedSuffix is the suffix of the default name of a pinned source.
	gatedSuffix = "-gated"
)

// DeletionPolicy determines whether the pinned source is deleted when its
// GatedSource is deleted.
// +kubebuilder:validation:Enum=Orphan;Delete
type DeletionPolicy string

const (
	// DeletionPolicyOrphan keeps the pinned source.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
	// DeletionPolicyDelete deletes the pinned source.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// GatedSourceSpec specifies the followed source, the pinned source, and the
// revision to pin.
// +kubebuilder:validation:XValidation:rule="!has(self.pinnedName) || self.pinnedName != self.sourceRef.name",message="pinnedName must differ from sourceRef.name"
type GatedSourceSpec struct {
	// sourceRef refers to the followed source, in the same namespace. Its kind is
	// immutable.
	// +required
	SourceRef PinnableReference `json:"sourceRef"`

	// pinnedName is the name of the pinned source, which has the same kind as the
	// followed source. Kustomizations and HelmReleases must refer to the pinned
	// source. If a source with this name exists and does not belong to this
	// GatedSource, it is not changed. Defaults to the name of the GatedSource with
	// the suffix -gated.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="pinnedName must be the name of a source, such as apps-gated: lower case letters, digits, dashes and dots"
	// +optional
	PinnedName string `json:"pinnedName,omitempty"`

	// approvals specifies how many users must approve a revision before it is
	// pinned. If omitted, or with required: 0, the newest revision is pinned. The
	// pin moves only while all Gates that govern the GatedSource are open. If
	// there are none, it moves immediately.
	// +optional
	Approvals *ApprovalRule `json:"approvals,omitempty"`

	// revision is the revision to pin, in the format of source-controller, such as
	// main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11 or 6.5.1. It needs no
	// approval, and is pinned while all Gates are open. It must be in status.seen
	// or status.promotions, unless nothing is pinned yet and the source is not
	// suspended. If omitted, the revision to pin depends on approvals.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\S+$')",message="revision must have the format of source-controller, such as main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11 or 6.5.1, without spaces"
	// +optional
	Revision string `json:"revision,omitempty"`

	// deletionPolicy determines whether the pinned source is deleted when the
	// GatedSource is deleted: Orphan keeps it, Delete deletes it. Defaults to
	// Orphan.
	// +kubebuilder:default=Orphan
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// suspend stops the reconciliation of the GatedSource. The pin does not move,
	// and changes of the pinned source are not corrected. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// PinnableReference names a source that can be pinned.
// +kubebuilder:validation:XValidation:rule="self.kind != 'Bucket'",message="a Bucket cannot be pinned: it has only the newest revision"
// +kubebuilder:validation:XValidation:rule="self.kind in ['Bucket', 'GitRepository', 'OCIRepository', 'HelmChart']",message="kind must be GitRepository, OCIRepository or HelmChart"
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="the kind cannot be changed: create another GatedSource"
type PinnableReference struct {
	// kind is the kind of the source: GitRepository, OCIRepository or HelmChart.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// name is the name of the source.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of a source, such as apps: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`
}

// SeenRevision is an observed revision of the followed source.
type SeenRevision struct {
	// revision is the revision, in the format of source-controller.
	Revision string `json:"revision"`

	// recordedAt is the time when the controller observed the revision.
	RecordedAt metav1.Time `json:"recordedAt"`

	// skipped is true if the revision was observed before the pin moved in a
	// rollback. Without spec.approvals, it is not promoted. The next promotion
	// that is not a rollback removes it. Defaults to false.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
}

// Pin has the revision and the spec of a pinned source.
type Pin struct {
	// revision is the pinned revision, in the format of source-controller.
	Revision string `json:"revision"`

	// digest is the digest of the spec of the followed source, without its ref.
	Digest string `json:"digest"`

	// spec is the spec of the pinned source.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`

	// reason is the reason of the promotion: GateOpened, RevisionApproved,
	// PinnedInSpec, RolledBack, InitialReconciliation or Adopted.
	Reason string `json:"reason"`

	// at is the time when the controller decided to pin the revision.
	At metav1.Time `json:"at"`
}

// RevisionApproval is the approval of a revision by one user.
type RevisionApproval struct {
	// revision is the approved revision.
	Revision string `json:"revision"`

	// approvedBy is the name of the approver, as stamped by the API server.
	ApprovedBy string `json:"approvedBy"`

	// message is the reason that the approver gave, cut to 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`

	// recordedAt is the time when the controller recorded the approval.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// Promotion records a move of the pin.
type Promotion struct {
	// revision is the promoted revision.
	Revision string `json:"revision"`

	// from is the previously pinned revision. Missing if there was none.
	// +optional
	From string `json:"from,omitempty"`

	// at is the time when the pin moved.
	At metav1.Time `json:"at"`

	// reason is the reason of the promotion: GateOpened, RevisionApproved,
	// PinnedInSpec, RolledBack, InitialReconciliation or Adopted.
	Reason string `json:"reason"`

	// digest is the digest of the spec of the followed source, without its ref.
	// Missing if an older release of the controller wrote the entry.
	// +optional
	Digest string `json:"digest,omitempty"`

	// requestedBy is the name of the requester of a rollback. Missing unless the
	// reason is RolledBack.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// message is the reason that the requester of a rollback gave, cut to 512
	// bytes.
	// +optional
	Message string `json:"message,omitempty"`

	// approvals lists the approvals of the revision. Missing unless the reason is
	// RevisionApproved.
	// +listType=atomic
	// +optional
	Approvals []RevisionApproval `json:"approvals,omitempty"`
}

// Rollback records a handled request for a rollback.
type Rollback struct {
	// requestedAt is the time in the request. Only later requests count.
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// handledAt is the time when the controller granted or refused the request.
	HandledAt metav1.MicroTime `json:"handledAt"`

	// revision is the requested revision.
	Revision string `json:"revision"`

	// from is the revision that was pinned at handledAt. Missing if there was
	// none.
	// +optional
	From string `json:"from,omitempty"`

	// requestedBy is the name of the requester.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// message is the reason that the requester gave, cut to 512 bytes.
	// +optional
	Message string `json:"message,omitempty"`

	// gates lists the Gates that were checked at admission, separated by commas,
	// or * for more than 8. Missing if no Gate was closed.
	// +optional
	Gates string `json:"gates,omitempty"`

	// refused is the reason why the controller refused the request. Missing if it
	// granted the request.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// GatedSourceStatus is the observed state of a GatedSource.
type GatedSourceStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// pinned has the revision and the spec of the pinned source. Missing before
	// the first promotion.
	// +optional
	Pinned *Pin `json:"pinned,omitempty"`

	// latest is the newest revision of the followed source.
	// +optional
	Latest *SeenRevision `json:"latest,omitempty"`

	// pending is the revision that waits for Gates or approvals. Missing if no
	// revision waits.
	// +optional
	Pending *SeenRevision `json:"pending,omitempty"`

	// waiting is the number of observed revisions that are newer than the pinned
	// one, at most 50.
	// +optional
	Waiting int32 `json:"waiting"`

	// waitingSince is the time when the first of these revisions was observed, or
	// when the spec of the followed source changed. Missing if no revision waits.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`

	// seen lists the observed revisions of the followed source, newest first, at
	// most 50. Only these revisions and those in promotions can be approved.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Seen []SeenRevision `json:"seen,omitempty"`

	// digest is the digest of the spec of the followed source, without its ref.
	// +optional
	Digest string `json:"digest,omitempty"`

	// round is incremented with each promotion and with each change of the spec of
	// the followed source. An approval counts only in the round in which it was
	// given.
	// +optional
	Round int64 `json:"round"`

	// approvals lists the approvals in this round, oldest first, at most 100.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Approvals []RevisionApproval `json:"approvals,omitempty"`

	// promoting is the next value of pinned. The controller sets it before it
	// writes the pinned source, and removes it after the write.
	// +optional
	Promoting *Pin `json:"promoting,omitempty"`

	// promotions lists the last 20 promotions, newest first.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Promotions []Promotion `json:"promotions,omitempty"`

	// heldBy lists the Gates that keep the pin in place as namespace/name, sorted,
	// at most 32. Missing if all Gates are open.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	HeldBy []string `json:"heldBy,omitempty"`

	// rollback records the last handled request for a rollback. Missing if there
	// was none.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// conditions of the GatedSource: Approved, Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GatedSource maintains a copy of a source that is pinned to one revision. It
// moves the pin to another revision only while its Gates are open.
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
// +kubebuilder:validation:XValidation:rule="has(self.spec.pinnedName) || size(self.metadata.name) <= 247",message="the default name of the pinned source would be too long: set a shorter name in spec.pinnedName"
// +kubebuilder:validation:XValidation:rule="has(self.spec.pinnedName) || self.spec.sourceRef.name != self.metadata.name + '-gated'",message="the pinned source would have the same name as the source in sourceRef: set another name in spec.pinnedName"
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

// RequiredApprovals returns the number of approvals that a revision needs.
func (in *GatedSource) RequiredApprovals() int { return in.Spec.Approvals.required() }
