// Package policies attacks Gates on a real API server with config/policies, as
// real users with the roles that it ships, while the real controller decides.
package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The parts that all tests share.
var (
	cluster *harness.ControlPlane
	gating  *harness.Process
	probe   *person
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (func() error, error) {
	if err := cluster.Install(ctx); err != nil {
		return nil, err
	}
	if err := cluster.InstallComponent(ctx, "policies"); err != nil {
		return nil, err
	}
	stop := func() error { return gating.Stop() }
	var err error
	if gating, err = cluster.StartGatingController(ctx); err != nil {
		return stop, err
	}
	someone, err := cluster.Person("probe")
	if err != nil {
		return stop, err
	}
	probe = &person{someone}
	return stop, active(ctx)
}

// active waits until every policy is in force: some time passes between the
// creation of a policy and the first request that it judges.
func active(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "probe"}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed},
	}
	s := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "probe"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "probe"}, Approvals: &v1alpha1.ApprovalRule{Required: 1},
	}}
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"probe"},"rules":[` +
		`{"apiGroups":["gating.toolkit.fluxcd.io"],"resources":["gates","gates/status","gateexceptions","gatereceivers","gatedsources"],"verbs":["patch","get","create","delete"]},` +
		`{"apiGroups":["source.toolkit.fluxcd.io"],"resources":["gitrepositories"],"verbs":["create"]}]}`
	file := filepath.Join(cluster.Dir(), "probe.json")
	if err := errors.Join(cluster.Client.Create(ctx, namespace), cluster.Client.Create(ctx, g), cluster.Client.Create(ctx, s), os.WriteFile(file, []byte(role), 0o600)); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", "-f", file},
		{"create", "clusterrolebinding", "probe", "--clusterrole=probe", "--user=probe"},
	} {
		if _, err := cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	if err := harness.Eventually(ctx, harness.Patience, "an exception is created", func() error {
		_, err := cluster.Kubectl(ctx, "--namespace=probe", "create", "-f", exceptionFile(cluster.Dir(), "probe", "", nil))
		return err
	}); err != nil {
		return err
	}
	for _, p := range []struct{ policy, args string }{
		{"gate-request-verb", `patch gate probe --type=merge -p {"metadata":{"annotations":{"open.gate.fluxcd.io/reason":"x"}}}`},
		{"gate-approval", `patch gate probe --type=merge -p {"metadata":{"annotations":{"open.gate.fluxcd.io/emergency":"x"}}}`},
		{"gate-edit", `patch gate probe --type=merge -p {"metadata":{"labels":{"a":"b"}}}`},
		{"gate-status", `patch gate probe --subresource=status --type=merge -p {"status":{"observedGeneration":7}}`},
		{"gate-exception-verb", `patch gtex probe --type=merge -p {"metadata":{"annotations":{"approve.gate.fluxcd.io/requestedAt":"x"}}}`},
		{"gate-exception-edit", `patch gtex probe --type=merge -p {"metadata":{"labels":{"a":"b"}}}`},
		{"gated-source-verb", `patch gtsrc probe --type=merge -p {"metadata":{"annotations":{"approve.gate.fluxcd.io/requestedAt":"x"}}}`},
		{"gated-source-edit", `patch gtsrc probe --type=merge -p {"metadata":{"annotations":{"a":"b"}}}`},
		{"gated-source-pin", "create -f " + repositoryFile(cluster.Dir(), "other", map[string]string{v1alpha1.PinnedByAnnotation: "probe"})},
		{"gated-source-name", "create -f " + repositoryFile(cluster.Dir(), "probe-gated", nil)},
		{"gated-source-delete", "delete gtsrc probe"},
		{"gate-receiver-verb", "create -f " + receiverFile(cluster.Dir(), "probe", "")},
		{"gate-target-verb", "create -f " + holdFile(cluster.Dir(), "other", `{"targets":[{"kind":"Kustomization","name":"probe"}]}`)},
	} {
		if err := harness.Eventually(ctx, harness.Patience, p.policy+" is in force", func() error {
			out, err := probe.kubectl(ctx, "probe", append(strings.Fields(p.args), "--dry-run=server")...)
			if !strings.Contains(out, "ValidatingAdmissionPolicy '"+p.policy+"' with binding '"+p.policy+"' denied request: user probe may not") {
				return fmt.Errorf("%s, %w", out, err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if err := harness.Eventually(ctx, harness.Patience, "both policies gate-approval are in force", func() error {
		_, err := cluster.Kubectl(ctx, "--namespace=probe", "annotate", "gate", "probe", "--dry-run=server", v1alpha1.ApproveRequestedByAnnotation+"=forged")
		return err
	}); err != nil {
		return err
	}
	annotate := []string{"annotate", "gate", "probe", v1alpha1.OpenRequestedAtAnnotation + "=" + stamp(time.Now())}
	other := []string{"create", "-f", exceptionFile(cluster.Dir(), "other", "", nil)}
	for _, p := range []struct {
		policy, want string
		args         []string
	}{
		{"gate-request-stamp", v1alpha1.OpenRequestedByAnnotation, annotate},
		{"gate-exception-overlap", "gate exception probe/other overlaps with gate exception probe/probe", other},
	} {
		if err := harness.Eventually(ctx, harness.Patience, p.policy+" is in force", func() error {
			out, err := cluster.Kubectl(ctx, append(p.args, "--namespace=probe", "--dry-run=server", "-o=yaml")...)
			if !strings.Contains(out, p.want) {
				return fmt.Errorf("%s, %w", out, err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	_, err := cluster.Kubectl(ctx, "--namespace=probe", "delete", "gtex", "probe")
	if err != nil {
		return err
	}
	return harness.Eventually(ctx, harness.Patience, "gate-exception-stamp is in force", func() error {
		out, err := cluster.Kubectl(ctx, append(other, "--namespace=probe", "--dry-run=server", "-o=yaml")...)
		if !strings.Contains(out, v1alpha1.AuthorsAnnotation) {
			return fmt.Errorf("%s, %w", out, err)
		}
		return nil
	})
}
