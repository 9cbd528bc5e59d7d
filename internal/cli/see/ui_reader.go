package see

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/ui"
)

// uiReader reads the data of the web UI with the permissions of the user.
type uiReader struct {
	factory *kube.Factory
	cluster *kube.Cluster
	// kinds is a lock, because reading objects may change the registered kinds.
	kinds chan struct{}
}

// lockKinds waits until no other request is reading objects. The caller must call done afterwards.
func (r *uiReader) lockKinds(ctx context.Context) (done func(), err error) {
	select {
	case r.kinds <- struct{}{}:
		return func() { <-r.kinds }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// withNotes returns a factory, a cluster, and a function that returns their warnings as notes for a page.
func (r *uiReader) withNotes(namespace string) (s *kube.Factory, c *kube.Cluster, notes func() []string) {
	var said bytes.Buffer
	k, quiet, in := *r.factory, *r.factory.Terminal, *r.cluster
	quiet.ErrOut = &said
	k.Terminal, in.Warn = &quiet, quiet.Warn
	if namespace != "" {
		in.Namespace = namespace
	}
	return &k, &in, func() (notes []string) {
		for line := range strings.Lines(said.String()) {
			notes = append(notes, strings.TrimPrefix(strings.TrimSpace(line), "warning: "))
		}
		return notes
	}
}

// Of implements ui.Viewers. Every viewer has the permissions of the user, because only the user knows the secret in the path.
func (r *uiReader) Of(*http.Request) (ui.Viewer, error) { return ui.Viewer{Reader: r}, nil }

// Sees implements ui.Reader.
func (r *uiReader) Sees(context.Context, []string) (bool, error) { return true, nil }

// Gates implements ui.Reader.
func (r *uiReader) Gates(ctx context.Context, namespace, _ string) (*ui.Visible, error) {
	s, c, notes := r.withNotes(namespace)
	gates, err := c.Gates(ctx, kube.Scope{All: namespace == ""})
	if apierrors.IsForbidden(err) && namespace == "" {
		s.Warn("you may not list gates in all namespaces, these are the gates of %q", c.Namespace)
		gates, err = c.Gates(ctx, kube.Scope{})
	}
	if err != nil {
		return nil, err
	}
	known := &ui.Visible{Gates: gates}
	known.Set, known.Exceptions = kube.PreviewSetAndExceptions(ctx, s.Terminal, c, gates)
	known.Notes = notes()
	return known, nil
}

// Targets implements ui.Reader.
func (r *uiReader) Targets(ctx context.Context, g *v1alpha1.Gate) ([]ui.Target, []string, error) {
	done, err := r.lockKinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	s, c, notes := r.withNotes(g.Namespace)
	o, err := s.Objects(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	lines, err := readTargets(ctx, o, g, s.Clock.Now())
	if err != nil {
		return nil, nil, err
	}
	if refusal := o.Denied(); refusal != "" {
		s.Warn("%s; targets of these kinds are only counted", refusal)
	}
	targets := make([]ui.Target, len(lines))
	for i, line := range lines {
		targets[i] = ui.Target{Waiting: line.Waiting, State: string(line.state)}
	}
	return targets, notes(), nil
}

// Why implements ui.Reader.
func (r *uiReader) Why(ctx context.Context, kind, namespace, name string) (*explain.Explanation, error) {
	done, err := r.lockKinds(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, c, notes := r.withNotes(namespace)
	e, err := explainObject(ctx, s, c, kind, name, s.Clock.Now())
	if network := net.Error(nil); apierrors.IsForbidden(err) || errors.As(err, &network) || ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, ui.Missing{Cause: err}
	}
	e.Notes = append(e.Notes, notes()...)
	return e, nil
}

// Subscriptions implements ui.Reader.
func (r *uiReader) Subscriptions(ctx context.Context, g *v1alpha1.Gate) ([]ui.Subscription, error) {
	list := &v1alpha1.CalendarFeedList{}
	if err := r.cluster.List(ctx, list, client.InNamespace(g.Namespace)); apierrors.IsForbidden(err) || kube.IsUnknownResource(err) {
		return nil, nil
	} else if err != nil {
		return nil, kube.NewCall("list", "calendarfeeds", g.Namespace, "", "calendar-feed-viewer").Explain(err)
	}
	return ui.SubscriptionsTo(g, list.Items), nil
}

// Changes implements ui.Viewers. It watches Gates, and exceptions if the user may watch them.
func (r *uiReader) Changes(ctx context.Context, changed func(namespace string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gates, err := r.watch(ctx, &v1alpha1.GateList{})
	if err != nil {
		return err
	}
	defer gates.Stop()
	var ofExceptions <-chan watch.Event // a nil channel never receives
	exceptions, err := r.watch(ctx, &v1alpha1.GateExceptionList{})
	switch {
	case err == nil:
		defer exceptions.Stop()
		ofExceptions = exceptions.ResultChan()
	case !apierrors.IsForbidden(err):
		return err
	}
	for {
		var event watch.Event
		open := false
		select {
		case event, open = <-gates.ResultChan():
		case event, open = <-ofExceptions:
		}
		if !open {
			return nil
		}
		if obj, ok := event.Object.(client.Object); ok && event.Type != watch.Bookmark {
			changed(obj.GetNamespace())
		}
	}
}

// watch watches a kind in all namespaces. If the user is not permitted to do that, it watches the namespace of the command.
func (r *uiReader) watch(ctx context.Context, kind client.ObjectList) (watch.Interface, error) {
	events, err := r.cluster.Watch(ctx, kind)
	if apierrors.IsForbidden(err) {
		events, err = r.cluster.Watch(ctx, kind, client.InNamespace(r.cluster.Namespace))
	}
	return events, err
}
