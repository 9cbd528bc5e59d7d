package activation

import "encoding/json"

// Patch returns a JSON merge patch that makes data, labels and annotations of a Secret as
// wanted in one write. Keys of the data that are not wanted go, no matter who wrote them.
// Labels and annotations that are not wanted stay. The API server refuses the write if the
// Secret has changed since it was read.
func Patch(resourceVersion string, have, want Secret) ([]byte, error) {
	data := map[string]any{}
	for key := range have.Data {
		data[key] = nil
	}
	for key, value := range want.Data {
		data[key] = value
	}
	metadata := map[string]any{"resourceVersion": resourceVersion}
	for field, values := range map[string]map[string]string{"labels": want.Labels, "annotations": want.Annotations} {
		if len(values) > 0 { // null would remove all of them
			metadata[field] = values
		}
	}
	return json.Marshal(map[string]any{"metadata": metadata, "data": data})
}
