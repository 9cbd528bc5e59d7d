package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// unhandled creates a Gate with a close request that the controller never handles, because the Gate is being deleted.
func (w *world) unhandled(name string) (value string) {
	w.Helper()
	g := w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(g)
	run := func(args ...string) {
		w.Helper()
		_, err := w.Kubectl(context.WithoutCancel(w.Context()), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	run("patch", "gate", name, "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/keep"}]`)
	w.Cleanup(func() { run("patch", "gate", name, "--type=merge", `-p={"metadata":{"finalizers":null}}`) })
	run("delete", "gate", name, "--wait=false")
	value = "2026-11-26T10:00:00Z/2h"
	run("annotate", "gate", name, v1alpha1.CloseRequestedAtAnnotation+"="+value)
	return value
}

// Without config/policies, only the plugin protects the existing request.
func TestUnhandledRequestsAreNotReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	value := w.unhandled("production")
	got := w.gate("close", "production", "--for", "1m")
	if got.code == 0 || !strings.Contains(got.errOut, "production: not requested: the controller has not handled an earlier request yet, and this one would replace it") {
		t.Errorf("%+v", got)
	}
	if now := w.ReadGate("production").Annotations[v1alpha1.CloseRequestedAtAnnotation]; now != value {
		t.Errorf("%q replaced %q", now, value)
	}
	// An open request has a separate annotation.
	if got := w.gate("open", "production", "--for", "1m"); strings.Contains(got.errOut, "not requested") || w.ReadGate("production").Annotations[v1alpha1.OpenRequestedAtAnnotation] == "" {
		t.Errorf("%+v", got)
	}
}

// With config/policies, the API server keeps the existing request.
func replacesUnhandled(w *world) {
	w.unhandled("production")
	got := w.gate("close", "production", "--for", "1m")
	if got.code == 0 || !strings.Contains(got.errOut, "requested, but the controller has not handled it") {
		w.Errorf("%+v", got)
	}
	if lines := w.ReadGate("production").Annotations[v1alpha1.UnhandledAnnotation]; !strings.HasPrefix(lines, "1\tclose\tannotation\t2026-11-26T10:00:00Z/2h\t") {
		w.Errorf("got unhandled requests %q", lines)
	}
}
