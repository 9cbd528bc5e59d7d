// Package policies attacks Gates on a real API server with config/policies, as users with the roles that it ships, while the real
// controller decides.
package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The parts that all tests share.
var (
	cluster *harness.ControlPlane
	gating  *harness.Process
	// admin is exempt from RBAC, but not from the policies.
	admin *person
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
	master, err := cluster.Person("admin", "system:masters")
	if err != nil {
		return stop, err
	}
	admin = &person{master}
	return stop, active(ctx)
}

// active waits until every policy is in force: the API server enforces a new policy after a delay.
func active(ctx context.Context) error {
	someone, err := cluster.Person("probe")
	if err != nil {
		return err
	}
	probe, name := &person{someone}, metav1.ObjectMeta{Name: "probe"}
	if err := errors.Join(
		cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: name}),
		cluster.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"patch", "get", "create", "delete"}},
			{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories"}, Verbs: []string{"create"}},
		}}),
		cluster.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "probe"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "probe"}},
		}),
	); err != nil {
		return err
	}
	const by = "annotate gate probe "
	other := "create -f " + exceptionFile("other", "", nil)
	for _, step := range []struct {
		who *person
		// policy is the policy that denies the command, if any.
		policy, command string
		// want is a text in the output.
		want string
	}{
		{admin, "", "create -f " + gateFile("probe", nil), ""},
		{admin, "", "create -f " + gatedFile("probe", `{"approvals":{"required":1}}`, nil), ""},
		{admin, "", "create -f " + exceptionFile("probe", "", nil), ""},
		{probe, "gate-request-verb", by + v1alpha1.OpenReasonAnnotation + "=x", ""},
		{probe, "gate-approval", by + v1alpha1.OpenEmergencyAnnotation + "=x", ""},
		{probe, "gate-edit", "label gate probe a=b", ""},
		{probe, "gate-status", `patch gate probe --subresource=status --type=merge -p {"status":{"observedGeneration":7}}`, ""},
		{probe, "gate-exception-verb", "annotate gtex probe " + v1alpha1.ApproveRequestedAtAnnotation + "=x", ""},
		{probe, "gate-exception-edit", "label gtex probe a=b", ""},
		{probe, "gated-source-verb", "annotate gtsrc probe " + v1alpha1.ApproveRequestedAtAnnotation + "=x", ""},
		{probe, "gated-source-edit", "annotate gtsrc probe a=b", ""},
		{probe, "gated-source-pin", "create -f " + repositoryFile("other", map[string]string{v1alpha1.PinnedByAnnotation: "probe"}), ""},
		{probe, "gated-source-name", "create -f " + repositoryFile("probe-gated", nil), ""},
		{probe, "gated-source-delete", "delete gtsrc probe", ""},
		{probe, "gate-receiver-verb", "create -f " + receiverFile("probe", ""), ""},
		{probe, "gate-target-verb", "create -f " + holdFile("other", `{"targets":[{"kind":"Kustomization","name":"probe"}]}`), ""},
		{admin, "", by + v1alpha1.ApproveRequestedByAnnotation + "=forged", "name: probe"}, // both policies gate-approval
		{admin, "", by + v1alpha1.OpenRequestedAtAnnotation + "=NOW", v1alpha1.OpenRequestedByAnnotation},
		{admin, "", other, "gate exception probe/other overlaps with gate exception probe/probe"},
		{admin, "", "delete gtex probe", ""},
		{admin, "", other, v1alpha1.AuthorsAnnotation},
	} {
		command, want := step.command, step.want
		if step.policy != "" {
			want = "ValidatingAdmissionPolicy '" + step.policy + "' with binding '" + step.policy + "' denied request: user probe may not"
		}
		if want != "" {
			command += " --dry-run=server -o=yaml"
		}
		if err := harness.Eventually(ctx, harness.Patience, "the API server enforces the policies:  "+step.command, func() error {
			out, err := step.who.kubectl(ctx, "probe", command)
			if want == "" && err != nil || !strings.Contains(out, want) {
				return fmt.Errorf("%s, %w", out, err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
