package v1alpha1

const (
	// OpenedCondition of a Gate is True while the Gate is open, and False while it
	// is closed.
	OpenedCondition = "Opened"

	// ApprovedCondition of a target is False while the target is held, and True
	// after it is released. On a GatedSource, it is False while Gates or missing
	// approvals keep the pin from moving.
	ApprovedCondition = "Approved"
)

// Reasons of the condition Opened, in order of precedence, with two
// exceptions. Close periods without override: Deny come after
// ExceptionAppliesReason. TimeUnknownReason replaces any reason that would
// open the Gate.
const (
	// InvalidSpecReason means that the spec is invalid in a way that the API
	// server does not detect. The Gate keeps its last state, but closes if a close
	// is due or requested, or if a dependency is not ready. Also the reason of
	// Stalled, and used by other kinds.
	InvalidSpecReason = "InvalidSpec"
	// CloseRequestedReason means that a close request is in force.
	CloseRequestedReason = "CloseRequested"
	// ClosePeriodReason means that the Gate is in a close period.
	ClosePeriodReason = "ClosePeriod"
	// DependencyNotReadyReason means that an object in spec.dependsOn is not
	// ready.
	DependencyNotReadyReason = "DependencyNotReady"
	// OpenRequestedReason means that an open request is in force.
	OpenRequestedReason = "OpenRequested"
	// NotYetActiveReason means that spec.notBefore is in the future.
	NotYetActiveReason = "NotYetActive"
	// ExpiredReason means that spec.notAfter has passed. For a GateException, it
	// means that spec.validUntil has passed.
	ExpiredReason = "Expired"
	// ExceptionAppliesReason means that a GateException determines the state.
	ExceptionAppliesReason = "Exception"
	// OpenPeriodReason means that the Gate is in an open period.
	OpenPeriodReason = "OpenPeriod"
	// OutsideOpenPeriodsReason means that the Gate has open periods, but is in
	// none of them.
	OutsideOpenPeriodsReason = "OutsideOpenPeriods"
	// OutsideClosePeriodsReason means that the Gate is open by default, has close
	// periods, and is in none of them.
	OutsideClosePeriodsReason = "OutsideClosePeriods"
	// DefaultReason means that spec.default determines the state.
	DefaultReason = "Default"
	// TimeUnknownReason means that the Gate would open, but the API server has not
	// confirmed the current time.
	TimeUnknownReason = "TimeUnknown"
)

// HoldsItsOwnSourceCondition of a Gate is True if the Gate governs the Flux
// object that applies it from Git, or the source of that object. While such a
// Gate is closed, changes of the Gate in Git are not applied. Missing
// otherwise. Also the reason of the condition and of an event.
const HoldsItsOwnSourceCondition = "HoldsItsOwnSource"

// ReleaseStoppedCondition of a Gate is True while a release in waves has
// stopped, until its cause is fixed or a user requests that it proceed.
// Missing otherwise. Also the reason of the event about it.
const ReleaseStoppedCondition = "ReleaseStopped"

// Reasons of the condition ReleaseStopped.
const (
	// WaveFailedReason means that a target of the current wave or of an earlier
	// wave has failed. Also a reason of Ready.
	WaveFailedReason = "WaveFailed"
	// InvalidWavesReason means that two waves match the same target, that a wave
	// matches no target, or that targets depend on each other in a cycle. Also a
	// reason of Ready.
	InvalidWavesReason = "InvalidWaves"
)

// Reasons of other events on a Gate that releases its targets in waves.
const (
	// WaveReleasedReason means that all targets of a wave are released and ready,
	// or that a user has requested to proceed without waiting for them.
	WaveReleasedReason = "WaveReleased"
	// ProceedRefusedReason means that a proceed request was refused, because the
	// value of the annotation proceed.gate.fluxcd.io/requestedAt is invalid or no
	// release is in progress.
	ProceedRefusedReason = "ProceedRefused"
	// ReleaseContinuedReason means that a stopped release continues, because its
	// cause is fixed or a user has requested that it proceed.
	ReleaseContinuedReason = "ReleaseContinued"
)

// ActiveCondition of a GateException is True while the exception applies.
const ActiveCondition = "Active"

// Reasons of the condition Active of a GateException, in addition to
// InvalidSpec, GateNotFound and Expired. InvalidSpec, GateNotFound,
// GateNotReady, Overlapped and TooManyExceptions are also reasons of its
// condition Ready.
const (
	// GateNotReadyReason means that the Gate is suspended, is being deleted or has
	// an invalid spec, so that its exceptions have no effect. Also a reason of the
	// condition Ready of a MachineCertificateRefresh.
	GateNotReadyReason = "GateNotReady"
	// InForceReason means that the exception applies.
	InForceReason = "InForce"
	// PendingReason means that spec.validFrom is in the future.
	PendingReason = "Pending"
	// WaitingApprovalReason means that the exception needs more approvals. Also a
	// reason of the condition Approved of a GatedSource.
	WaitingApprovalReason = "WaitingApproval"
	// OverlappedReason means that a newer exception of the same Gate is valid at
	// the same time and takes precedence.
	OverlappedReason = "Overlapped"
	// TooManyExceptionsReason means that the Gate has more than
	// MaxEffectiveExceptions exceptions that have not ended, and that this one
	// exceeds the limit. While it is valid, it does not open the Gate, and keeps
	// the Gate closed if it can close it.
	TooManyExceptionsReason = "TooManyExceptions"
)

