package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// Limits of a preview of changes.
const (
	// maxManifests bounds the size of an upload in bytes, including the overhead of a form.
	maxManifests = 1<<20 + 4096
	// maxRead bounds how many bytes of an upload that is too large are read and discarded, because a browser shows no response before it has
	// sent everything.
	maxRead = 64 << 20
	// maxTried bounds the number of Gates in the manifests.
	maxTried = 200
	// maxPreviews bounds the number of previews on one page.
	maxPreviews = 4
	// maxFaults bounds the number of faults that are shown.
	maxFaults = 50
)

// whatIfPage is the form, and the result.
type whatIfPage struct {
	Manifests string
	// Faults describe the problems with the manifests, and More is the number of faults that are
	// not shown.
	Faults []string
	More   int
	// Tried is true if there is a result.
	Tried bool
	Axis  axis
	Gates []tried
	Notes []string
}

// tried is a Gate before and after the change.
type tried struct {
	Name, Change string
	Before       *bar
	After        *bar
	Differences  []preview.Difference
}

func (h *handler) emptyWhatIf(*request) (content, error) { return fixed(whatIfPage{}), nil }

// whatIf shows how the uploaded manifests would change the Gates. It stores nothing.
func (h *handler) whatIf(r *request) (content, error) {
	known, err := r.viewer.Gates(r.Context(), "", "")
	return content{make: func() (any, error) { return h.tries(r, known) }}, err
}

// tries returns the content of the page for the uploaded manifests.
func (h *handler) tries(r *request, known *Visible) (whatIfPage, error) {
	page := whatIfPage{Manifests: r.uploaded, Axis: axisOf(r.view)}
	manifests := preview.NewSet(h.Namespace).Validating(h.Validate)
	err := manifests.Read("manifests", strings.NewReader(r.uploaded))
	if err == nil {
		err = manifests.Err()
	}
	if names := manifests.Gates(); err == nil && len(names) == 0 {
		err = errors.New("there is no gate and no exception in the manifests")
	} else if err == nil && len(names) > maxTried {
		err = fmt.Errorf("the manifests name %d gates: try at most %d at once", len(names), maxTried)
	}
	if err != nil {
		return page.fails(err), nil
	}
	page.Notes = slices.Clone(known.Notes)
	page = page.try(known.Set.Within(r.Context(), preview.PageLookups/maxPreviews), manifests, r.view)
	return page, r.Context().Err()
}

// try adds to the page how the manifests would change the Gates of the cluster.
func (p whatIfPage) try(before, manifests *preview.Set, v view) whatIfPage {
	after := before.Applied(manifests)
	changes, warnings, err := preview.Diff(before, after, v.Range)
	if err != nil {
		return p.fails(err)
	}
	changed := map[string]bool{}
	for _, c := range changes.Gates {
		changed[c.Gate] = true
	}
	others := func(obj metav1.Object) bool {
		if e, ok := obj.(*v1alpha1.GateException); ok {
			return !changed[e.Namespace+"/"+e.Spec.GateRef.Name]
		}
		return !changed[obj.GetNamespace()+"/"+obj.GetName()]
	}
	now, _, err := before.Without(others).Preview(v.Range)
	if err != nil {
		return p.fails(err)
	}
	then, _, err := after.Without(others).Preview(v.Range)
	if err != nil {
		return p.fails(err)
	}
	for _, warning := range warnings {
		if warning.File != "" || warning.Incomplete {
			p.Notes = append(p.Notes, warning.String())
		}
	}
	p.Tried = true
	for _, c := range changes.Gates {
		p.Gates = append(p.Gates, tried{c.Gate, c.Change, barIn(now, c.Gate, v), barIn(then, c.Gate, v), c.Differences})
	}
	return p
}

// fails returns the page with the faults in an error, at most maxFaults of them.
func (p whatIfPage) fails(err error) whatIfPage {
	p.Faults = []string{err.Error()}
	if invalid := (*preview.InvalidError)(nil); errors.As(err, &invalid) {
		p.Faults, p.More = nil, max(0, len(invalid.Faults)-maxFaults)
		for _, fault := range invalid.Faults[:min(len(invalid.Faults), maxFaults)] {
			p.Faults = append(p.Faults, fault.String())
		}
	}
	return p
}

// barIn returns the bar of a Gate in a report, nil if the report does not contain the Gate.
func barIn(report *preview.Report, name string, v view) *bar {
	for _, t := range report.Gates {
		if t.Gate == name {
			b := barOf(t, v)
			return &b
		}
	}
	return nil
}

// upload reads the manifests of a request before its page counts as being rendered, so that a slow sender delays only other senders. The
// caller must call end once the page has been rendered and the manifests can be freed.
func (h *handler) upload(r *request) (end func(time.Duration), err error) {
	if end, err = h.forms.Begin(r.Context(), r.viewer.Person); err != nil {
		return nil, err
	}
	if r.uploaded, err = uploaded(r); err != nil {
		end(0)
		return nil, err
	}
	return end, nil
}

// uploaded returns the pasted or uploaded manifests. The file takes precedence.
func uploaded(r *request) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxManifests+1))
	if err != nil {
		return "", badf("the form cannot be read: %s", err)
	}
	if len(raw) > maxManifests {
		_, _ = io.CopyN(io.Discard, r.Body, maxRead) // a browser that sends even more shows no response
		return "", Refused{http.StatusRequestEntityTooLarge, errors.New("the manifests are larger than 1 MiB: go back and try fewer at once, or use kubectl gate diff")}
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	if err := r.ParseMultipartForm(maxManifests); err != nil {
		return "", badf("the form cannot be read: %s", err)
	}
	file, _, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) {
		return r.FormValue("manifests"), nil
	}
	if err != nil {
		return "", badf("the file cannot be read: %s", err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(file)
	if err != nil {
		return "", badf("the file cannot be read: %s", err)
	}
	if len(content) == 0 {
		return r.FormValue("manifests"), nil
	}
	return string(content), nil
}
