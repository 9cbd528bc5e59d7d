package cli

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// readCalendars reads the calendars of Gates as they count now. Those that this user may not read are missing, and the error
// says so. One that does not exist is broken, as it is for the controller.
func readCalendars(ctx context.Context, c *cluster, now time.Time, gates ...*v1alpha1.Gate) (timetable.Calendars, error) {
	set := preview.FromCluster(gates, nil)
	err := readConfigMaps(ctx, c, set, set.ConfigMaps())
	all := timetable.Calendars{}
	for _, g := range gates {
		for key, calendar := range set.Calendars(g, preview.Range{From: now, Until: now}) {
			all[key] = calendar
		}
	}
	return all, err
}

// readConfigMaps adds ConfigMaps to a set. The error is the first one of those that this user cannot read.
func readConfigMaps(ctx context.Context, c *cluster, set *preview.Set, names []preview.ConfigMap) (unread error) {
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

func readConfigMap(ctx context.Context, c *cluster, name preview.ConfigMap) (*timetable.Files, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	switch err := c.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, obj); {
	case apierrors.IsNotFound(err):
		return nil, errNoConfigMap
	case err != nil:
		return nil, asked{"get", "configmap " + name.Name, name.Namespace, name.Name, "view"}.explain(err)
	}
	files := &timetable.Files{}
	return files, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, files)
}
