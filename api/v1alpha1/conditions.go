package v1alpha1

const (
	// OpenedCondition of a Gate is True while the Gate is open, False while it
	// is closed. Its reason is one of the reasons below.
	OpenedCondition = "Opened"

	// ApprovedCondition of a target is False while the target is held and True
	// once it is released.
	ApprovedCondition = "Approved"
)

// Reasons of the condition Opened, in their order of precedence.
const (
	// InvalidSpecReason means that the spec does not compile. The Gate keeps its
	// last state, but closes if a close is already due or requested. Also the
	// reason of Stalled.
	InvalidSpecReason = "InvalidSpec"
	// CloseRequestedReason means that a close request is in force.
	CloseRequestedReason = "CloseRequested"
	// ClosePeriodReason means that the Gate is in a close period.
	ClosePeriodReason = "ClosePeriod"
	// DependencyNotReadyReason means that an object of spec.dependsOn is not ready.
	DependencyNotReadyReason = "DependencyNotReady"
	// OpenRequestedReason means that an open request is in force.
	OpenRequestedReason = "OpenRequested"
	// NotYetActiveReason means that spec.notBefore is in the future.
	NotYetActiveReason = "NotYetActive"
	// ExpiredReason means that spec.notAfter has come.
	ExpiredReason = "Expired"
	// ExceptionAppliesReason means that a GateException decides.
	ExceptionAppliesReason = "Exception"
	// OpenPeriodReason means that the Gate is in an open period.
	OpenPeriodReason = "OpenPeriod"
	// OutsideOpenPeriodsReason means that the Gate has open periods and is in none of
	// them.
	OutsideOpenPeriodsReason = "OutsideOpenPeriods"
	// OutsideClosePeriodsReason means that the Gate is open by default, has close
	// periods and is in none of them.
	OutsideClosePeriodsReason = "OutsideClosePeriods"
	// DefaultReason means that only spec.default decides.
	DefaultReason = "Default"
	// TimeUnknownReason means that the Gate would open, but the API server has not
	// confirmed that it is time.
	TimeUnknownReason = "TimeUnknown"
)

// HoldsItsOwnSourceCondition of a Gate is True if it governs the object of Flux that
// applies it, or the source of that: while it is closed, no change of it in Git
// arrives. Missing otherwise. Also the reason of the condition and of an event.
const HoldsItsOwnSourceCondition = "HoldsItsOwnSource"

// ReleaseStoppedCondition of a Gate is True if its release in waves cannot
// continue without a user. Missing otherwise. Its reason is one of the reasons
// below.
const ReleaseStoppedCondition = "ReleaseStopped"

// Reasons of the condition ReleaseStopped. The event about it has the name of the
// condition as its reason.
const (
	// WaveFailedReason means that a target of the current wave, or of one before it,
	// has failed. Also a reason of Ready.
	WaveFailedReason = "WaveFailed"
	// InvalidWavesReason means that two waves match a target, that a wave matches
	// none, or that targets depend on each other in a cycle. Also a reason of
	// Ready.
	InvalidWavesReason = "InvalidWaves"
)

// Reasons of other events on a Gate that releases in waves.
const (
	// WaveReleasedReason means that all targets of a wave are released and ready,
	// or that the release proceeds without them on request.
	WaveReleasedReason = "WaveReleased"
	// ProceedRefusedReason means that the annotation
	// proceed.gate.fluxcd.io/requestedAt has a value that does not count, or that
	// no release is in progress.
	ProceedRefusedReason = "ProceedRefused"
	// ReleaseContinuedReason means that a stopped release continues, because its
	// cause is fixed, or that a user has requested that the release proceed.
	ReleaseContinuedReason = "ReleaseContinued"
)

// ActiveCondition of a GateException is True while it applies. Its reason is one of
// the reasons below.
const ActiveCondition = "Active"

