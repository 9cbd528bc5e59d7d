package ui

import "github.com/fluxcd/gating-controller/internal/explain"

// targetPage is the content of the page for an object.
type targetPage struct{ *explain.Explanation }

func (h *handler) target(r *request) (content, error) {
	e, err := r.viewer.Why(r.Context(), r.PathValue("kind"), r.PathValue("namespace"), r.PathValue("name"))
	return fixed(targetPage{e}), err
}
