package v1alpha1

// GateApprovals specifies which changes need the approval of other users. At
// least one of openRequests and exceptions must be set.
// +kubebuilder:validation:XValidation:rule="has(self.openRequests) || has(self.exceptions)",message="approvals must have openRequests or exceptions: write openRequests: {required: 1}, or remove approvals"
type GateApprovals struct {
	// openRequests is the rule for open requests of users and webhooks. The
	// requester cannot approve the request. If omitted, open requests need no
	// approval.
	// +optional
	OpenRequests *ApprovalRule `json:"openRequests,omitempty"`

	// exceptions is the rule for GateExceptions. The users who created an
	// exception or changed its spec cannot approve it. A change of its spec voids
	// all approvals. An exception that has only closePeriods needs no approval.
	// Defaults to openRequests, so that an exception cannot bypass that rule.
	// +optional
	Exceptions *ApprovalRule `json:"exceptions,omitempty"`
}

// ApprovalRule specifies how many users must approve.
type ApprovalRule struct {
	// required is the number of different users who must approve, from 0 to 10.
	// With 0, no approval is needed. A value above 0 needs config/policies:
	// without them, the controller cannot verify the names of users and counts no
	// approval.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +required
	Required int32 `json:"required"`
}

// required returns the required number of approvals, 0 for a nil rule.
func (in *ApprovalRule) required() int {
	if in == nil {
		return 0
	}
	return int(in.Required)
}
