package activation

import "encoding/json"

// Patch returns a JSON merge patch that sets data, labels and annotations of a Secret in one write. It removes all other keys of the data,
// and keeps other labels and annotations. The API server refuses the write if the Secret has changed since it was read.
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
		if len(values) > 0 { // an empty map would become null, which removes all of them
			metadata[field] = values
		}
	}
	return json.Marshal(map[string]any{"metadata": metadata, "data": data})
}
