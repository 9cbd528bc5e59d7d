package preview

import (
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// ShortReason formats a reason of the condition Opened, and the name of the period or exception that decides, in two or three words, such
// as close period freeze.
func ShortReason(reason, by string) string {
	text, ok := shortReasons[reason]
	if !ok {
		text = reason
	}
	return strings.TrimSpace(text + " " + by)
}

var shortReasons = map[string]string{
	v1alpha1.InvalidSpecReason:         "invalid spec",
	v1alpha1.CloseRequestedReason:      "close request",
	v1alpha1.ClosePeriodReason:         "close period",
	v1alpha1.DependencyNotReadyReason:  "dependency not ready",
	v1alpha1.OpenRequestedReason:       "open request",
	v1alpha1.NotYetActiveReason:        "before notBefore",
	v1alpha1.ExpiredReason:             "after notAfter",
	v1alpha1.ExceptionAppliesReason:    "exception",
	v1alpha1.OpenPeriodReason:          "open period",
	v1alpha1.OutsideOpenPeriodsReason:  "outside open periods",
	v1alpha1.OutsideClosePeriodsReason: "outside close periods",
	v1alpha1.DefaultReason:             "default",
	v1alpha1.TimeUnknownReason:         "time unknown",
	v1alpha1.GateNotFoundReason:        "gate not found",
	v1alpha1.OverlayStartedReason:      "exception",
	v1alpha1.OverlayEndedReason:        "end of exception",
}
