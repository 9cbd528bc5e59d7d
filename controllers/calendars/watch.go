package calendars

import (
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/internal/configmap"
)

// ConfigMapWatches returns a function that watches one ConfigMap, without its texts.
func ConfigMapWatches(mgr ctrl.Manager) (func(types.NamespacedName, func()) configMapWatch, error) {
	c, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return func(key types.NamespacedName, changed func()) configMapWatch {
		return configmap.NewWatch(c, key, configmap.Metadata, changed)
	}, nil
}
