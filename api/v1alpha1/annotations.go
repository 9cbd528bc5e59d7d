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
	// OpenRequestedAtAnnotation asks a Gate to open at a time in RFC 3339, at most
	// 366 days away. A time in the future plans a release. With a slash and a
	// duration after the time, as in 2026-12-19T12:00:00Z/30m, the request lasts
	// that long, but not longer than spec.window. With 0s it opens nothing: it
	// takes back the close requests in force, or, if there are none, those that
	// the same person has planned.
	OpenRequestedAtAnnotation = openPrefix + "requestedAt"

	// OpenReasonAnnotation is free text that says why the Gate is asked to open.
	OpenReasonAnnotation = openPrefix + "reason"

	// OpenRequestedByAnnotation says who asked a Gate to open. With
	// config/policies the API server overwrites it with the name of the caller.
	// Without it, this is what the caller claims.
	OpenRequestedByAnnotation = openPrefix + "requestedBy"

	// OpenReceivedAnnotation is the value of OpenRequestedAtAnnotation that a
	// GateReceiver wrote. Only the controller writes it. The request is from the
	// receiver in OpenRequestedByAnnotation only while the two values are the same:
	// somebody who asks by hand may leave the name of the last receiver behind.
	OpenReceivedAnnotation = openPrefix + "received"

	// BreakGlassAnnotation lets an open request count at once although
	// spec.approvals requires approval: an emergency. Its value is that of
	// OpenRequestedAtAnnotation, and the request has a reason. With
	// config/policies it needs the verb break-glass. Without them it changes
	// nothing.
	BreakGlassAnnotation = openPrefix + "breakGlass"

	// CloseRequestedAtAnnotation asks a Gate to close at a time in RFC 3339, at
	// most 366 days away. With a slash and a duration after the time, the request
	// lasts that long, and with /unlimited until an open request ends it: spec.window
	// does not limit it. Without them it lasts for spec.window. With 0s it closes
	// nothing: it takes back the open requests.
	CloseRequestedAtAnnotation = closePrefix + "requestedAt"

	// CloseReasonAnnotation is free text that says why the Gate is asked to
	// close.
	CloseReasonAnnotation = closePrefix + "reason"

	// CloseRequestedByAnnotation says who asked a Gate to close. With
	// config/policies the API server overwrites it with the name of the caller.
	// Without it, this is what the caller claims.
	CloseRequestedByAnnotation = closePrefix + "requestedBy"

	// CloseReceivedAnnotation is the value of CloseRequestedAtAnnotation that a
	// GateReceiver wrote. It works like OpenReceivedAnnotation.
	CloseReceivedAnnotation = closePrefix + "received"

	// ProceedRequestedAtAnnotation has a release by waves go on at once that waits or has
	// stopped: with what is wrong with its waves, or with the next wave. A time in
	// RFC 3339, later than that of the value before, not before the Gate opened and
	// not in the future. With the current wave after it, as in
	// 2026-12-19T12:00:00Z,wave=canary, it counts for that wave alone. It counts
	// once, and does nothing if no release is on.
	ProceedRequestedAtAnnotation = proceedPrefix + "requestedAt"

	// ProceedReasonAnnotation is free text that says why a release goes on.
	ProceedReasonAnnotation = proceedPrefix + "reason"

	// ProceedRequestedByAnnotation says who has a release go on. With config/policies the
	// API server overwrites it with the name of the caller. Without it, this is
	// what the caller claims.
	ProceedRequestedByAnnotation = proceedPrefix + "requestedBy"

	// ApproveRequestedAtAnnotation approves what its value names. The time only
	// tells approvals apart. The keys name what the approver has read. If the object
	// has changed since, the value approves nothing, and config/policies refuses it.
	//
	//	GateException: TIME,generation=NUMBER,uid=UID
	//	Gate:          TIME,request=TIME,uid=UID
	//	GatedSource:   TIME,round=NUMBER,uid=UID,revision=REVISION
	//
	// On a Gate it approves an open request that waits, by its acceptedAt in
	// status.requests. On a GatedSource it approves a revision, in status.round. The
	// revision is last and may contain commas. There, config/policies turns the
	// value into a line of ApproveRequestedByAnnotation and removes it.
	ApproveRequestedAtAnnotation = approvePrefix + "requestedAt"

	// ApproveRequestedByAnnotation says who approved a GateException or a request,
	// one approval per line: what was approved, as generation=3,uid=... or
	// request=...,uid=..., a blank, and the name of the user. On a GatedSource a
	// line is round=7,uid=...,revision=..., a blank, the name of the user, and
	// after a tab the reason. The API server writes it and overwrites what the
	// caller sets, see config/policies.
	ApproveRequestedByAnnotation = approvePrefix + "requestedBy"

	// ApproveReasonAnnotation is free text that says why a revision is approved.
	ApproveReasonAnnotation = approvePrefix + "reason"

	// AuthorsAnnotation names everybody who ever created or changed the spec of a
	// GateException, one per line. None of them can approve it. The API server
	// writes it and overwrites what the caller sets, see config/policies.
	AuthorsAnnotation = approvePrefix + "authors"

	// DeliveriesAnnotation is on a Gate and has the digests of the webhooks of the
	// last 10 minutes, so that none opens twice: at most 16 KiB, which is enough for
	// 512 webhooks. A GateReceiver uses at most 256 of them, and no more room than it
	// leaves free. Only the controller writes it.
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

	// PassReasonAnnotation is free text that says why one reconciliation is to
	// pass.
	PassReasonAnnotation = passPrefix + "reason"

	// PassRequestedByAnnotation says who asked for a pass. With config/policies
	// the API server overwrites it with the name of the caller. Without it, this is
	// what the caller claims.
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
	// is the fingerprint of what was promoted last. The same data is not promoted
	// again, so that a person can go back to what was there before.
	ActivatedAnnotation = api.Group + "/activated"

	// ActivatedFromAnnotation is on the same Secret, and on the one that keeps
	// what was there before. It is the name of the Certificate.
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
	// GateFinalizer keeps a Gate that is being deleted until what it holds is
	// released, and a GateException until its Gate decides without it.
	GateFinalizer = api.Group + "/finalizer"

	// FieldManager is the field manager of everything that the controller applies.
	// A target is held if this manager owns the hold.
	FieldManager = "gating-controller"
)
