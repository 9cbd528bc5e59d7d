// Package fleet runs docs/guides/several-clusters.md and the scripts of config/samples/fleet on two real clusters. Each has its own API
// server, gating-controller and kustomize-controller.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// member is a cluster of the fleet.
type member struct {
	*harness.ControlPlane
	// name is the name of its context and of its folder.
	name string
	// metrics is the address of the controller's metrics.
	metrics           string
	gating, kustomize *harness.Process
}

// The parts that all tests share.
var (
	canary, other = &member{name: "eu-canary"}, &member{name: "eu-1"}
	members       = []*member{canary, other}
	// programs is a folder with kubectl-gate, and with a subfolder of substitutes for curl and openssl.
	programs string
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &canary.ControlPlane, "kustomize-controller", "source-controller"))
}

func setup(ctx context.Context) (stop func() error, err error) {
	programs = filepath.Join(canary.Dir(), "programs")
	stop = func() (err error) {
		for _, m := range members {
			err = errors.Join(err, m.gating.Stop(), m.kustomize.Stop())
		}
		if other.ControlPlane != nil {
			err = errors.Join(err, other.Stop())
		}
		return err
	}
	if other.ControlPlane, err = harness.StartControlPlane("kustomize-controller", "source-controller"); err != nil {
		return stop, err
	}
	for _, m := range members {
		if err := m.start(ctx); err != nil {
			return stop, err
		}
	}
	standins := filepath.Join(programs, "standins")
	for path, folder := range map[string]string{
		filepath.Join(programs, "kubectl-gate"): "./cmd/kubectl-gate", filepath.Join(standins, "curl"): "./tests/webhooks/replicas/standin",
	} {
		build := exec.CommandContext(ctx, "go", "build", "-o", path, folder)
		build.Dir, build.Env = harness.Root(), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return stop, fmt.Errorf("building %s: %w: %s", folder, err, out)
		}
	}
	return stop, os.Link(filepath.Join(standins, "curl"), filepath.Join(standins, "openssl"))
}

func (m *member) start(ctx context.Context) (err error) {
	if err := errors.Join(m.Install(ctx), m.InstallComponent(ctx, "webhooks"), m.Client.Create(ctx, alerts())); err != nil {
		return err
	}
	if m.kustomize, err = m.StartKustomizeController(ctx); err != nil {
		return err
	}
	return m.startGating(ctx)
}

func (m *member) startGating(ctx context.Context) (err error) {
	m.metrics = harness.FreeAddress()
	m.gating, err = m.StartGatingController(ctx, "--metrics-addr="+m.metrics)
	return err
}

// alerts is a definition that accepts all Alerts. The one of notification-controller is not among the tools.
func alerts() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "alerts.notification.toolkit.fluxcd.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "notification.toolkit.fluxcd.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "alerts", Kind: "Alert"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta3", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
