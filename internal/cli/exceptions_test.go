package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/plan"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// hotfix opens the Gate in nights on Tuesday at noon.
const hotfix = `
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata: {name: hotfix, namespace: flux-system}
spec:
  gateRef: {name: production}
  timeZone: Europe/Oslo
  validFrom: "2026-11-24T00:00:00Z"
  validUntil: "2026-11-25T00:00:00Z"
  openPeriods:
  - {name: noon, start: "12:00", end: "13:00"}
`

// tuesday has the flags for the day on which hotfix is valid. The Gate in nights is closed all day.
var tuesday = []string{"-o", "json", "--from", "2026-11-24T00:00:00Z", "--until", "2026-11-25T00:00:00Z"}

// opens returns when and why a Gate is open, as "from-until Reason by".
func opens(t *testing.T, out, gate string) (open []string) {
	t.Helper()
	all := timelinesIn(t, out)
	i := slices.IndexFunc(all, func(l plan.GateTimeline) bool { return l.Metadata.Namespace+"/"+l.Metadata.Name == gate })
	if i < 0 {
		t.Fatalf("no gate %s in %s", gate, out)
	}
	for _, i := range all[i].Intervals {
		if i.State == "opened" {
			open = append(open, fmt.Sprintf("%s-%s %s %s", i.From.UTC().Format("15:04"), i.Until.UTC().Format("15:04"), i.Reason, i.By()))
		}
	}
	return open
}

// noon is the hour of hotfix in UTC: 12:00 to 13:00 in Oslo, the zone of the Gate.
var noon = []string{"11:00-12:00 Exception hotfix"}

func TestPreviewCountsExceptionsInAnyFile(t *testing.T) {
	list := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateExceptionList\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(hotfix), "\n", "\n  ")
	for name, files := range map[string][]string{
		"after its gate":                   {nights + "---" + hotfix},
		"before its gate":                  {hotfix + "---" + nights},
		"in a later file":                  {nights, hotfix},
		"in an earlier file":               {hotfix, nights},
		"in a list":                        {nights, list},
		"between others, some of no use":   {"apiVersion: v1\nkind: ConfigMap\n---" + hotfix, strings.ReplaceAll(nights, "production", "staging"), nights},
		"with a gate of the very name too": {hotfix + "---" + nights + "---" + strings.Replace(nights, "name: production", "name: hotfix", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := executeFiles(t, files, tuesday...)
			if code != 0 || errOut != "" {
				t.Fatalf("exit %d: %s", code, errOut)
			}
			if got := opens(t, out, "flux-system/production"); !slices.Equal(got, noon) {
				t.Errorf("opened %q, want %q", got, noon)
			}
		})
	}
}

// executeFiles runs preview with a file for each manifest.
func executeFiles(t *testing.T, manifests []string, args ...string) (code int, out, errOut string) {
	t.Helper()
	dir := t.TempDir()
	all := []string{"preview"}
	for i, manifest := range manifests {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, "-f", file)
	}
	var stdout, stderr bytes.Buffer
	code = run(append(all, args...), nil, &stdout, &stderr, now)
	return code, stdout.String(), strings.ReplaceAll(stderr.String(), dir+"/", "")
}

