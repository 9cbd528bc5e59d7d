package cli

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestWaitForState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	production, staging := w.ClosedGate("production"), w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(production)
	w.Decided(staging)
	const timedOut = 124
	for _, tc := range []struct {
		args, out, errOut string
		code              int
	}{
		{"production --for=closed", "/production: closed\n", "", 0},
		{"staging", "/staging: open\n", "", 0},
		{"production staging --timeout=300ms", "", "/production is not open; for details: kubectl gate why gate/production -n " + w.Namespace, timedOut},
		{"staging --for=closed --timeout=300ms", "", "/staging is not closed", timedOut},
		{"none", "", `there is no gate "none"`, exitError},
		{"production --for=opened", "", "--for=opened: use open or closed", exitError},
		{"", "", "requires at least 1 arg", exitError},
	} {
		got := w.gate(append([]string{"wait"}, strings.Fields(tc.args)...)...)
		if got.code != tc.code || !strings.HasSuffix(got.out, tc.out) || (got.out == "") != (tc.out == "") || !strings.Contains(got.errOut, tc.errOut) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	done := make(chan output)
	go func() { done <- w.gate("wait", "production", "staging", "--for=open") }()
	w.ok("kubectl gate open production --for 1h")
	if got := <-done; got.code != 0 || got.out != w.Namespace+"/production: open\n"+w.Namespace+"/staging: open\n" {
		t.Errorf("both: %+v", got)
	}
	w.EditGate(staging, func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
	if got := w.gate("wait", "staging", "--timeout=300ms"); got.code != timedOut {
		t.Errorf("a suspended gate counts as open: %+v", got)
	}
}
