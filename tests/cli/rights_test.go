package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// exitError is the exit code of a command that has done nothing.
const exitError = 2

// exitTimeout is the exit code of a command whose wait timed out.
const exitTimeout = 124

// exitIncomplete is the exit code of a command that has succeeded only in part.
const exitIncomplete = 3

// frozen returns a Gate that is closed by default, and in a close period for 20 days.
func frozen() v1alpha1.GateSpec {
	from, until := metav1.Now(), metav1.NewTime(metav1.Now().AddDate(0, 0, 20))
	return v1alpha1.GateSpec{
		Default:      v1alpha1.StateClosed,
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}},
	}
}

// rule is a rule of a role: verbs on resources, as in kubectl create role.
type rule struct{ verbs, resources string }

// hasExactly grants a user exactly these permissions in the namespace.
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

// documented returns the permissions that docs/secure/permissions.md lists for a command.
func (w *world) documented(command string) (rules []rule) {
	w.Helper()
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "secure", "permissions.md"))
	w.Must(err)
	row := regexp.MustCompile("(?m)^\\| [^|]*`" + regexp.QuoteMeta(command) + "`[^|]* \\| ([^|]*) \\|").FindStringSubmatch(string(page))
	if row == nil {
		w.Fatalf("docs/secure/permissions.md has no entry for %s", command)
	}
	if row[1] == "nothing" {
		return nil
	}
	for part := range strings.SplitSeq(row[1], "; ") {
		verbs, resource, ok := strings.Cut(part, " on ")
		if !ok {
			w.Fatalf("docs/secure/permissions.md: cannot parse %q", part)
		}
		rules = append(rules, rule{strings.NewReplacer("`", "", " ", "").Replace(verbs), resource + "." + v1alpha1.GroupVersion.Group})
	}
	return rules
}

// needs runs a command as a user with exactly the documented permissions, and as users who lack one of them. The command must print the
// missing verb and resource in one line.
func (w *world) needs(command string, run func(who *world) output) {
	w.Helper()
	rules := w.documented(command)
	prefix := regexp.MustCompile("[^a-z]+").ReplaceAllString(command, "-")
	w.hasExactly(prefix, rules...)
	if got := run(w.as(prefix)); got.code != 0 {
		w.Errorf("%s with all documented permissions: %+v", command, got)
	}
	for i, r := range rules {
		for verb := range strings.SplitSeq(r.verbs, ",") {
			rest := append(append([]rule{}, rules[:i]...), rules[i+1:]...)
			if others := strings.Trim(strings.ReplaceAll(","+r.verbs+",", ","+verb+",", ","), ","); others != "" {
				rest = append(rest, rule{others, r.resources})
			}
			resource, _, _ := strings.Cut(r.resources, ".")
			who := fmt.Sprintf("%s-no-%s-%s", prefix, verb, resource)
			w.hasExactly(who, rest...)
			got := run(w.as(who))
			want := fmt.Sprintf("you may not %s %s in namespace %q: that needs the verb %q, which the ClusterRole ", verb, resource, w.Namespace, verb)
			lines := strings.Split(strings.TrimSpace(got.errOut), "\n")
			if last := lines[len(lines)-1]; got.code < exitError || !strings.HasPrefix(last, "error: ") || !strings.Contains(last, want) || strings.Contains(strings.Join(lines[:len(lines)-1], ""), "error") {
				w.Errorf("%s without %s on %s: %+v", command, verb, resource, got)
			}
		}
	}
}

// expect fails unless a command has ended with an exit code and printed the texts.
func (w *world) expect(got output, code int, out, errOut string) {
	w.Helper()
	if got.code != code || !strings.Contains(got.out, out) || !strings.Contains(got.errOut, errOut) {
		w.Errorf("exit %d\n%s%swant exit %d, %q on standard output and %q on standard error", got.code, got.out, got.errOut, code, out, errOut)
	}
}
