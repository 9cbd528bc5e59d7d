package v1alpha1

// GateApprovals states which changes of a Gate other people must approve.
// +kubebuilder:validation:XValidation:rule="has(self.openRequests) || has(self.exceptions)",message="approvals must have openRequests or exceptions: write openRequests: {required: 1}, or remove approvals"
type GateApprovals struct {
	// OpenRequests is the rule for open requests, whether they are manual or come
	// from a webhook. An approver must not be the requester. If omitted, an open
	// request counts at once.
	// +optional
	OpenRequests *ApprovalRule `json:"openRequests,omitempty"`

	// Exceptions is the rule for GateExceptions. An approver must not have created
	// the exception or changed its spec, and a change of its spec voids all
	// approvals. An exception that has only closePeriods needs none. Defaults to
	// the rule in openRequests, so that an exception cannot bypass it.
	// +optional
	Exceptions *ApprovalRule `json:"exceptions,omitempty"`
}

// ApprovalRule states how many people must approve something.
type ApprovalRule struct {
	// Required is how many different people must approve, from 0 to 10. 0 means
	// that no approval is needed. A value above 0 needs config/policies: without
	// them, the controller cannot distinguish users and counts no approval.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +required
	Required int32 `json:"required"`
}

// required returns the number of approvals, 0 without a rule.
func (in *ApprovalRule) required() int {
	if in == nil {
		return 0
	}
	return int(in.Required)
}
