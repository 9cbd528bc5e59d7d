package webauth

import (
	"context"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/ui"
)

// command is the command that runs the plugin, as shown on pages.
const command = "kubectl gate"

// Options configure Viewers.
type Options struct {
	*Source
	Reviews *Reviews
	// Live reads targets and their sources from the API server, because not every replica caches them.
	Live   client.Reader
	Mapper meta.RESTMapper
	Clock  clock.PassiveClock
	// Own is the namespace of the controller.
	Own string
	// Namespaces reads the labels of namespaces. If it is nil, their labels are unknown.
	Namespaces client.Reader
	// Calendars is true if CalendarFeeds are served.
	Calendars bool
	// Anonymous is true if viewers without a token see names, states and times.
	Anonymous bool
}

// Viewers authenticates viewers, and reads what each viewer may see.
type Viewers struct {
	Options
	snapshots *snapshots
}

// New returns Viewers.
func New(o Options) *Viewers { return &Viewers{o, newSnapshots(o.Clock)} }

// Of implements ui.Viewers.
func (w *Viewers) Of(r *http.Request) (ui.Viewer, error) {
	token, err := bearerToken(r)
	switch {
	case err != nil:
		return ui.Viewer{}, err
	case token == "" && w.Anonymous:
		return ui.Viewer{Reader: anonymousViewer{w}, Bare: true}, nil
	case token == "":
		return ui.Viewer{}, refuse(http.StatusUnauthorized, msgSignIn)
	}
	u, err := w.Reviews.Identify(r.Context(), token)
	if err != nil {
		return ui.Viewer{}, err
	}
	return ui.Viewer{Reader: &viewer{w, u}, Key: u.key, Person: u.name()}, nil
}

// Handler returns the handler of the web UI.
func (w *Viewers) Handler(log logr.Logger, metrics *Metrics) http.Handler {
	options := ui.Options{
		Viewers: w, Clock: w.Clock, Zone: time.UTC, AnyZone: true, Command: command, Namespace: metav1.NamespaceDefault, Log: plain(log),
	}
	if w.Anonymous {
		options.Anonymous = anonymousViewer{w}
	}
	return metrics.counting(ui.New(options))
}

// plain returns a standard logger that writes errors to a logr.Logger.
func plain(to logr.Logger) *log.Logger { return log.New(lines{to}, "", 0) }

// lines logs each write as an error.
type lines struct{ logr.Logger }

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	l.Error(nil, strings.TrimSpace(string(line)))
	return len(line), nil
}

// labels returns a function that reads the labels of a namespace, or nil if labels are unknown. The function returns nil if reading
// fails.
func (w *Viewers) labels(ctx context.Context) func(string) map[string]string {
	if w.Namespaces == nil {
		return nil
	}
	return func(name string) map[string]string {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := w.Namespaces.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
			return nil
		}
		return namespace.Labels
	}
}
