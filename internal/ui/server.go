// Package ui serves the web UI, which shows when Gates are open, and which changes are planned or waiting. Pages are read-only. They
// show the commands that make changes.
package ui

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"log"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/limit"
	"github.com/fluxcd/gating-controller/internal/preview"
)

//go:embed templates static
var files embed.FS

// Visible contains the Gates of a cluster that a viewer may see.
type Visible struct {
	// Set contains the Gates with their exceptions and calendars, to compute when they are open. It is complete even if the viewer may see
	// only the results.
	Set *preview.Set
	// Gates and Exceptions are the objects of the set, in the form that the viewer may see.
	Gates      []*v1alpha1.Gate
	Exceptions []*v1alpha1.GateException
	// Notes describe the objects that the viewer may not see.
	Notes []string
	// Version returns a text that identifies all inputs that determine when a Gate of the set is open, for cache keys. It is nil if these
	// inputs are unknown.
	Version func(g *v1alpha1.Gate) string
}

// Target is an object that a Gate governs.
type Target struct {
	explain.Waiting
	// State is the state of the object, as a word.
	State string
}

// Reader reads what a viewer may see. Errors include the next step.
type Reader interface {
	// Gates returns the visible Gates of a namespace, or of all namespaces if namespace is empty. If name is set, it may return only that
	// Gate.
	Gates(ctx context.Context, namespace, name string) (*Visible, error)
	// Targets returns the targets of a Gate that are not free, with notes about targets that the viewer may not see.
	Targets(ctx context.Context, g *v1alpha1.Gate) ([]Target, []string, error)
	// Why explains an object.
	Why(ctx context.Context, kind, namespace, name string) (*explain.Explanation, error)
	// Subscriptions returns the calendars that show a Gate, with the paths that the viewer may see.
	Subscriptions(ctx context.Context, g *v1alpha1.Gate) ([]Subscription, error)
	// Sees returns whether the viewer may see a change in one of the namespaces.
	Sees(ctx context.Context, namespaces []string) (bool, error)
}

// Viewer is a user of the web UI.
type Viewer struct {
	Reader
	// Key is the same for viewers who always see the same content.
	Key string
	// Person is the same for all tokens of a user. Shared resources are divided among users.
	Person string
	// Bare is true if the viewer may see only names, states and times. The Reader then returns Gates without other fields.
	Bare bool
}

// Viewers authenticates viewers.
type Viewers interface {
	// Of returns the viewer that sent a request. The error is a Refused if the viewer may see
	// nothing.
	Of(r *http.Request) (Viewer, error)
	// Changes calls a function with the namespace of each visible change, until the context ends.
	Changes(ctx context.Context, changed func(namespace string)) error
}

// Refused is the error for a refused page, with the status code.
type Refused struct {
	Code  int
	Cause error
}

// Error implements error.
func (r Refused) Error() string { return r.Cause.Error() }

// Unwrap returns the cause.
func (r Refused) Unwrap() error { return r.Cause }

// Missing is the error for an object that does not exist, or that the viewer may not see.
type Missing struct{ Cause error }

// Error implements error.
func (m Missing) Error() string { return m.Cause.Error() }

// Unwrap returns the cause.
func (m Missing) Unwrap() error { return m.Cause }

// Options configure the web UI.
type Options struct {
	Viewers Viewers
	// Anonymous reads what all viewers may see, for badges. If it is nil, there are no badges.
	Anonymous Reader
	// Clock is read once for each page.
	Clock clock.PassiveClock
	// Zone is the time zone of the viewer.
	Zone *time.Location
	// AnyZone is true if the time zone of the viewer is unknown. The browser then sends the time zone, and Zone is the default.
	AnyZone bool
	// Alone is true if the server is for a single user, on their own machine. Rendering may then use a whole CPU.
	Alone bool
	// Command is the command that runs the plugin, such as kubectl gate.
	Command string
	// Namespace is the namespace for manifests that have none.
	Namespace string
	// Validate returns the errors of a manifest. If it is nil, as in the controller, manifests are decoded but not validated.
	Validate func(*unstructured.Unstructured) field.ErrorList
	// Log is the log for errors of the server.
	Log *log.Logger
}

// handler serves requests.
type handler struct {
	Options
	pages map[string]*template.Template
	live  *live
	// forms bounds the number of uploads that are kept in memory until their pages are rendered.
	forms *limit.Limiter
	// rendering allows only one page to be rendered at a time, to bound the memory.
	rendering *limit.Limiter
	// authenticated and anonymous are the limits for these groups of viewers.
	authenticated, anonymous *viewerLimits
	rendered                 *renderCache
	// drawn caches the bars of Gates.
	drawn *cache[template.HTML]
}

const (
	// maxRendered and maxDrawn bound the size of stored pages and bars in bytes. Half of that is enough for 1,000 Gates with ten periods
	// each.
	maxRendered, maxDrawn = 4 << 20, 18 << 20
	// making and sending are the timeouts for rendering and sending a page.
	making, sending = 30 * time.Second, 20 * time.Second
)

// New returns the handler of the web UI. Links are relative, so the web UI can be served below any path that ends with a slash.
func New(o Options) http.Handler {
	h := &handler{
		Options: o, pages: map[string]*template.Template{}, live: newLive(o.Viewers, o.Clock),
		authenticated: newViewerLimits(o.Alone), anonymous: newViewerLimits(o.Alone), forms: limit.New(maxForms, maxForms/2, 0, 0), rendering: limit.New(1, 1, 0, 0),
		rendered: newRenderCache(o.Clock), drawn: newCache[template.HTML](maxDrawn),
	}
	for _, name := range []string{"overview", "gate", "month", "target", "whatif", "error"} {
		h.pages[name] = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/"+name+".html"))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/{file}", http.FileServerFS(files)) // serves files only, neither folders nor templates
	mux.HandleFunc("GET /{$}", h.page("overview", h.overview))
	mux.HandleFunc("GET /gate/{namespace}/{name}", h.page("gate", h.gate))
	mux.HandleFunc("GET /gate/{namespace}/{name}/month", h.page("month", h.month))
	mux.HandleFunc("GET /target/{kind}/{namespace}/{name}", h.page("target", h.target))
	mux.HandleFunc("GET /what-if", h.page("whatif", h.emptyWhatIf))
	mux.HandleFunc("POST /what-if", h.page("whatif", h.whatIf))
	mux.HandleFunc("GET /changes", h.live.serve)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/gates/{name}", h.state)
	if o.Anonymous != nil {
		mux.HandleFunc("GET /badge/{namespace}/{file}", h.badge)
	}
	mux.HandleFunc("/", h.page("error", func(*request) (content, error) { return content{}, Missing{Cause: errors.New("there is no such page")} }))
	return guarded(mux)
}

// guarded sets headers that forbid content from other origins, and scripts and styles in pages.
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
