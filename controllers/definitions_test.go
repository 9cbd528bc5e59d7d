package controllers_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// If the lookup returned an error, the controller would end at its start, and nothing would be held.
func TestUnreadableSchemaAffectsOnlyItsKind(t *testing.T) {
	kinds, err := target.ParseKinds([]string{"batch/CronJob"})
	if err != nil {
		t.Fatal(err)
	}
	for _, refusal := range []error{
		apierrors.NewForbidden(schema.GroupResource{Resource: "openapi"}, "", nil), apierrors.NewNotFound(schema.GroupResource{Resource: "openapi"}, ""),
	} {
		d := view.Definitions{Mapper: cluster.Client.RESTMapper(), Document: func(context.Context, schema.GroupVersion) ([]byte, error) { return nil, refusal }}
		f, err := d.FindBuiltIn(t.Context(), kinds[0])
		if err != nil || !strings.HasPrefix(string(f.Fault), "the schema of kind CronJob of batch cannot be read: ") {
			t.Errorf("got %v and %q", err, f.Fault)
		}
	}
	d := view.Definitions{Mapper: cluster.Client.RESTMapper(), Document: func(context.Context, schema.GroupVersion) ([]byte, error) {
		return nil, apierrors.NewServiceUnavailable("starting")
	}}
	if _, err := d.FindBuiltIn(t.Context(), kinds[0]); err == nil {
		t.Error("what another try may fix is not a fault")
	}
}