// Reasons of the condition Active of a GateException besides InvalidSpec,
// GateNotFound and Expired. The first two of those are also reasons of its
// condition Ready, as are GateNotReady, Overlapped and TooManyExceptions.
const (
	// GateNotReadyReason means that the Gate is suspended, is being deleted or has an
	// invalid spec, so that no exception changes anything.
	GateNotReadyReason = "GateNotReady"
	// InForceReason means that the exception applies.
	InForceReason = "InForce"
	// PendingReason means that spec.validFrom is in the future.
	PendingReason = "Pending"
	// WaitingApprovalReason means that it lacks approvals.
	WaitingApprovalReason = "WaitingApproval"
	// OverlappedReason means that a newer exception of the same Gate overlaps it in
	// time and takes precedence.
	OverlappedReason = "Overlapped"
	// TooManyExceptionsReason means that the exception is broken, because
	// MaxEffectiveExceptions older ones of the same Gate have not ended.
	TooManyExceptionsReason = "TooManyExceptions"
)

// Reasons of events on a GateException and on its Gate.
const (
	// ExceptionActivatedReason means that the exception began to apply.
	ExceptionActivatedReason = "ExceptionActivated"
	// ExceptionInterruptedReason means that the exception applied before, but does
	// not at present.
	ExceptionInterruptedReason = "ExceptionInterrupted"
	// ExceptionExpiredReason means that the exception no longer applies.
	ExceptionExpiredReason = "ExceptionExpired"
	// ExceptionApprovedReason means that a user approved the exception.
	ExceptionApprovedReason = "ExceptionApproved"
	// ApprovalsVoidedReason means that the exception was edited after people had
	// approved it.
	ApprovalsVoidedReason = "ApprovalsVoided"
	// ApprovalRefusedReason means that an approval does not count: it does not
	// name the present generation and uid of the exception, or the API server has
	// not stamped the approver.
	ApprovalRefusedReason = "ApprovalRefused"
)

// Reasons of the condition Ready of a Gate besides those of
// github.com/fluxcd/pkg/apis/meta.
const (
	// TargetsFailedReason means that some targets do not have the desired state, see
	// status.targets.failures.
	TargetsFailedReason = "TargetsFailed"
	// NoTargetsReason means that all is well, but an entry of spec.targets has
	// matched nothing for a minute. Also the reason of an event.
	NoTargetsReason = "NoTargets"
)

// Reasons of the condition Ready of a GateReceiver and a CalendarFeed besides
// Succeeded and InvalidSpec. A Receiver of notification-controller has the
// same.
const (
	// TokenNotFoundReason means that the Secret cannot be read or has no token.
	TokenNotFoundReason = "TokenNotFound"
	// InvalidCELExpressionReason means that an expression does not compile or has
	// the wrong type. Also a reason of Stalled.
	InvalidCELExpressionReason = "InvalidCELExpression"
)

// Reasons of the condition Approved and of events on targets.
const (
	// GateClosedReason means that the target is held.
	GateClosedReason = "GateClosed"
	// GateNotFoundReason means that the target is held because it names a Gate that
	// does not exist.
	GateNotFoundReason = "GateNotFound"
	// GateOpenedReason means that the target is released.
	GateOpenedReason = "GateOpened"
	// ResumedReason means that a user resumed the target and the mode of the Gate is
	// Lenient, or that a user suspended it afterwards.
	ResumedReason = "Resumed"
	// WouldHoldReason means that a Gate with mode Audit would hold the target. Also the
	// reason of an event on a Gate with many of them.
	WouldHoldReason = "WouldHold"
	// HeldAgainReason means that a user resumed the target while it was held.
	HeldAgainReason = "HeldAgain"
)

// Reasons of the conditions of a GatedSource and of its promotions, besides those
// above and those of github.com/fluxcd/pkg/apis/meta.
const (
	// UpToDateReason means that the newest revision is pinned.
	UpToDateReason = "UpToDate"
	// PinnedInSpecReason means that spec.revision decides.
	PinnedInSpecReason = "PinnedInSpec"
	// AdoptedReason means that the pinned source already existed with the
	// annotation of this GatedSource.
	AdoptedReason = "Adopted"
	// RevisionNotSeenReason means that the source never had the revision in
	// spec.revision.
	RevisionNotSeenReason = "RevisionNotSeen"
	// SourceNotFoundReason means that the source in spec.sourceRef does not exist or
	// has no artifact.
	SourceNotFoundReason = "SourceNotFound"
	// SourceNotPinnableReason means that the source cannot be pinned, or is itself
	// pinned by a GatedSource. Also a reason of Stalled.
	SourceNotPinnableReason = "SourceNotPinnable"
	// SourceNotOursReason means that a source with the name of the pinned one
	// exists but does not belong to this GatedSource, or that an older GatedSource
	// pins that name. Also a reason of Stalled.
	SourceNotOursReason = "SourceNotOurs"
	// RevisionPromotedReason is the reason of the event about a promotion.
	RevisionPromotedReason = "RevisionPromoted"
	// RevisionApprovedReason is the reason of the event about an approval, and of
	// the promotion of an approved revision.
	RevisionApprovedReason = "RevisionApproved"
	// RevisionWaitsReason is the reason of the event about a revision that waits.
	RevisionWaitsReason = "RevisionWaits"
)

