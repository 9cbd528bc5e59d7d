// Package ui serves pages that show what is open, what comes, and what waits. They change nothing: a page has the commands that would.
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

// Visible is what a viewer may see of the Gates of a cluster.
type Visible struct {
	// Set has the Gates with their exceptions and calendars, to compute when they are open. It has all of them, also for a viewer who may
	// only know what comes of it.
	Set *preview.Set
	// Gates and Exceptions are those of the set, as the viewer may see them.
	Gates      []*v1alpha1.Gate
	Exceptions []*v1alpha1.GateException
	// Notes say what the viewer may not see.
	Notes []string
	// Version names all that decides when a Gate of the set is open, so that this need not be computed again. Nil if nobody knows.
	Version func(g *v1alpha1.Gate) string
}

// Target is an object that a Gate governs.
type Target struct {
	explain.Waiting
	// State is what the object is, as a word.
	State string
}

// Reader reads what a viewer may see. Each error says what to do.
type Reader interface {
	// Gates returns all Gates, those of a namespace if it is not empty, or at least the one that is named, if there is a name.
	Gates(ctx context.Context, namespace, name string) (*Visible, error)
	// Targets returns the targets of a Gate that are not free, and what the viewer may not see of them.
	Targets(ctx context.Context, g *v1alpha1.Gate) ([]Target, []string, error)
	// Why explains an object.
	Why(ctx context.Context, kind, namespace, name string) (*explain.Explanation, error)
	// Subscriptions returns the calendars that show a Gate, as far as the viewer may know their paths.
	Subscriptions(ctx context.Context, g *v1alpha1.Gate) ([]Subscription, error)
	// Sees returns whether a change in one of some namespaces may change what the viewer sees.
	Sees(ctx context.Context, namespaces []string) (bool, error)
}

// Viewer is who looks at a page.
type Viewer struct {
	Reader
	// Key is the same for viewers who see the same, at all times.
	Key string
	// Person is the same for all tokens of a person. What viewers share is divided among persons.
	Person string
	// Bare is whether the viewer may know names, states and times only. The Reader returns Gates that have nothing else.
	Bare bool
}

// Viewers know who looks at pages.
type Viewers interface {
	// Of returns who has sent a request. The error is a Refused for somebody who may see nothing.
	Of(r *http.Request) (Viewer, error)
	// Changes calls a function after each change of what pages show, with its namespace, until the context ends.
	Changes(ctx context.Context, changed func(namespace string)) error
}

// Refused is the error for a page that nobody gets, with the code of the answer.
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

// Options of the pages.
type Options struct {
	Viewers Viewers
	// Anyone reads what everybody may see, for badges. Nil is for no badges.
	Anyone Reader
	// Clock is read once for each page.
	Clock clock.PassiveClock
	// Zone is that of the viewer.
	Zone *time.Location
	// AnyZone is whether the zone of the viewer is not known here: a browser says it, and gets that of Zone unless it does.
	AnyZone bool
	// Alone is whether the pages are for one person, on their own machine: making pages may take all of a processor.
	Alone bool
	// Command is how the plug-in is called, such as kubectl gate.
	Command string
	// Namespace is that of manifests that name none.
	Namespace string
	// Validate returns the errors of a manifest. If it is nil, as in the controller, manifests are only decoded.
	Validate func(*unstructured.Unstructured) field.ErrorList
	// Log gets the errors of the server itself.
	Log *log.Logger
}

// handler answers requests.
type handler struct {
	Options
	pages map[string]*template.Template
	live  *live
	// forms bounds the uploads that are in memory until their pages are rendered.
	forms *limit.Limiter
	// people are authenticated viewers, strangers are anonymous.
	people, strangers *crowd
	rendered          *renderCache
	// drawn are the bars of Gates.
	drawn *cache[template.HTML]
}

const (
	// maxRendered and maxDrawn bound the stored pages and bars in bytes: half is enough for 1,000 Gates of ten periods.
	maxRendered, maxDrawn = 4 << 20, 18 << 20
	// making and sending are how long that may take.
	making, sending = 30 * time.Second, 20 * time.Second
)

// New returns what serves the pages. They link to each other by relative paths, so that they can be served below any path that ends
// with a slash.
func New(o Options) http.Handler {
	h := &handler{
		Options: o, pages: map[string]*template.Template{}, live: newLive(o.Viewers, o.Clock),
		people: newCrowd(o.Alone), strangers: newCrowd(o.Alone), forms: limit.New(maxForms, maxForms/2, 0, 0),
		rendered: newRenderCache(o.Clock), drawn: newCache[template.HTML](maxDrawn),
	}
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
	if o.Anyone != nil {
		mux.HandleFunc("GET /badge/{namespace}/{file}", h.badge)
	}
	mux.HandleFunc("/", h.page("error", func(*request) (content, error) { return content{}, Missing{Cause: errors.New("there is no such page")} }))
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
