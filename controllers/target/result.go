package target

import (
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// TargetResult is the result of a pass over a target.
type TargetResult struct {
	summary.Result
	view.Recheck
}

// failed records why a pass failed.
func (res TargetResult) failed(reason string, err error) (TargetResult, error) {
	res.Failure = &summary.Failure{Reason: reason, Message: err.Error()}
	return res, err
}
