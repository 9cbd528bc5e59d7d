package ui

import (
	"html/template"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// functions are the functions that templates can call.
var functions = template.FuncMap{
	"words":     preview.ShortReason,
	"printable": format.Printable,
	"only":      gate.Only,
	"short":     short,
	"happened":  happened,
	"legend":    legend,
	"states":    func() []string { return []string{"opened", "closed", "unknown"} },
}

// short shortens a revision for display.
func short(revision string) string {
	if revision == "" {
		return "–"
	}
	return explain.ShortRevision(revision)
}

// happened describes an entry of the history.
func happened(e v1alpha1.HistoryEntry) string {
	text := string(e.Action) + " " + preview.ShortReason(e.Reason, e.DecidedBy())
	if e.State != "" {
		text = string(e.State) + ", " + preview.ShortReason(e.Reason, e.DecidedBy())
	}
	if e.Targets != "" {
		text += ", only " + e.Targets
	}
	if e.Refused != "" {
		text += ": " + e.Refused
	}
	return format.Printable(strings.TrimSpace(text))
}

// legend explains the patterns. If bare is set, it explains only the patterns of the states.
func legend(bare bool) []part {
	if bare {
		return []part{{Kind: "opened", Label: "open"}, {Kind: "closed", Label: "closed"}}
	}
	return []part{
		{Kind: "opened", Label: "open"}, {Kind: "opened-request", Label: "open by request"}, {Kind: "opened-exception", Label: "open by exception"},
		{Kind: "closed", Label: "closed"}, {Kind: "closed-period", Label: "close period"}, {Kind: "closed-request", Label: "closed by request"},
		{Kind: "closed-exception", Label: "closed by exception"}, {Kind: "closed-fault", Label: "cannot be decided"},
	}
}

// SVG is a sample of a pattern.
func (p part) SVG() template.HTML {
	return template.HTML(`<svg width="30" height="16" aria-hidden="true"><rect class="part" width="30" height="16" fill="url(#` + p.Kind + `)"/></svg>`) //nolint:gosec // it is one of ours
}
