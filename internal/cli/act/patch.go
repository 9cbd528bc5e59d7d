package act

import (
	"encoding/json"
	"strings"
)

// lowerFirst returns a sentence with a lower-case first letter.
func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// annotationPatch is a patch that sets annotations.
func annotationPatch(annotations map[string]string) []byte {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		panic(err) // strings
	}
	return raw
}
