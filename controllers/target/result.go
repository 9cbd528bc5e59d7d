package target

import (
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// Result is the result of a pass over a target.
type Result struct {
	summary.Result
	view.Recheck
}

// failed returns res with the reason why the pass failed, and err.
func (res Result) failed(reason string, err error) (Result, error) {
	res.Failure = &summary.Failure{Reason: reason, Message: err.Error()}
	return res, err
}
