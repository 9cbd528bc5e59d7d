package receiver

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

func TestReceiverStatus(t *testing.T) {
	refused := func(reason string) error { return fmt.Errorf("load: %w", endpoint.Refuse(reason, errors.New("wrong"))) }
	for name, tc := range map[string]struct {
		path string
		err  error
		want []string
		// at is the path in the status afterwards. Before, it was /hook/old.
		at string
	}{
		"ready":                 {"/hook/a", nil, []string{"Ready True Succeeded"}, "/hook/a"},
		"no token":              {"", refused(v1alpha1.TokenNotFoundReason), []string{"Ready False TokenNotFound"}, ""},
		"an invalid expression": {"/hook/a", refused(v1alpha1.InvalidCELExpressionReason), []string{"Ready False InvalidCELExpression", "Stalled True InvalidCELExpression"}, "/hook/a"},
		"an invalid spec":       {"/hook/a", refused(v1alpha1.InvalidSpecReason), []string{"Ready False InvalidSpec", "Stalled True InvalidSpec"}, "/hook/a"},
		"a temporary failure":   {"", errors.New("timeout"), []string{"Ready False Failed"}, "/hook/old"},
	} {
		obj := &v1alpha1.GateReceiver{}
		obj.Generation = 3
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
		reportPath(obj, "/hook/older", refused(v1alpha1.InvalidSpecReason))
		reportPath(obj, "/hook/old", nil)
		reportPath(obj, tc.path, tc.err)
		var got []string
		for _, c := range obj.Status.Conditions {
			got = append(got, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) || obj.Status.WebhookPath != tc.at || obj.Status.ObservedGeneration != 3 || obj.Status.LastHandledReconcileAt != "now" {
			t.Errorf("%s: got %q, status %+v", name, got, obj.Status)
		}
	}
}