// Reasons of events on targets and on the Gates that hold them, and in
// status.history. PassGranted is also a reason of the condition Approved.
const (
	// PassGrantedReason means that one reconciliation of a held target passes.
	PassGrantedReason = "PassGranted"
	// PassEndedReason means that the target is held again, or that no Gate holds it
	// anymore.
	PassEndedReason = "PassEnded"
	// PassRefusedReason means that a request for a pass was refused.
	PassRefusedReason = "PassRefused"
)

// RequestAcceptedReason is the reason of the event on a Gate that accepts a
// request, and on the targets that it holds then.
const RequestAcceptedReason = "RequestAccepted"

// RequestPlannedReason is the reason of the event on a Gate that accepts a
// request for a later time, and on the targets that it holds then. Also in
// status.history.
const RequestPlannedReason = "RequestPlanned"

// RequestApprovedReason is the reason of the event on a Gate and of the entry in
// status.history about an approval of an open request.
const RequestApprovedReason = "RequestApproved"

// EmergencyOpenedReason is the reason of the event on a Gate that opens without the
// approvals that spec.approvals requires, and on the targets that it holds then.
const EmergencyOpenedReason = "EmergencyOpened"

// RequestRefusedReason is the reason of the event on a Gate whose request
// annotation has an unusable value, and on the targets that it holds then.
const RequestRefusedReason = "RequestRefused"

// RequestWithdrawnReason is the reason of the event on a Gate, and on the targets
// that it holds then, about a request with the duration 0s: it withdraws those
// for the opposite action. Also in status.history.
const RequestWithdrawnReason = "RequestWithdrawn"

// Reasons of events on a Gate with spec.notifyBefore, and on one of its targets of
// each kind in each namespace.
const (
	// GateOpensSoonReason means that the Gate will open, and GateClosesSoonReason that it
	// will close.
	GateOpensSoonReason  = "GateOpensSoon"
	GateClosesSoonReason = "GateClosesSoon"
	// AnnouncementCalledOffReason means that an announced change of the state will
	// not take place.
	AnnouncementCalledOffReason = "AnnouncementCalledOff"
)

// AmbiguousScheduleReason is the reason of the event on a Gate or a
// GateException with a cron schedule that restricts both the day of month and
// the day of week: in cron, a day that matches either counts.
const AmbiguousScheduleReason = "AmbiguousSchedule"

// Reasons in status.targets.failures.
const (
	// UnsupportedKindReason means that the controller has no way to hold this kind.
	UnsupportedKindReason = "UnsupportedKind"
	// CRDNotFoundReason means that the kind is supported but not installed.
	CRDNotFoundReason = "CRDNotFound"
	// AccessDeniedReason means that the target is in another namespace and the controller
	// runs with --no-cross-namespace-refs, or that the controller does not watch that
	// namespace. Also the reason of the condition Approved of an object that is held because
	// it names a Gate in another namespace.
	AccessDeniedReason = "AccessDenied"
	// WriteFailedReason means that the API server refused to hold or to release the
	// target, or to write a GateLock first.
	WriteFailedReason = "WriteFailed"
	// StatusWriteFailedReason means that the target has the desired state, but the
	// condition that reports it could not be written, or the target could not be
	// read for it.
	StatusWriteFailedReason = "StatusWriteFailed"
	// CalendarFailedReason means that the calendar of a period is missing or cannot be
	// read. A close period with it closes all the time, an open period with it never opens.
	CalendarFailedReason = "CalendarFailed"
	// LockFullReason means that a GateLock has no room for all selectors of the
	// Gate. Only the controller holds the remaining targets.
	LockFullReason = "LockFull"
	// ReadFailedReason means that the targets of a kind could not be read.
	ReadFailedReason = "ReadFailed"
)
