package controllers

import "github.com/fluxcd/gating-controller/internal/summary"

// targetResult is the result of a pass over a target.
type targetResult struct {
	summary.Result
	recheck
}

// failed records why a pass failed.
func (res targetResult) failed(reason string, err error) (targetResult, error) {
	res.Failure = &summary.Failure{Reason: reason, Message: err.Error()}
	return res, err
}
