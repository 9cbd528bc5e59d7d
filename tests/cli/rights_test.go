package cli

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// exitError is the exit code of a command that has done nothing.
const exitError = 2

// frozen is a Gate that is closed by default, and in a close period for 20 days.
func frozen() v1alpha1.GateSpec {
	from, until := metav1.Now(), metav1.NewTime(metav1.Now().AddDate(0, 0, 20))
	return v1alpha1.GateSpec{
		Default:      v1alpha1.StateClosed,
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: &from, Until: &until}}},
	}
}

// rule is what a role allows: verbs on resources, as in kubectl create role.
type rule struct{ verbs, resources string }

// hasExactly gives a person these rights in the namespace, and no others.
func (w *world) hasExactly(who string, rules ...rule) {
	w.Helper()
	for i, r := range rules {
		name := who + "-" + string(rune('a'+i))
		_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "role", name, "--verb="+r.verbs, "--resource="+r.resources)
		w.Must(err)
		_, err = w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", name, "--role="+name, "--user="+who)
		w.Must(err)
	}
}

// expect fails unless a command has ended and printed as wanted.
func (w *world) expect(got said, code int, out, errOut string) {
	w.Helper()
	if got.code != code || !strings.Contains(got.out, out) || !strings.Contains(got.errOut, errOut) {
		w.Errorf("exit %d\n%s%swant exit %d, %q on standard output and %q on standard error", got.code, got.out, got.errOut, code, out, errOut)
	}
}

// refused fails unless a command was refused with this one line.
func (w *world) refused(got said, line string) {
	w.Helper()
	if got.code != exitError || got.errOut != line+"\n" {
		w.Errorf("exit %d\n%s%swant exit %d and the line %s", got.code, got.out, got.errOut, exitError, line)
	}
}
