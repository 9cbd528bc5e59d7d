package ui

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// badgeAge is how long clients may cache a badge, in seconds.
const badgeAge = "10"

// badgeColors are the background colors of the states, dark enough for white letters.
var badgeColors = map[string]string{"open": "#157a3a", "closed": "#5a6673", unknown: "#8a4b00"}

const unknown = "unknown"

// badge serves an image with the state of a Gate, for other web pages.
func (h *handler) badge(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), making)
	defer cancel()
	code, name, word := h.stateOf(ctx, r.PathValue("namespace"), r.PathValue("file"))
	header := w.Header()
	header.Set("Content-Type", "image/svg+xml")
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Cache-Control", "public, max-age="+badgeAge)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a network deadline
	w.WriteHeader(code)
	_, _ = fmt.Fprint(w, badgeOf(name, word)) //nolint:gosec // each text is escaped; a client that has left gets nothing
}

// stateOf returns the name and the state of a Gate. file is the name of the Gate with the suffix .svg. If the code is not 200, the name
// is "gate" and the state is unknown.
func (h *handler) stateOf(ctx context.Context, namespace, file string) (code int, name, word string) {
	name, isPicture := strings.CutSuffix(file, ".svg")
	if !isPicture {
		return http.StatusNotFound, "gate", unknown
	}
	end, err := h.anonymous.begin(ctx, "")
	if err != nil {
		return codeOf(err), "gate", unknown
	}
	begin := h.Clock.Now()
	defer func() { end(h.Clock.Since(begin)) }()
	known, err := h.Anonymous.Gates(ctx, namespace, name)
	if err != nil {
		return codeOf(err), "gate", unknown
	}
	i := slices.IndexFunc(known.Gates, func(g *v1alpha1.Gate) bool { return g.Name == name && g.Namespace == namespace })
	if i < 0 {
		return http.StatusNotFound, "gate", unknown
	}
	return http.StatusOK, name, wordOf(known.Gates[i])
}

// wordOf returns the state of a Gate as a word.
func wordOf(g *v1alpha1.Gate) string {
	word := unknown
	if last := g.Status.LastTransition; last != nil && g.Status.ObservedGeneration > 0 {
		word = strings.Replace(string(last.State), string(v1alpha1.StateOpened), "open", 1)
	}
	switch {
	case g.Audits():
		return word + " (audit)"
	case g.Spec.Suspend:
		return word + " (suspended)"
	}
	return word
}

// badgeOf draws a badge.
func badgeOf(name, word string) template.HTML {
	state, _, _ := strings.Cut(word, " ")
	left, right := part{Label: name}.plate()+4, part{Label: word}.plate()+4
	text := func(at int, text string) string {
		return fmt.Sprintf(`<text x="%d" y="14">%s</text>`, at, template.HTMLEscapeString(text))
	}
	title := template.HTMLEscapeString("Gate " + name + ": " + word)
	return template.HTML(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s"><title>%s</title>`, left+right, title, title) + //nolint:gosec // each text is escaped
		fmt.Sprintf(`<rect width="%d" height="20" rx="3" fill="%s"/><path d="M3 0h%dv20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#2a323c"/>`, left+right, badgeColors[state], left-3) +
		`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">` + text(6, name) + text(left+6, word) + `</g></svg>`)
}
