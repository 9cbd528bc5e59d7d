package act

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
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

// lowerFirst returns text with its first letter in lower case.
func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }
