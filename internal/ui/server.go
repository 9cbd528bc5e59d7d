// Package ui serves pages that show what is open, what comes, and what waits. They change nothing: a page has the commands that would.
package ui

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"log"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

//go:embed templates static
var files embed.FS

// Known is what a viewer may see of the Gates of a cluster.
type Known struct {
	// Set has the Gates with their exceptions and calendars.
	Set *preview.Set
	// Gates and Exceptions are those of the set.
	Gates      []*v1alpha1.Gate
	Exceptions []*v1alpha1.GateException
	// Calendars are those of the Gates.
	Calendars gate.Calendars
	// Notes say what the viewer may not see.
	Notes []string
}

// Target is an object that a Gate governs.
type Target struct {
	explain.Waiting
	// State is what the object is, as a word.
	State string
}

// Reader reads what a viewer may see. Each error says what to do.
type Reader interface {
	// Gates returns all Gates, or those of a namespace if it is not empty.
	Gates(ctx context.Context, namespace string) (*Known, error)
	// Targets returns the targets of a Gate that are not free, and what the viewer may not see of them.
	Targets(ctx context.Context, g *v1alpha1.Gate) ([]Target, []string, error)
	// Why explains an object.
	Why(ctx context.Context, kind, namespace, name string) (*explain.Explanation, error)
	// Changes calls a function after each change of a Gate, until the context ends.
	Changes(ctx context.Context, changed func()) error
}

// Missing is the error for an object that does not exist, or that the viewer may not see.
type Missing struct{ Cause error }

// Error implements error.
func (m Missing) Error() string { return m.Cause.Error() }

// Unwrap returns the cause.
func (m Missing) Unwrap() error { return m.Cause }

// Options of the pages.
type Options struct {
	Reader Reader
	// Clock is read once for each page.
	Clock clock.PassiveClock
	// Zone is that of the viewer.
	Zone *time.Location
	// Command is how the plug-in is called, such as kubectl gate.
	Command string
	// Namespace is that of manifests that name none.
	Namespace string
	// Log gets the errors of the server itself.
	Log *log.Logger
}

// handler answers requests.
type handler struct {
	Options
	pages map[string]*template.Template
	live  *live
	// making has a value for each page that is made.
	making chan struct{}
}

const (
	// maxMaking is how many pages are made at once. Others wait.
	maxMaking = 4
	// making and sending are how long that may take.
	making, sending = 30 * time.Second, 20 * time.Second
)

// New returns what serves the pages. They link to each other by relative paths, so that they can be served below any path that ends
// with a slash.
func New(o Options) http.Handler {
	h := &handler{Options: o, pages: map[string]*template.Template{}, live: newLive(o.Reader), making: make(chan struct{}, maxMaking)}
	for _, name := range []string{"overview", "gate", "month", "target", "whatif", "error"} {
		h.pages[name] = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/"+name+".html"))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/{file}", http.FileServerFS(files)) // no folder and no template
	mux.HandleFunc("GET /{$}", h.page("overview", h.overview))
	mux.HandleFunc("GET /gate/{namespace}/{name}", h.page("gate", h.gate))
	mux.HandleFunc("GET /gate/{namespace}/{name}/month", h.page("month", h.month))
	mux.HandleFunc("GET /target/{kind}/{namespace}/{name}", h.page("target", h.target))
	mux.HandleFunc("GET /what-if", h.page("whatif", h.emptyWhatIf))
	mux.HandleFunc("POST /what-if", h.page("whatif", h.whatIf))
	mux.HandleFunc("GET /changes", h.live.serve)
	mux.HandleFunc("/", h.page("error", func(*request) (any, error) { return nil, Missing{Cause: errors.New("there is no such page")} }))
	return guarded(mux)
}

// guarded adds what a browser needs to know: nothing comes from elsewhere, and no script or style is in a page.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// request is one for a page.
type request struct {
	*http.Request
	view view
}

// page returns what answers with a page, or with one that says what is wrong.
func (h *handler) page(name string, of func(*request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), making)
		defer cancel()
		code, page, err := h.make(r.WithContext(ctx), name, of)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a deadline of the network, decides nothing
		if err != nil {
			h.Log.Printf("page %s: %v", name, err)
			http.Error(w, "The page cannot be made, the log says why.", http.StatusInternalServerError)
			return
		}
		page.send(w, r, code)
	}
}

// make makes a page. The error is that there is none, not even one that says what is wrong.
func (h *handler) make(r *http.Request, name string, of func(*request) (any, error)) (code int, made *packed, err error) {
	asks := &request{Request: r}
	var content any
	select {
	case h.making <- struct{}{}:
		defer func() { <-h.making }()
		if asks.view, err = h.view(r, nil); err == nil {
			content, err = of(asks)
		}
	case <-r.Context().Done():
		err = r.Context().Err()
	}
	code = codeOf(err)
	if err != nil {
		name, content = "error", fault{http.StatusText(code), err.Error(), hints[code]}
	}
	made = &packed{}
	return code, made, made.pack(func(w io.Writer) error {
		return h.pages[name].ExecuteTemplate(w, "layout", layout{asks.view, content, name})
	})
}

// layout is what is on each page.
type layout struct {
	View    view
	Content any
	// Name is that of the page.
	Name string
}