// Reasons of events on a GateException and on its Gate.
const (
	// ExceptionActivatedReason means that the exception began to apply.
	ExceptionActivatedReason = "ExceptionActivated"
	// ExceptionInterruptedReason means that the exception no longer applies,
	// although it has not ended.
	ExceptionInterruptedReason = "ExceptionInterrupted"
	// ExceptionExpiredReason means that the exception has ended, or was deleted
	// while it applied.
	ExceptionExpiredReason = "ExceptionExpired"
	// ExceptionApprovedReason means that a user approved the exception.
	ExceptionApprovedReason = "ExceptionApproved"
	// ApprovalsVoidedReason means that approvals no longer count, because the spec
	// of the exception was changed. On a GatedSource, it means that another
	// revision was promoted or the spec of the source was changed.
	ApprovalsVoidedReason = "ApprovalsVoided"
	// ApprovalRefusedReason means that an approval does not count, because it does
	// not have the current generation and uid of the exception, or because the API
	// server has not stamped the approver.
	ApprovalRefusedReason = "ApprovalRefused"
)

// Reasons of the condition Ready of a Gate, in addition to those of
// github.com/fluxcd/pkg/apis/meta.
const (
	// TargetsFailedReason means that some targets do not have the desired state.
	// See status.targets.failures.
	TargetsFailedReason = "TargetsFailed"
	// NoTargetsReason means that all targets have the desired state, but that an
	// entry of spec.targets has not matched any object for one minute. Also the
	// reason of an event.
	NoTargetsReason = "NoTargets"
)

// Reasons of the condition Ready of a GateReceiver and a CalendarFeed, in
// addition to Succeeded, Failed and InvalidSpec. A Receiver of
// notification-controller has the same reasons.
const (
	// TokenNotFoundReason means that the Secret does not exist, cannot be read or
	// has no token, or that another object already has the path that is derived
	// from the token.
	TokenNotFoundReason = "TokenNotFound"
	// InvalidCELExpressionReason means that a CEL expression does not compile or
	// has the wrong type. Also a reason of Stalled.
	InvalidCELExpressionReason = "InvalidCELExpression"
)

// Reasons of the condition Approved and of events on targets.
const (
	// GateClosedReason means that the target is held, because a Gate is closed.
	GateClosedReason = "GateClosed"
	// GateNotFoundReason means that the target is held, because its annotation
	// refers to a Gate that does not exist. For a GateException or a
	// MachineCertificateRefresh, it means that the Gate in the spec does not
	// exist.
	GateNotFoundReason = "GateNotFound"
	// GateOpenedReason means that the target is released.
	GateOpenedReason = "GateOpened"
	// ResumedReason means that the target is not held although a Gate is closed,
	// because a user resumed it and the mode of the Gate is Lenient, or because a
	// user suspended the held target.
	ResumedReason = "Resumed"
	// WouldHoldReason means that a Gate with mode Audit would hold the target.
	// Also the reason of an event on the Gate, which replaces the events on many
	// targets.
	WouldHoldReason = "WouldHold"
	// InitialReconciliationReason means that the target is not held although a
	// Gate is closed, because it has never been reconciled successfully and
	// spec.initialReconciliation of the Gate is Allow. Also the reason of an event
	// on the target.
	InitialReconciliationReason = "InitialReconciliation"
	// HeldAgainReason means that a user or another client resumed a held target,
	// and that the controller holds it again.
	HeldAgainReason = "HeldAgain"
)

// Reasons of the conditions of a GatedSource and of its promotions, in
// addition to those above and those of github.com/fluxcd/pkg/apis/meta.
const (
	// UpToDateReason means that the newest revision is pinned.
	UpToDateReason = "UpToDate"
	// PinnedInSpecReason means that the revision in spec.revision is pinned.
	PinnedInSpecReason = "PinnedInSpec"
	// AdoptedReason means that the pinned source already existed, with the name of
	// this GatedSource in its annotation.
	AdoptedReason = "Adopted"
	// RevisionNotSeenReason means that the controller has not observed the
	// revision in spec.revision.
	RevisionNotSeenReason = "RevisionNotSeen"
	// SourceNotFoundReason means that the source in spec.sourceRef does not exist,
	// has no artifact, or has not been fetched since its spec was changed.
	SourceNotFoundReason = "SourceNotFound"
	// SourceNotPinnableReason means that the source cannot be pinned, or is itself
	// pinned by a GatedSource. Also a reason of Stalled.
	SourceNotPinnableReason = "SourceNotPinnable"
	// SourceNotOursReason means that a source with the name of the pinned source
	// already exists and does not belong to this GatedSource, or that an older
	// GatedSource pins a source with that name. Also a reason of Stalled.
	SourceNotOursReason = "SourceNotOurs"
	// RevisionPromotedReason is the reason of the event about a promotion.
	RevisionPromotedReason = "RevisionPromoted"
	// RevisionApprovedReason is the reason of the event about an approval, and of
	// the promotion of an approved revision.
	RevisionApprovedReason = "RevisionApproved"
	// RevisionWaitsReason is the reason of the event about a revision that has
	// begun to wait.
	RevisionWaitsReason = "RevisionWaits"
	// RollbackRefusedReason is the reason of the event about a refused request for
	// a rollback.
	RollbackRefusedReason = "RollbackRefused"
)

