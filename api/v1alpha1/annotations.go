package v1alpha1

import "github.com/fluxcd/gating-controller/api"

// The prefixes of the annotations with which users make requests.
const (
	openPrefix    = "open." + api.RequestDomain + "/"
	closePrefix   = "close." + api.RequestDomain + "/"
	passPrefix    = "pass." + api.RequestDomain + "/"
	proceedPrefix = "proceed." + api.RequestDomain + "/"
	approvePrefix = "approve." + api.RequestDomain + "/"
)

const (
	// OpenRequestedAtAnnotation requests that a Gate open at a time in RFC 3339, at
	// most 366 days away. A time in the future plans a release. With a slash and a
	// duration after the time, as in 2026-12-19T12:00:00Z/30m, the request lasts
	// that long, but not longer than spec.window. With 0s it opens nothing: it
	// withdraws the close requests in force or, if there are none, those that the
	// same user has planned.
	OpenRequestedAtAnnotation = openPrefix + "requestedAt"

	// OpenReasonAnnotation is free text that states why the Gate should open.
	OpenReasonAnnotation = openPrefix + "reason"

	// OpenRequestedByAnnotation names the requester. With config/policies the API
	// server overwrites it with the name of the caller. Without them, the caller
	// can write any name.
	OpenRequestedByAnnotation = openPrefix + "requestedBy"

	// OpenReceivedAnnotation is the value of OpenRequestedAtAnnotation that a
	// GateReceiver wrote. Only the controller writes it. The request is from the
	// receiver in OpenRequestedByAnnotation only while the two values are the same:
	// a manual request may leave the name of the last receiver in place.
	OpenReceivedAnnotation = openPrefix + "received"

	// OpenEmergencyAnnotation makes an open request count at once in an emergency,
	// without the approvals that spec.approvals requires. Its value is that of
	// OpenRequestedAtAnnotation, and the request must have a reason. With
	// config/policies it needs the verb emergency. Without them it has no effect.
	OpenEmergencyAnnotation = openPrefix + "emergency"

	// CloseRequestedAtAnnotation requests that a Gate close at a time in RFC 3339,
	// at most 366 days away. With a slash and a duration after the time, the request
	// lasts that long, and with /unlimited until an open request ends it: spec.window
	// does not limit it. Without them it lasts for spec.window. With 0s it closes
	// nothing: it withdraws the open requests.
	CloseRequestedAtAnnotation = closePrefix + "requestedAt"

	// CloseReasonAnnotation is free text that states why the Gate should close.
	CloseReasonAnnotation = closePrefix + "reason"

	// CloseRequestedByAnnotation names the requester, as OpenRequestedByAnnotation
	// does.
	CloseRequestedByAnnotation = closePrefix + "requestedBy"

	// CloseReceivedAnnotation is the value of CloseRequestedAtAnnotation that a
	// GateReceiver wrote. It works like OpenReceivedAnnotation.
	CloseReceivedAnnotation = closePrefix + "received"

	// ProceedRequestedAtAnnotation requests that a release by waves that waits or
	// has stopped proceed at once: to the next wave, or although its waves are
	// invalid. The value is a time in RFC 3339, later than that of the previous
	// value, not before the Gate opened, and at most a minute in the future. With
	// the current wave after it, as in 2026-12-19T12:00:00Z,wave=canary, it counts
	// for that wave only. It counts once, and has no effect if no release is in progress.
	ProceedRequestedAtAnnotation = proceedPrefix + "requestedAt"

	// ProceedReasonAnnotation is free text that states why the release should
	// proceed.
	ProceedReasonAnnotation = proceedPrefix + "reason"

	// ProceedRequestedByAnnotation names the requester, as
	// OpenRequestedByAnnotation does.
	ProceedRequestedByAnnotation = proceedPrefix + "requestedBy"

	// ApproveRequestedAtAnnotation approves an exception, a request or a revision,
	// depending on the object. The time only distinguishes approvals. The keys
	// identify the version that the approver has read: if the object has changed
	// since, the value approves nothing, and config/policies refuses it.
	//
	//	GateException: TIME,generation=NUMBER,uid=UID
	//	Gate:          TIME,request=TIME,uid=UID
	//	GatedSource:   TIME,round=NUMBER,uid=UID,revision=REVISION
	//
	// On a Gate, request is the acceptedAt of a waiting open request in
	// status.requests. On a GatedSource, round is status.round, and the revision is
	// last because it may contain commas. There, config/policies moves the value
	// into a line of ApproveRequestedByAnnotation.
	ApproveRequestedAtAnnotation = approvePrefix + "requestedAt"

	// ApproveRequestedByAnnotation has a line for each approval: the keys of the
	// value of ApproveRequestedAtAnnotation, a space, and the name of the user. On a
	// GatedSource a tab and the reason follow. With config/policies, the API server
	// writes it and overwrites what the caller sets.
	ApproveRequestedByAnnotation = approvePrefix + "requestedBy"

	// ApproveReasonAnnotation is free text that states why a revision is approved.
	ApproveReasonAnnotation = approvePrefix + "reason"

	// AuthorsAnnotation names all users who created a GateException or changed its
	// spec, one per line. None of them can approve it. The API server
	// writes it and overwrites what the caller sets, see config/policies.
	AuthorsAnnotation = approvePrefix + "authors"

	// DeliveriesAnnotation is on a Gate and has the digests of the webhooks of the
	// last 10 minutes, so that none opens the Gate twice. It has at most 16 KiB,
	// which is enough for 512 webhooks. A GateReceiver can use 256 of them, and at
	// most half of the space that the other receivers leave. Only the controller
	// writes it.
	DeliveriesAnnotation = api.Group + "/deliveries"

	// UnhandledAnnotation is on a Gate and has the requests that were replaced, and
	// the close requests that were removed, before the controller handled
	// them. Each line has a number, the action, the source, the value, the
	// requester and the reason, separated by tabs. With config/policies the API
	// server adds lines and ignores what the caller sets, and only the controller
	// removes them.
	UnhandledAnnotation = api.Group + "/unhandled"

	// GatesAnnotation is on an object that names its Gates itself: at most 32,
	// separated by commas, each as name or namespace/name. The namespace defaults to
	// that of the object. The object is held until all of them are open, and while
	// one of them does not exist.
	GatesAnnotation = api.Group + "/gates"

	// HeldByAnnotation is on a target while it is held: the Gates that hold it
	// as namespace/name, sorted, separated by commas.
	HeldByAnnotation = api.Group + "/heldBy"

	// PassRequestedAtAnnotation requests that the Gates which hold an object let one
	// reconciliation pass. The value is a time in RFC 3339, later than that of the
	// pass before, later than when the Gates have closed, and at most a minute
	// ahead. A pass lasts at most 10 minutes, or a duration of at most an hour that
	// follows after a slash. Each value counts once.
	PassRequestedAtAnnotation = passPrefix + "requestedAt"

	// PassGatesAnnotation lists the Gates that were checked for a pass: those in
	// HeldByAnnotation before the request was written, separated by commas, or *
	// for more than MaxPassGates. A pass is refused if any other Gate holds the
	// object. With config/policies on Kubernetes 1.36 and later, the API server
	// sets it; otherwise the client does.
	PassGatesAnnotation = passPrefix + "gates"

	// MaxPassGates is the number of Gates that PassGatesAnnotation lists by name.
	MaxPassGates = 8

	// PassReasonAnnotation is free text that states why one reconciliation
	// should pass.
	PassReasonAnnotation = passPrefix + "reason"

	// PassRequestedByAnnotation names the requester, as OpenRequestedByAnnotation
	// does.
	PassRequestedByAnnotation = passPrefix + "requestedBy"

	// PassAnnotation is on a target and records its last pass, as lines of
	// key=value. While the state is Passing, the target is not held. Only the
	// controller writes it.
	PassAnnotation = api.Group + "/pass"

	// ActivateIntoAnnotation is on a Certificate and names a Secret in its
	// namespace. The issued certificate is promoted into that Secret while the
	// Gates that govern the Certificate are open. The renewal of such a
	// Certificate is not held.
	ActivateIntoAnnotation = api.Group + "/activateInto"

	// ActivatedAnnotation is on a Secret that a certificate is promoted into. It
	// is the fingerprint of the data that was last promoted. The same data is not
	// promoted again, so that a user can restore the previous data.
	ActivatedAnnotation = api.Group + "/activated"

	// ActivatedFromAnnotation is on the same Secret, and on the one that keeps the
	// previous data. It is the name of the Certificate.
	ActivatedFromAnnotation = api.Group + "/activatedFrom"

	// PinnedByAnnotation is on a source that a GatedSource has pinned, and has the
	// name of that GatedSource.
	PinnedByAnnotation = api.Group + "/pinnedBy"

	// RefreshAnnotation is on a Machine whose certificates are being refreshed. It
	// has the MachineCertificateRefresh, the time of its request, and when the
	// certificates expired at that time.
	RefreshAnnotation = api.Group + "/refresh"

	// TimeZoneDataLabel is on the Lease of a controller and has the version of the
	// leader's time zone data.
	TimeZoneDataLabel = api.Group + "/timeZoneData"
)

const (
	// GateFinalizer keeps a Gate that is being deleted until its targets are
	// released, and a GateException until its Gate decides without it.
	GateFinalizer = api.Group + "/finalizer"

	// FieldManager is the field manager of everything that the controller applies.
	// A target is held if this manager owns the hold.
	FieldManager = "gating-controller"
)
