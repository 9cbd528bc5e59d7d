package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// startManager starts a manager with the controller, which runs until the test ends. It returns a counter of the errors in its log.
func (w *world) startManager(r *Reconciler) *atomic.Int64 {
	w.Helper()
	errorsLogged := &atomic.Int64{}
	log := funcr.New(func(_, args string) {
		if strings.Contains(args, `"error"`) {
			errorsLogged.Add(1)
		}
	}, funcr.Options{})
	scheme := runtime.NewScheme()
	w.Must(errors.Join(v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: log,
		Controller: config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(false), MaxConcurrentReconciles: 4},
	})
	w.Must(err)
	r.Client, r.EventRecorder, r.APIReader, r.Clock = mgr.GetClient(), w.events, mgr.GetAPIReader(), clock.RealClock{}
	w.Must(r.SetupWithManager(mgr, nil, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Second)))
	ctx, stop := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	return errorsLogged
}

// The manager starts without config/machines. The controller works while its CRD is installed.
func TestControllerWorksWhileCRDIsInstalled(t *testing.T) {
	w := newWorld(t)
	install := func() {
		t.Helper()
		_, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{Paths: []string{harness.CRDPath(harness.Machines)}})
		w.Must(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: refreshDefinition}}
	remove := func() {
		t.Helper()
		w.Must(cluster.Client.Delete(w.Context(), definition))
		w.Eventually("the definition is gone", func() error {
			if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(definition), &apiextensionsv1.CustomResourceDefinition{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	remove()
	r := &Reconciler{}
	errorsLogged := w.startManager(r)
	first, second := w.machine("a", 0), w.machine("b", 0)
	for i, m := range (machines{first, second}) {
		w.annotateAs("manager", m, map[string]any{expiryAnnotation: time.Now().Add(time.Duration(i+2) * day).Format(time.RFC3339)})
	}
	w.clock.SetTime(time.Now())
	w.gate("nights", closed, func(g *v1alpha1.Gate) { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })

	becomes := func(m *metav1.PartialObjectMetadata, want string) {
		t.Helper()
		w.Eventually(m.Name+" has the request "+want, func() error {
			if request, _ := w.requested(m); request != want {
				return fmt.Errorf("it has %q", request)
			}
			return nil
		})
	}
	install()
	obj := w.refreshes("nodes")
	w.Eventually("both are due", func() error {
		if w.Read(obj); obj.Status.Due != 2 {
			return fmt.Errorf("status %+v", obj.Status)
		}
		return nil
	})
	w.gate("nights", opened)
	becomes(first, "1y")
	w.expectRequested(machines{second})
	w.provider(first, works)
	w.provider(first, works)
	becomes(second, "1y")
	w.gate("nights", closed)
	becomes(second, "")
	w.gate("nights", opened)
	becomes(second, "1y")
	w.Must(cluster.Client.Delete(w.Context(), obj))
	becomes(second, "")
	w.expectQuiet(first, second)

	remove()
	w.Eventually("the controller is idle", func() error {
		if installed, version := r.kinds.served(); installed || version != "" {
			return errors.New("it is not")
		}
		return nil
	})
	w.Must(harness.Throughout(w.Context(), 2*time.Second, "no error is logged", func() error {
		if n := errorsLogged.Load(); n > 0 {
			return fmt.Errorf("%d errors", n)
		}
		return nil
	}))
	install()
	w.Eventually("the controller works again", func() error {
		if installed, version := r.kinds.served(); !installed || version == "" {
			return errors.New("it does not")
		}
		return nil
	})
}