func TestPreviewOfOtherExceptionFields(t *testing.T) {
	weekend := []string{"-o", "json", "--from", "2026-11-27T12:00:00Z", "--until", "2026-11-29T12:00:00Z"}
	exception := func(spec string) string {
		return `
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata: {name: other, namespace: flux-system}
spec: {gateRef: {name: production}, validFrom: "2026-11-27T00:00:00Z", validUntil: "2026-11-30T00:00:00Z", ` + spec + `}
`
	}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"none": {"", []string{"21:00-04:00 OpenPeriod nights", "21:00-04:00 OpenPeriod nights"}},
		"close for a part of a period": {`closePeriods: [{name: w, from: "2026-11-27T23:00:00Z", until: "2026-11-28T01:00:00Z"}]`,
			[]string{"21:00-23:00 OpenPeriod nights", "01:00-04:00 OpenPeriod nights", "21:00-04:00 OpenPeriod nights"}},
		"close with a lead": {`leadTime: 3h, closePeriods: [{name: w, from: "2026-11-27T23:00:00Z", until: "2026-11-28T01:00:00Z"}]`,
			[]string{"01:00-04:00 OpenPeriod nights", "21:00-04:00 OpenPeriod nights"}},
		"a default":                 {`default: closed, openPeriods: [{name: w, start: "12:00", end: "13:00", timeZone: UTC, daysOfWeek: [Saturday]}]`, []string{"12:00-13:00 Exception other"}},
		"a default without periods": {`default: closed`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := nights
			if tc.spec != "" {
				manifest += "---" + exception(tc.spec)
			}
			code, out, errOut := execute(t, manifest, weekend...)
			if code != 0 || errOut != "" {
				t.Fatalf("exit %d: %s", code, errOut)
			}
			if got := opens(t, out, "flux-system/production"); !slices.Equal(got, tc.want) {
				t.Errorf("opened %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExceptionNamespaceDefaultsLikeGateNamespace(t *testing.T) {
	bare := strings.NewReplacer(", namespace: flux-system", "").Replace
	code, out, errOut := execute(t, bare(nights)+"---"+bare(hotfix), append(tuesday, "-n", "apps")...)
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if got := opens(t, out, "apps/production"); !slices.Equal(got, noon) {
		t.Errorf("opened %q, want %q", got, noon)
	}
	code, out, errOut = execute(t, nights+"---"+bare(hotfix), append(tuesday, "-n", "apps")...)
	want := "warning: gates.yaml: apps/hotfix: spec.gateRef.name: gate 'apps/production' is in none of the files\n"
	if code != 0 || errOut != want || len(opens(t, out, "flux-system/production")) > 0 {
		t.Errorf("of a gate in another namespace: exit %d: %s%s\nwant: %s", code, errOut, out, want)
	}
}

func TestPreviewReportsAllErrorsOfException(t *testing.T) {
	head := "gates.yaml: flux-system/hotfix: "
	for _, test := range []struct{ name, from, to, want string }{
		{"unknown default", "timeZone: Europe/Oslo", "timeZone: Europe/Oslo\n  default: open", head + `spec.default: Unsupported value: "open"`},
		{"no gate", "gateRef: {name: production}", "gateRef: {}", head + "spec.gateRef.name: Required value"},
		{"ends before it begins", "validUntil: \"2026-11-25", "validUntil: \"2026-11-23", head + "spec: Invalid value: validUntil must be later than validFrom"},
		{"too long", "validUntil: \"2026-11-25", "validUntil: \"2027-11-25", head + "spec: Invalid value: an exception lasts at most 90 days"},
		{"no end", "  validUntil: \"2026-11-25T00:00:00Z\"\n", "", head + "spec.validUntil: Required value"},
		{"a lead that is not for it", "timeZone: Europe/Oslo", "timeZone: Europe/Oslo\n  default: closed\n  leadTime: 1h", head + "spec: Invalid value: leadTime must not be set together with default"},
		{"impossible time", `"12:00"`, `"25:00"`, head + `spec.openPeriods[0].start: Invalid value: "25:00"`},
		{"no periods", "  openPeriods:\n  - {name: noon, start: \"12:00\", end: \"13:00\"}\n", "", head + "spec: Invalid value: an exception must have openPeriods, closePeriods or a default"},
		{"unknown field", "start:", "begin: x, start:", head + "spec.openPeriods[0].begin: unknown field"},
		{"a field of Gates", "  timeZone: Europe/Oslo", "  timeZone: Europe/Oslo\n  interval: 1m", head + "spec.interval: unknown field"},
		{"wrong type", `start: "12:00"`, `start: 12`, head + "spec.openPeriods[0].start: Invalid value: must be a string, put it in quotes"},
		{"no time", `validFrom: "2026-11-24T00:00:00Z"`, "validFrom: tomorrow", head + `spec.validFrom: Invalid value: "tomorrow": must be a time in RFC 3339 such as 2026-12-19T00:00:00Z`},
		{"other version", "v1alpha1", "v9", head + `apiVersion: Invalid value: "gating.toolkit.fluxcd.io/v9": must be gating.toolkit.fluxcd.io/v1alpha1`},
		{"no name", "name: hotfix, ", "", "gates.yaml: flux-system/: metadata.name: Required value: name or generateName is required"},
		{"a namespace that YAML takes for false", "namespace: flux-system", "namespace: n", "gates.yaml: default/hotfix: metadata.namespace: Invalid value: must be a string, put it in quotes"},
		{"twice", hotfix, hotfix + "---" + hotfix, head + "metadata.name: is already defined in "},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := execute(t, strings.Replace(hotfix, test.from, test.to, 1)+"---"+nights)
			if code != term.ExitError || out != "" || !strings.HasPrefix(errOut, test.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant: %s", code, out, errOut, test.want)
			}
		})
	}
}

func TestPreviewReportsAllErrorsOfGatesAndExceptions(t *testing.T) {
	bad := strings.NewReplacer("timeZone: Europe/Oslo", "timeZone: Europe/Oslo\n  default: open", `"12:00"`, "24:01").Replace(hotfix)
	code, out, errOut := executeFiles(t, []string{bad, strings.Replace(nights, "Europe/Oslo", "Nowhere", 1)}, tuesday...)
	for _, want := range []string{"0.yaml: flux-system/hotfix: spec.default", "0.yaml: flux-system/hotfix: spec.openPeriods[0].start", "1.yaml: flux-system/production: spec.timeZone"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != term.ExitError || out != "" || strings.Count(errOut, "\n") != 3 {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}

func TestOverlappingExceptionsCauseWarning(t *testing.T) {
	named := func(name, created, window, until string) string {
		return strings.NewReplacer("name: hotfix", "name: "+name+created, `start: "12:00", end: "13:00"`, window, "2026-11-25T00", until).Replace(hotfix)
	}
	created := func(at string) string { return `, creationTimestamp: "` + at + `"` }
	morning, evening := `start: "08:00", end: "09:00"`, `start: "18:00", end: "19:00"`
	for name, tc := range map[string]struct {
		manifests []string
		opens     []string
		warnings  string
	}{
		"the newest wins": {
			[]string{named("a", created("2026-11-20T00:00:00Z"), morning, "2026-11-25T00"), named("b", created("2026-11-21T00:00:00Z"), evening, "2026-11-24T20")},
			[]string{"17:00-18:00 Exception b"},
			"warning: 0.yaml: flux-system/a: overlaps exception 'b', which is newer and takes precedence from 2026-11-24T00:00:00Z until 2026-11-24T20:00:00Z\n",
		},
		"the older goes on when the newest is over": {
			[]string{named("a", created("2026-11-22T00:00:00Z"), morning, "2026-11-24T07"), named("b", created("2026-11-21T00:00:00Z"), evening, "2026-11-25T00")},
			[]string{"17:00-18:00 Exception b"},
			"warning: 0.yaml: flux-system/a: spec.openPeriods[0]: has no time within validFrom and validUntil\n" +
				"warning: 1.yaml: flux-system/b: overlaps exception 'a', which is newer and takes precedence from 2026-11-24T00:00:00Z until 2026-11-24T07:00:00Z\n",
		},
		"without times of creation the first by name wins": {
			[]string{named("b", "", evening, "2026-11-25T00"), named("a", "", morning, "2026-11-25T00")},
			[]string{"07:00-08:00 Exception a"},
			"warning: 0.yaml: flux-system/b: overlaps exception 'a', which is first by name and takes precedence here (in a cluster, the one created later does), from 2026-11-24T00:00:00Z until 2026-11-25T00:00:00Z\n",
		},
		"one that follows another does not overlap": {
			[]string{named("a", "", morning, "2026-11-24T12"), strings.Replace(named("b", "", evening, "2026-11-25T00"), "2026-11-24T00", "2026-11-24T12", 1)},
			[]string{"07:00-08:00 Exception a", "17:00-18:00 Exception b"}, "",
		},
		"one of another gate does not overlap": {
			[]string{named("a", "", morning, "2026-11-25T00"), strings.Replace(named("b", "", evening, "2026-11-25T00"), "name: production", "name: staging", 1), strings.ReplaceAll(nights, "production", "staging")},
			[]string{"07:00-08:00 Exception a"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := executeFiles(t, append(tc.manifests, nights), tuesday...)
			if code != 0 || errOut != tc.warnings {
				t.Errorf("exit %d\ngot  %swant %s", code, errOut, tc.warnings)
			}
			if got := opens(t, out, "flux-system/production"); !slices.Equal(got, tc.opens) {
				t.Errorf("opened %q, want %q", got, tc.opens)
			}
			slices.Reverse(tc.manifests)
			_, reversed, _ := executeFiles(t, append(tc.manifests, nights), tuesday...)
			if got := opens(t, reversed, "flux-system/production"); !slices.Equal(got, tc.opens) {
				t.Errorf("with the files in another order: opened %q, want %q", got, tc.opens)
			}
		})
	}
}

func TestPreviewAssumesApprovedExceptions(t *testing.T) {
	asks := strings.Replace(nights, "spec:\n", "spec:\n  approvals: {exceptions: {required: 2}}\n", 1)
	want := "warning: gates.yaml: flux-system/production: spec.approvals: the exceptions of the gate need approval (required: 2), the preview treats them as approved\n"
	code, out, errOut := execute(t, asks+"---"+hotfix, tuesday...)
	if code != 0 || errOut != want {
		t.Errorf("exit %d\ngot  %swant %s", code, errOut, want)
	}
	if got := opens(t, out, "flux-system/production"); !slices.Equal(got, noon) {
		t.Errorf("opened %q, want %q", got, noon)
	}
	if _, _, errOut := execute(t, strings.Replace(asks, "exceptions: {", "openRequests: {", 1)+"---"+hotfix, tuesday...); errOut != want {
		t.Errorf("the rule for open requests: %s", errOut)
	}
	if _, _, errOut := execute(t, asks+"---"+strings.Replace(hotfix, "openPeriods:", "closePeriods:", 1), tuesday...); strings.Contains(errOut, "approv") {
		t.Errorf("an exception that only closes: %s", errOut)
	}
	if _, _, errOut := execute(t, asks, tuesday...); errOut != "" {
		t.Errorf("a gate without exceptions: %s", errOut)
	}
}

func TestExpiredExceptionHasNoEffect(t *testing.T) {
	manifest := strings.Replace(nights, "spec:\n", "spec:\n  approvals: {exceptions: {required: 2}}\n", 1) + "---" + hotfix + "---" + strings.Replace(hotfix, "name: hotfix", "name: other", 1)
	code, out, errOut := execute(t, manifest, "-o", "json", "--from", "2026-11-25T00:00:00Z", "--until", "2026-11-26T00:00:00Z")
	want := "warning: gates.yaml: flux-system/hotfix: spec.validUntil: the exception is already over\n"
	if want += strings.Replace(want, "hotfix", "other", 1); code != 0 || errOut != want || len(opens(t, out, "flux-system/production")) > 0 {
		t.Errorf("exit %d: %s%s", code, errOut, out)
	}
}