// Reasons of events on targets and on the Gates that hold them, and of entries
// in status.history. PassGranted is also a reason of the condition Approved.
const (
	// PassGrantedReason means that a held target may be reconciled once.
	PassGrantedReason = "PassGranted"
	// PassEndedReason means that the pass has ended: the target is held again, or
	// no Gate holds it anymore.
	PassEndedReason = "PassEnded"
	// PassRefusedReason means that a request for a pass was refused.
	PassRefusedReason = "PassRefused"
)

// RequestAcceptedReason is the reason of the event about an accepted request,
// on the Gate and on the targets that it holds. Also in status.history.
const RequestAcceptedReason = "RequestAccepted"

// RequestPlannedReason is the reason of the event about an accepted request
// with a time in the future, on the Gate and on the targets that it holds.
// Also in status.history.
const RequestPlannedReason = "RequestPlanned"

// RequestApprovedReason is the reason of the event about an approval of an
// open request, on the Gate. Also in status.history.
const RequestApprovedReason = "RequestApproved"

// EmergencyOpenedReason is the reason of the event about an open request that
// takes effect without the approvals that spec.approvals requires, on the Gate
// and on the targets that it holds.
const EmergencyOpenedReason = "EmergencyOpened"

// RequestRefusedReason is the reason of the event about a refused request, on
// the Gate and on the targets that it holds. Also in status.history.
const RequestRefusedReason = "RequestRefused"

// RequestWithdrawnReason is the reason of the event about a request with the
// duration 0s, which withdraws requests for the opposite action, on the Gate
// and on the targets that it holds. Also in status.history.
const RequestWithdrawnReason = "RequestWithdrawn"

// Reasons of events on a Gate with spec.notifyBefore, and on one of its
// targets of each kind in each namespace.
const (
	// GateOpensSoonReason means that the Gate will open. GateClosesSoonReason
	// means that it will close.
	GateOpensSoonReason  = "GateOpensSoon"
	GateClosesSoonReason = "GateClosesSoon"
	// AnnouncementCalledOffReason means that an announced change of state will not
	// happen.
	AnnouncementCalledOffReason = "AnnouncementCalledOff"
)

// Reasons of events on a Gate about status.overlays.
const (
	// OverlayStartedReason means that an exception or a request for some targets
	// began to keep them open or closed.
	OverlayStartedReason = "OverlayStarted"
	// OverlayEndedReason means that the exception or the request no longer keeps
	// these targets open or closed.
	OverlayEndedReason = "OverlayEnded"
)

// AmbiguousScheduleReason is the reason of the event on a Gate or a
// GateException with a cron schedule that is probably not what the user meant.
// It restricts both the day of month and the day of week, in which case a day
// that matches either one counts, or it has a step that does not divide its
// field evenly.
const AmbiguousScheduleReason = "AmbiguousSchedule"

// Reasons in status.targets.failures.
const (
	// UnsupportedKindReason means that the controller does not support the kind.
	UnsupportedKindReason = "UnsupportedKind"
	// CRDNotFoundReason means that the controller supports the kind, but that its
	// CRD is not installed.
	CRDNotFoundReason = "CRDNotFound"
	// AccessDeniedReason means that the target is in another namespace and the
	// controller runs with --no-cross-namespace-refs, or that the controller does
	// not watch that namespace. Also the reason of the condition Approved of an
	// object that is held because its annotation refers to a Gate in another
	// namespace.
	AccessDeniedReason = "AccessDenied"
	// WriteFailedReason means that the controller could not write the target to
	// hold or release it, or could not write a GateLock before releasing it.
	WriteFailedReason = "WriteFailed"
	// StatusWriteFailedReason means that the target has the desired state, but
	// that its conditions could not be updated.
	StatusWriteFailedReason = "StatusWriteFailed"
	// CalendarFailedReason means that the calendar of a period does not exist or
	// cannot be read. Until it can, a close period with the calendar keeps the
	// Gate closed all the time, and an open period with it does not open the Gate.
	CalendarFailedReason = "CalendarFailed"
	// LockFullReason means that a GateLock has no space for all targets of the
	// Gate. The API server does not lock the remaining targets, but the controller
	// holds them.
	LockFullReason = "LockFull"
	// ReadFailedReason means that the targets of a kind could not be read.
	ReadFailedReason = "ReadFailed"
)
