package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
)

const (
	// requestOwner is the field owner of requests.
	requestOwner = client.FieldOwner("kubectl-gate")
	// approvalOwner is the field owner of approvals. It must not own any field of the spec.
	approvalOwner = client.FieldOwner("kubectl-gate-approve")
)

// patchOptions returns the options of a patch. dryRun is the value of --dry-run.
func patchOptions(owner client.FieldOwner, dryRun string) []client.PatchOption {
	if dryRun == "server" {
		return []client.PatchOption{owner, client.DryRunAll}
	}
	return []client.PatchOption{owner}
}

// annotationPatch returns a patch that sets annotations, and removes annotations whose value is empty. If version is not empty, the patch
// fails if the object has another resource version.
func annotationPatch(annotations map[string]string, version string) []byte {
	values := make(map[string]any, len(annotations))
	for name, value := range annotations {
		if values[name] = nil; value != "" {
			values[name] = value
		}
	}
	metadata := map[string]any{"annotations": values}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // strings and nulls can always be marshaled
	}
	return raw
}

// patchStamped writes a request that the API server stamps with the requester and the Gates. With config/policies-1.30, it only checks the
// Gates and rejects a requester, which is the annotation by, so the request is repeated without a requester.
func patchStamped(ctx context.Context, c *kube.Cluster, obj client.Object, annotations map[string]string, by, dryRun string) error {
	write := func(user string) error {
		annotations[by] = user
		written, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", obj)
		}
		return c.Patch(ctx, written, client.RawPatch(types.MergePatchType, annotationPatch(annotations, "")), patchOptions(requestOwner, dryRun)...)
	}
	err := write(kube.CurrentUser(ctx, c))
	if kube.IsPolicyDenial(err) && strings.Contains(err.Error(), "may not say who") {
		err = write("")
	}
	if kube.IsPolicyDenial(err) {
		return errors.New("refused: " + kube.DenialMessage(err))
	}
	return err
}

// lowerFirst returns text with its first letter in lower case.
func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }
