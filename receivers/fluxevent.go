package receivers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
)

// gateKey is the key in the metadata of an event for the names of its Gates, separated by commas. It can be set in spec.eventMetadata of
// an Alert.
const gateKey = "gate"

// fluxEvent accepts Flux events from the Providers generic and generic-hmac of notification-controller, or from a controller. Without a
// signature, the path is the only secret, as for generic, unless there is a signing token.
type fluxEvent struct{}

func (fluxEvent) verify(_ context.Context, in *incoming) (*webhook, error) {
	isSigned := len(in.signingTokens) > 0 || len(in.header.Values(signatureHeader)) > 0
	if isSigned && !signed(only(in.header, signatureHeader), in.body, in.keys(), "sha256") {
		return nil, fmt.Errorf(msgBodySignature, errUnverified, signatureHeader)
	}
	body, err := mustObject(in.body)
	if err != nil {
		return nil, err
	}
	// The event is decoded from the same object that expressions read, so both see the same value if a key is repeated.
	var event eventv1.Event
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body, &event); err != nil {
		return nil, fmt.Errorf(msgNotFluxEvent, errMalformed)
	}
	involved := event.InvolvedObject
	if involved.Kind == "" || involved.Name == "" || event.Reason == "" || event.Message == "" {
		return nil, fmt.Errorf(msgFluxEventForm, errMalformed)
	}
	hook := &webhook{event: event.Reason, body: body, pathOnly: !isSigned}
	// Without a signature, a client that repeats an event could change its time.
	if isSigned && !event.Timestamp.IsZero() {
		if err := mustBeRecent(event.Timestamp.Time, in.now); err != nil {
			return nil, err
		}
		hook.delivery = digestOf(in.body)
	}
	addShortKeys(body)
	metadata, _ := body["metadata"].(map[string]any)
	if value, ok := metadata[gateKey]; ok {
		names, _ := value.(string) // the values of an event are strings
		if hook.gates = gateNames(names); len(hook.gates) == 0 {
			return nil, fmt.Errorf(msgNoGateNamed, errMalformed, gateKey)
		}
	}
	subject := strings.TrimPrefix(involved.Namespace+"/"+involved.Name, "/")
	hook.reason = phrase("", involved.Kind+" "+subject) + phrase(": ", event.Message)
	return hook, nil
}

// gateNames returns the names in a comma-separated list.
func gateNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// addShortKeys adds the metadata again with keys without the prefix, as notification-controller does, so that expressions do not depend
// on the sender. Existing keys are kept. If two keys differ only in their prefix, the first key by name is used.
func addShortKeys(body map[string]any) {
	metadata, _ := body["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		_, short, found := strings.Cut(key, "/")
		if _, taken := metadata[short]; found && !taken {
			metadata[short] = metadata[key]
		}
	}
}
