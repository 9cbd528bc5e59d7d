package activation

import "encoding/json"

// Patch returns a JSON merge patch that makes data, labels and annotations of a
// Secret as wanted in one write: keys of the data that are not wanted go, whoever
// wrote them. Labels and annotations that are not wanted stay. The write is
// refused if the Secret is no longer in the version that was read.
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
		if len(values) > 0 { // null would remove all there are
			metadata[field] = values
		}
	}
	return json.Marshal(map[string]any{"metadata": metadata, "data": data})
}
