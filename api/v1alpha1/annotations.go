package v1alpha1

import "github.com/fluxcd/gating-controller/api"

// The prefixes of the request annotations.
const (
	openPrefix     = "open." + api.RequestDomain + "/"
	closePrefix    = "close." + api.RequestDomain + "/"
	passPrefix     = "pass." + api.RequestDomain + "/"
	proceedPrefix  = "proceed." + api.RequestDomain + "/"
	approvePrefix  = "approve." + api.RequestDomain + "/"
	rollbackPrefix = "rollback." + api.RequestDomain + "/"
)

const (
	// OpenRequestedAtAnnotation requests that a Gate open. The value is a time in
	// RFC 3339, at most 366 days in the past or future, with an optional duration,
	// such as 2026-12-19T12:00:00Z/30m. A time in the future plans the request.
	// The request lasts for the duration or spec.window, whichever is shorter.
	// With the duration 0s, it withdraws the close requests in force. If there are
	// none, it withdraws the planned close requests of the same user.
	//
	// With targets, as in 2026-12-19T12:00:00Z/2h,only=Kustomization/apps, the
	// request is limited to them. The key only can be repeated, up to 16 times, and
	// its value is KIND/NAME, or KIND/NAMESPACE/NAME for another namespace than
	// that of the Gate. The whole value has at most 2048 bytes.
	OpenRequestedAtAnnotation = openPrefix + "requestedAt"

	// OpenReasonAnnotation is free text with the reason for the open request.
	OpenReasonAnnotation = openPrefix + "reason"

	// OpenRequestedByAnnotation is the name of the requester. With
	// config/policies, the API server overwrites it with the name of the
	// authenticated user. Without config/policies, clients can write any name.
	OpenRequestedByAnnotation = openPrefix + "requestedBy"

	// OpenReceivedAnnotation is a copy of the value of OpenRequestedAtAnnotation
	// that a GateReceiver wrote. Only the controller writes it. If the two values
	// differ, a user has written OpenRequestedAtAnnotation since, and a
	// GateReceiver in OpenRequestedByAnnotation is not the requester.
	OpenReceivedAnnotation = openPrefix + "received"

	// OpenEmergencyAnnotation makes an open request take effect without the
	// approvals that spec.approvals requires. Its value must equal that of
	// OpenRequestedAtAnnotation, and the request must have a reason. With
	// config/policies, the requester needs the verb emergency. Without
	// config/policies, it has no effect.
	OpenEmergencyAnnotation = openPrefix + "emergency"

	// CloseRequestedAtAnnotation requests that a Gate close. The value is a time
	// in RFC 3339, at most 366 days in the past or future, with an optional
	// duration, such as 2026-12-19T12:00:00Z/30m. The request lasts for the
	// duration, even if that is longer than spec.window. Without a duration, it
	// lasts for spec.window. With /unlimited, it lasts until an open request ends
	// it. With the duration 0s, it withdraws the open request in force. If there
	// is none, it withdraws open requests that are planned or wait for approval. It
	// can have targets, like OpenRequestedAtAnnotation.
	CloseRequestedAtAnnotation = closePrefix + "requestedAt"

	// CloseReasonAnnotation is free text with the reason for the close request.
	CloseReasonAnnotation = closePrefix + "reason"

	// CloseRequestedByAnnotation is the name of the requester. It works like
	// OpenRequestedByAnnotation.
	CloseRequestedByAnnotation = closePrefix + "requestedBy"

	// CloseReceivedAnnotation is a copy of the value of CloseRequestedAtAnnotation
	// that a GateReceiver wrote. It works like OpenReceivedAnnotation.
	CloseReceivedAnnotation = closePrefix + "received"

	// ProceedRequestedAtAnnotation requests that a release in waves proceed. A
	// release that waits proceeds to the next wave. A release that has stopped
	// because its waves are invalid proceeds in spite of that. The value is a time
	// in RFC 3339. It must be later than that of the previous value, not before
	// the Gate opened, and at most one minute in the future. With the name of a
	// wave, as in 2026-12-19T12:00:00Z,wave=canary, it has an effect only if that
	// is the current wave. Each value counts once. It has no effect if no release
	// is in progress.
	ProceedRequestedAtAnnotation = proceedPrefix + "requestedAt"

	// ProceedReasonAnnotation is free text with the reason for the proceed
	// request.
	ProceedReasonAnnotation = proceedPrefix + "reason"

	// ProceedRequestedByAnnotation is the name of the requester. It works like
	// OpenRequestedByAnnotation.
	ProceedRequestedByAnnotation = proceedPrefix + "requestedBy"

	// ApproveRequestedAtAnnotation approves a GateException, an open request of a
	// Gate, or a revision of a GatedSource. The value is a time, which only
	// distinguishes approvals, followed by keys that identify what is approved:
	//
	//	GateException: TIME,generation=NUMBER,uid=UID
	//	Gate:          TIME,request=TIME,uid=UID
	//	GatedSource:   TIME,round=NUMBER,uid=UID,revision=REVISION
	//
	// On a Gate, request is acceptedAt of a waiting open request in
	// status.requests. On a GatedSource, round is status.round. The revision comes
	// last because it may contain commas. If the object has changed since the
	// approver read it, the keys no longer match: config/policies refuses the
	// value, and the controller ignores it. On a GatedSource, config/policies
	// moves the value to a line of ApproveRequestedByAnnotation.
	ApproveRequestedAtAnnotation = approvePrefix + "requestedAt"

	// ApproveRequestedByAnnotation has a line for each approval: the keys in the
	// value of ApproveRequestedAtAnnotation, a space, and the name of the
	// approver. On a GatedSource, a tab and the reason follow. With
	// config/policies, the API server writes it and overwrites the values that
	// clients set. Without config/policies, no approval counts.
	ApproveRequestedByAnnotation = approvePrefix + "requestedBy"

	// ApproveReasonAnnotation is free text with the reason for the approval of a
	// revision. Only for GatedSources.
	ApproveReasonAnnotation = approvePrefix + "reason"

	// AuthorsAnnotation lists the users who created a GateException or changed its
	// spec, one per line. They cannot approve it. With config/policies, the API
	// server writes it and overwrites the values that clients set.
	AuthorsAnnotation = approvePrefix + "authors"

	// DeliveriesAnnotation is on a Gate. It has digests of the webhooks of the
	// last 10 minutes, so that a repeated webhook does not open the Gate again. It
	// has at most 16 KiB, which is enough for 512 webhooks. A GateReceiver can use
	// 256 of them, and at most half of the space that other receivers leave free.
	// Only the controller writes it.
	DeliveriesAnnotation = api.Group + "/deliveries"

	// UnhandledAnnotation is on a Gate. It has the requests that were overwritten
	// before the controller handled them, and the close requests that were removed
	// before that. Each line has a number, the action, the source, the value, the
	// requester and the reason, separated by tabs. With config/policies, the API
	// server adds the lines and ignores the values that clients set. Only the
	// controller removes lines.
	UnhandledAnnotation = api.Group + "/unhandled"

	// GatesAnnotation is on an object that refers to its Gates. It lists at most
	// 32 Gates as name or namespace/name, separated by commas. The namespace
	// defaults to that of the object. The object is held until all of these Gates
	// exist and are open.
	GatesAnnotation = api.Group + "/gates"

	// HeldByAnnotation is on a held target. It lists the Gates that hold it as
	// namespace/name, sorted and separated by commas.
	HeldByAnnotation = api.Group + "/heldBy"

	// PassRequestedAtAnnotation requests a pass: one reconciliation of a held
	// object. The value is a time in RFC 3339. It must be later than that of the
	// previous pass, later than the times when the Gates closed, and at most one
	// minute in the future. It can have a duration from 1s to 1h, such as
	// 2026-12-19T12:00:00Z/30m, after which the pass ends even if the
	// reconciliation has not. The duration defaults to 10m. Each value counts
	// once.
	PassRequestedAtAnnotation = passPrefix + "requestedAt"

	// PassGatesAnnotation lists the Gates on which the requester may request a
	// pass: those in HeldByAnnotation before the request, separated by commas, or
	// * if there are more than MaxPassGates. The controller refuses the pass if
	// any other Gate holds the object. With config/policies on Kubernetes 1.36 or
	// later, the API server writes it. Otherwise, the client writes it.
	PassGatesAnnotation = passPrefix + "gates"

	// MaxPassGates is the maximum number of Gates that PassGatesAnnotation lists
	// by name.
	MaxPassGates = 8

	// PassReasonAnnotation is free text with the reason for the pass.
	PassReasonAnnotation = passPrefix + "reason"

	// PassRequestedByAnnotation is the name of the requester. It works like
	// OpenRequestedByAnnotation.
	PassRequestedByAnnotation = passPrefix + "requestedBy"

	// RollbackRequestedAtAnnotation requests that a GatedSource move back to a
	// revision in status.promotions, even while its Gates are closed. The value is
	// TIME,uid=UID,revision=REVISION with the uid of the GatedSource. The time must
	// be later than that of the last request, later than the times when the Gates
	// closed, at most one hour in the past, and at most one minute in the future.
	// Each value counts once. A rollback is refused in the same cases as a pass.
	RollbackRequestedAtAnnotation = rollbackPrefix + "requestedAt"

	// RollbackGatesAnnotation lists the Gates on which the requester may request a
	// rollback: those in status.heldBy, in the format of PassGatesAnnotation. The
	// controller refuses the rollback if any other Gate is closed. With
	// config/policies on Kubernetes 1.36 or later, the API server writes it.
	// Otherwise, the client writes it.
	RollbackGatesAnnotation = rollbackPrefix + "gates"

	// RollbackReasonAnnotation is free text with the reason for the rollback.
	RollbackReasonAnnotation = rollbackPrefix + "reason"

	// RollbackRequestedByAnnotation is the name of the requester. It works like
	// OpenRequestedByAnnotation.
	RollbackRequestedByAnnotation = rollbackPrefix + "requestedBy"

	// PassAnnotation is on a target. It records the last pass, with a line
	// key=value for each field. The target is not held while the state is Passing.
	// Only the controller writes it.
	PassAnnotation = api.Group + "/pass"

	// ActivateIntoAnnotation is on a Certificate. It is the name of a Secret in
	// the same namespace. The controller copies the issued certificate to that
	// Secret while the Gates that govern the Certificate are open. The renewal of
	// the Certificate is not held.
	ActivateIntoAnnotation = api.Group + "/activateInto"

	// ActivatedAnnotation is on a Secret that an issued certificate was copied to.
	// It is the fingerprint of the data that was copied last. The controller does
	// not copy the same data again, so that users can roll back.
	ActivatedAnnotation = api.Group + "/activated"

	// ActivatedFromAnnotation is on that Secret, and on the Secret with its
	// previous data. It is the name of the Certificate.
	ActivatedFromAnnotation = api.Group + "/activatedFrom"

	// PinnedByAnnotation is on a pinned source. It is the name of the GatedSource
	// that pins it.
	PinnedByAnnotation = api.Group + "/pinnedBy"

	// RefreshAnnotation is on a Machine whose certificates are being refreshed. It
	// has the MachineCertificateRefresh, the time of the request to the provider,
	// and the expiry of the certificates at that time.
	RefreshAnnotation = api.Group + "/refresh"

	// TimeZoneDataLabel is on the Lease of the leader election. It is the version
	// of the time zone data of the leader.
	TimeZoneDataLabel = api.Group + "/timeZoneData"
)

const (
	// GateFinalizer is on Gates and GateExceptions. It keeps a deleted Gate until
	// its targets are released, and a deleted GateException until the status of
	// its Gate no longer depends on it.
	GateFinalizer = api.Group + "/finalizer"

	// FieldManager is the name of the controller as a field manager. A target is
	// held if this manager owns the hold, such as spec.suspend, or if config/lock
	// has set the hold, which then has no owner.
	FieldManager = "gating-controller"
)
