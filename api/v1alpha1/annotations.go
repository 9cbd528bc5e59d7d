package v1alpha1

const (
	// OpenRequestedAtAnnotation asks a Gate to open at a time in RFC 3339, in
	// the future for a planned release. At most 366 days away. A slash and a duration
	// after the time, as in 2026-12-19T12:00:00Z/30m, make the request last that long,
	// but not longer than spec.window.
	OpenRequestedAtAnnotation = "open.gate.fluxcd.io/requestedAt"

	// OpenReasonAnnotation is free text that says why the Gate is asked to open.
	OpenReasonAnnotation = "open.gate.fluxcd.io/reason"

	// OpenRequestedByAnnotation says who asked a Gate to open. With
	// config/policies the API server stamps it with the name of the caller,
	// whatever the caller sets. Without, it is what the caller claims.
	OpenRequestedByAnnotation = "open.gate.fluxcd.io/requestedBy"

	// OpenReceivedAnnotation is the value of OpenRequestedAtAnnotation that a
	// GateReceiver wrote. The request is that of the receiver in
	// OpenRequestedByAnnotation only while both are the same: who asks by hand may
	// leave the name of the last receiver behind. Only the controller writes it.
	OpenReceivedAnnotation = "open.gate.fluxcd.io/received"

	// CloseRequestedAtAnnotation asks a Gate to close at a time in RFC 3339.
	// At most 366 days away. It can have a duration as OpenRequestedAtAnnotation.
	CloseRequestedAtAnnotation = "close.gate.fluxcd.io/requestedAt"

	// CloseReasonAnnotation is free text that says why the Gate is asked to
	// close.
	CloseReasonAnnotation = "close.gate.fluxcd.io/reason"

	// CloseRequestedByAnnotation says who asked a Gate to close. With
	// config/policies the API server stamps it with the name of the caller,
	// whatever the caller sets. Without, it is what the caller claims.
	CloseRequestedByAnnotation = "close.gate.fluxcd.io/requestedBy"

	// CloseReceivedAnnotation is the value of CloseRequestedAtAnnotation that a
	// GateReceiver wrote, as OpenReceivedAnnotation.
	CloseReceivedAnnotation = "close.gate.fluxcd.io/received"

	// ApproveRequestedAtAnnotation approves a GateException. The value names what the
	// approver has read: a time in RFC 3339, the generation of the exception and its
	// uid, as in
	// 2026-12-19T12:00:00Z,generation=3,uid=6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55. The
	// time decides nothing, it tells approvals apart. If the exception has another
	// generation or uid by then, it approves nothing: config/policies refuses it, and
	// the condition Active says so.
	ApproveRequestedAtAnnotation = "approve.gate.fluxcd.io/requestedAt"

	// ApproveRequestedByAnnotation says who approved a GateException, one in a line:
	// what was approved, as generation=3,uid=..., a blank, and the name of the user. The
	// API server writes it, see config/policies, whatever the caller sets.
	ApproveRequestedByAnnotation = "approve.gate.fluxcd.io/requestedBy"

	// AuthorsAnnotation names all who ever created or changed the spec of a
	// GateException, one in a line. None of them can approve it. The API server writes
	// it, see config/policies, whatever the caller sets.
	AuthorsAnnotation = "approve.gate.fluxcd.io/authors"

	// DeliveriesAnnotation is on a Gate and has the digests of the webhooks that were
	// taken of late, so that none opens twice: at most 256 of each GateReceiver, and 96
	// KiB of all. Only the controller writes it.
	DeliveriesAnnotation = "gating.toolkit.fluxcd.io/deliveries"

	// GatesAnnotation is on an object that names its Gates itself: at most 32,
	// separated by commas, each as name or namespace/name. The namespace defaults to
	// that of the object. The object is held until all of them are open, and while
	// one of them does not exist.
	GatesAnnotation = "gating.toolkit.fluxcd.io/gates"

	// HeldByAnnotation is on a target while it is held: the Gates that hold it
	// as namespace/name, sorted, separated by commas.
	HeldByAnnotation = "gating.toolkit.fluxcd.io/held-by"

	// ActivateIntoAnnotation is on a Certificate and names the Secret of its
	// namespace that the issued certificate is promoted into while the Gates that
	// govern the Certificate are open. The renewal of such a Certificate is not held.
	ActivateIntoAnnotation = "gating.toolkit.fluxcd.io/activate-into"

	// ActivatedAnnotation is on a Secret that a certificate is promoted into: the
	// fingerprint of what was promoted last. The same is not promoted again, so that a
	// person can go back to what was there before.
	ActivatedAnnotation = "gating.toolkit.fluxcd.io/activated"

	// ActivatedFromAnnotation is on the same Secret, and on the one that keeps what was
	// there before: the name of the Certificate.
	ActivatedFromAnnotation = "gating.toolkit.fluxcd.io/activated-from"

	// RefreshAnnotation is on a Machine whose certificates a Gate refreshes: the
	// Gate, when it asked for that, and when the certificates expired then.
	RefreshAnnotation = "gating.toolkit.fluxcd.io/refresh"
)

const (
	// GateFinalizer keeps a Gate under deletion until what it holds is released, and a
	// GateException until its Gate decides without it.
	GateFinalizer = "gating.toolkit.fluxcd.io/finalizer"

	// FieldManager is the field manager of all that the controller applies. A
	// target is held if this manager owns the hold.
	FieldManager = "gating-controller"
)
