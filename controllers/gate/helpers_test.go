package gate

import (
	"reflect"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// inGit returns a Kustomization as it is in Git.
func inGit(namespace, name string, labels map[string]string) *target.Object {
	obj := &target.Object{}
	obj.Object = map[string]any{"spec": map[string]any{
		"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"},
	}}
	obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	obj.SetKind("Kustomization")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	return obj
}

// start is when the clocks of these tests begin.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
