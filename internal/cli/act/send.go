package act

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

var errUnhandled = errors.New("not requested: the controller has not handled an earlier request yet, and this one would replace it; is it running? For details: kubectl gate check")

// awaitHandled waits until a request may replace the previous one in the annotation of its Gate, because the controller has handled the
// previous request. It does not wait if an admission policy keeps the previous request. It returns whether the Gate was read again.
func awaitHandled(ctx context.Context, t *term.Terminal, c *kube.Cluster, r *result, by string) (again bool, err error) {
	if !ledger.IsUnhandled(r.gate, r.request.action) {
		return false, nil
	}
	tried := *r
	if err := patchGate(ctx, c, &tried, by, patchOptions(requestOwner, "server")); err != nil {
		return false, err
	}
	if tried.gate.Annotations[v1alpha1.UnhandledAnnotation] != r.gate.Annotations[v1alpha1.UnhandledAnnotation] {
		return false, nil
	}
	err = poll(ctx, t, func() (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate)
		return !ledger.IsUnhandled(r.gate, r.request.action), err
	})
	if errors.Is(err, errNotHandled) {
		err = errUnhandled
	}
	return true, err
}

// sendRequest sends the request for the version of a Gate that was read. If the Gate has changed, it reads the Gate again and sends a new
// request.
func sendRequest(ctx context.Context, t *term.Terminal, c *kube.Cluster, r *result, by string, newRequest requestFunc, opts []client.PatchOption) error {
	for {
		again, err := awaitHandled(ctx, t, c, r, by)
		if err == nil && !again {
			err = patchGate(ctx, c, r, by, opts)
		}
		if kube.IsPolicyDenial(err) && strings.Contains(err.Error(), "may not say who") && by != "" { // config/policies-1.30: the API server cannot verify it
			by = ""
			continue
		}
		switch {
		case errors.Is(err, errUnhandled):
			return err
		case !again && !apierrors.IsConflict(err), again && err != nil:
			return r.explain(err)
		case !again:
			if err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate); err != nil {
				return kube.NewCall("get", "gates", r.gate.Namespace, r.gate.Name, c.Role).Explain(err)
			}
		}
		request, err := newRequest(r.gate)
		if err != nil {
			return err
		}
		r.request = request.forGate(r.gate)
	}
}

// patchGate writes the request of a result.
func patchGate(ctx context.Context, c *kube.Cluster, r *result, by string, opts []client.PatchOption) error {
	written := r.gate.DeepCopy()
	err := c.Patch(ctx, written, client.RawPatch(types.MergePatchType, r.request.patch(by, r.gate.ResourceVersion)), opts...)
	if err == nil {
		r.gate = written
	}
	return err
}
