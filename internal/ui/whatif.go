package ui

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// maxManifests is how much can be tried at once, in bytes.
const maxManifests = 1 << 20

// whatIfPage is the form, and what came of it.
type whatIfPage struct {
	Manifests string
	// Fault says what is wrong with the manifests.
	Fault string
	// Tried is whether there is a result.
	Tried bool
	Axis  bar
	Gates []tried
	Notes []string
}

// tried is a Gate before and after.
type tried struct {
	Name, Change string
	Before       *bar
	After        *bar
	Stretches    []preview.Stretch
}

func (h *handler) emptyWhatIf(*request) (any, error) { return whatIfPage{}, nil }

// whatIf shows what manifests would change. Nothing is stored.
func (h *handler) whatIf(r *request) (any, error) {
	text, err := uploaded(r)
	if err != nil {
		return nil, err
	}
	page := whatIfPage{Manifests: text, Axis: axis(r.view)}
	known, err := h.Reader.Gates(r.Context(), "")
	if err != nil {
		return nil, err
	}
	page.Notes = known.Notes
	manifests := preview.NewSet("default")
	if err := manifests.Read("manifests", strings.NewReader(text)); err != nil {
		page.Fault = err.Error()
		return page, nil
	}
	if err := manifests.Err(); err != nil {
		page.Fault = err.Error()
		return page, nil
	}
	after := known.Set.Applied(manifests)
	changes, _, err := preview.Diff(known.Set, after, r.view.Range)
	if err != nil {
		page.Fault = err.Error()
		return page, nil
	}
	before, _, err := known.Set.Preview(r.view.Range)
	if err != nil {
		return nil, err
	}
	then, _, err := after.Preview(r.view.Range)
	if err != nil {
		page.Fault = err.Error()
		return page, nil
	}
	page.Tried = true
	for _, c := range changes.Gates {
		page.Gates = append(page.Gates, tried{c.Gate, c.Change, barIn(before, c.Gate, r.view), barIn(then, c.Gate, r.view), c.Stretches})
	}
	return page, nil
}

// barIn returns the drawing of a Gate in a report, nil if it is not in it.
func barIn(report *preview.Report, name string, v view) *bar {
	for _, t := range report.Gates {
		if t.Gate == name {
			b := barOf(t, v)
			return &b
		}
	}
	return nil
}

// uploaded returns the manifests that somebody has pasted or uploaded.
func uploaded(r *request) (string, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxManifests+4096)
	if err := r.ParseMultipartForm(maxManifests); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return "", badf("the manifests are larger than %d KiB: try fewer at once", maxManifests>>10)
		}
		return "", badf("the form cannot be read: %s", err)
	}
	text := r.FormValue("manifests")
	file, _, err := r.FormFile("file")
	switch {
	case errors.Is(err, http.ErrMissingFile):
	case err != nil:
		return "", badf("the file cannot be read: %s", err)
	default:
		return readUpload(file, text)
	}
	return text, nil
}

// readUpload returns a file, or the text that was pasted if the file is empty.
func readUpload(file multipart.File, text string) (string, error) {
	defer file.Close() //nolint:errcheck // it is only read
	raw, err := io.ReadAll(file)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	if len(raw) == 0 {
		return text, nil
	}
	return string(raw), nil
}
