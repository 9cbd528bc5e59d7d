package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Calendars returns the calendars of Gates. A calendar whose ConfigMap does not exist or cannot be read is invalid, as for the
// controller. The error refers to the first ConfigMap that exists but cannot be read.
func Calendars(ctx context.Context, c *Cluster, now time.Time, gates ...*v1alpha1.Gate) (timetable.Calendars, error) {
	set := preview.FromCluster(gates, nil)
	err := AddConfigMaps(ctx, c, set, set.ConfigMaps())
	all := timetable.Calendars{}
	for _, g := range gates {
		for key, calendar := range set.Calendars(g, preview.Range{From: now, Until: now}) {
			all[key] = calendar
		}
	}
	return all, err
}

// AddConfigMaps reads ConfigMaps into a set. It returns the first error. A ConfigMap that does not exist is not an error.
func AddConfigMaps(ctx context.Context, c *Cluster, set *preview.Set, names []preview.ConfigMap) (unread error) {
	for _, name := range names {
		files, err := readConfigMap(ctx, c, name)
		set.AddConfigMap(name, files, err)
		if err != nil && !errors.Is(err, errNoConfigMap) && unread == nil {
			unread = err
		}
	}
	return unread
}

var errNoConfigMap = errors.New("does not exist")

func readConfigMap(ctx context.Context, c *Cluster, name preview.ConfigMap) (*timetable.Files, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	switch err := c.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, obj); {
	case apierrors.IsNotFound(err):
		return nil, errNoConfigMap
	case err != nil:
		return nil, NewCall("get", "configmap "+name.Name, name.Namespace, name.Name, "view").Explain(err)
	}
	files := &timetable.Files{}
	return files, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, files)
}

// PreviewSet returns a set of Gates of a cluster and their exceptions. If the exceptions cannot be listed, it omits them and prints a
// warning.
func PreviewSet(ctx context.Context, t *term.Terminal, c *Cluster, gates []*v1alpha1.Gate) *preview.Set {
	set, _ := PreviewSetAndExceptions(ctx, t, c, gates)
	return set
}

// PreviewSetAndExceptions is like PreviewSet, and also returns the exceptions.
func PreviewSetAndExceptions(ctx context.Context, t *term.Terminal, c *Cluster, gates []*v1alpha1.Gate) (*preview.Set, []*v1alpha1.GateException) {
	var namespaces []string
	for _, g := range gates {
		namespaces = append(namespaces, g.Namespace)
	}
	slices.Sort(namespaces)
	exceptions, err := c.Exceptions(ctx, slices.Compact(namespaces))
	if err != nil {
		t.Warn("exceptions are not included: %s", term.OneLine(err.Error()))
	}
	known := map[string]bool{}
	for _, g := range gates {
		known[FullName(g)] = true
	}
	exceptions = slices.DeleteFunc(exceptions, func(e *v1alpha1.GateException) bool { return !known[e.Namespace+"/"+e.Spec.GateRef.Name] })
	set := preview.FromCluster(gates, exceptions)
	_ = AddConfigMaps(ctx, c, set, set.ConfigMaps()) // the set records each error
	return set, exceptions
}
