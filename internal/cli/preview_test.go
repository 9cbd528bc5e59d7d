package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/tz"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// execute runs preview with a manifest in a file named gates.yaml.
func execute(t *testing.T, manifest string, args ...string) (code int, out, errOut string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gates.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"preview", "-f", file}, args...), strings.NewReader(manifest), &stdout, &stderr, now)
	return code, stdout.String(), strings.ReplaceAll(stderr.String(), dir+"/", "")
}

const nights = `
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: Gate
metadata: {name: production, namespace: flux-system}
spec:
  default: closed
  timeZone: Europe/Oslo
  openPeriods:
  - {name: nights, daysOfWeek: [Friday, Saturday], start: "22:00", end: "05:00"}
`

func TestPreviewPrintsJSONForPullRequests(t *testing.T) {
	code, out, errOut := execute(t, nights, "-o", "json", "--from", "2026-11-21T01:00:00+01:00", "--until", "2026-11-21T22:00:00Z")
	want := `{
    "apiVersion": "cli.gating.toolkit.fluxcd.io/v1alpha1",
    "items": [
        {
            "apiVersion": "cli.gating.toolkit.fluxcd.io/v1alpha1",
            "from": "2026-11-21T00:00:00Z",
            "intervals": [
                {
                    "from": "2026-11-21T00:00:00Z",
                    "period": "nights",
                    "reason": "OpenPeriod",
                    "state": "opened",
                    "until": "2026-11-21T04:00:00Z"
                },
                {
                    "from": "2026-11-21T04:00:00Z",
                    "reason": "OutsideOpenPeriods",
                    "state": "closed",
                    "until": "2026-11-21T21:00:00Z"
                },
                {
                    "from": "2026-11-21T21:00:00Z",
                    "period": "nights",
                    "reason": "OpenPeriod",
                    "state": "opened",
                    "until": "2026-11-21T22:00:00Z"
                }
            ],
            "kind": "GateTimeline",
            "metadata": {
                "name": "production",
                "namespace": "flux-system"
            },
            "timeZoneData": "` + tz.Version() + `",
            "until": "2026-11-21T22:00:00Z"
        }
    ],
    "kind": "GateTimelineList"
}
`
	if code != 0 || out != want || errOut != "" {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant: %s", code, out, errOut, want)
	}
}

func TestHourlyClosePeriodHasNoGapWhenClocksAreSetBack(t *testing.T) {
	for schedule, closed := range map[string]bool{
		`"* * * * *", duration: 1m`: true, `"0 * * * *", duration: 1h`: true, `"*/30 * * * *", duration: 30m`: true,
		`"* 0-23 * * *", duration: 1m`: false,
	} {
		for zone, night := range map[string]string{"America/New_York": "2026-11-01", "Australia/Lord_Howe": "2026-04-04"} {
			manifest, _, _ := strings.Cut(nights, "  openPeriods")
			manifest = strings.NewReplacer("closed", "opened", "Europe/Oslo", zone).Replace(manifest) + "  closePeriods: [{name: all, schedule: " + schedule + "}]\n"
			code, out, errOut := execute(t, manifest, "-o", "json", "--from", night+"T00:00:00Z", "--until", night+"T23:00:00Z")
			if got := len(opens(t, out, "flux-system/production")) == 0; code != 0 || got != closed {
				t.Errorf("%s in %s: closed all the time is %t, want %t; exit %d\n%s%s", schedule, zone, got, closed, code, out, errOut)
			}
		}
	}
}

func TestPreviewKeepsOrderOfDocumentsAndSkipsOtherKinds(t *testing.T) {
	manifest := strings.ReplaceAll(nights, "production", "zulu") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\n" + nights +
		"---\n- op: remove\n  path: /spec\n---\n\n---\napiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateList\nitems:\n- apiVersion: gating.toolkit.fluxcd.io/v1alpha1\n  kind: Gate\n  metadata: {name: listed}\n  spec: {default: opened}\n"
	code, out, errOut := execute(t, manifest, "-o", "json", "--namespace", "apps")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	got := timelinesIn(t, out)
	if len(got) != 3 || got[0].Metadata.Name != "zulu" || got[1].Metadata.Name != "production" || got[2].Metadata != (explain.Metadata{Namespace: "apps", Name: "listed"}) {
		t.Errorf("got %+v", got)
	}
	if i := got[2].Intervals; len(i) != 1 || !i[0].From.Time.Equal(now) || !i[0].Until.Time.Equal(now.AddDate(0, 0, 30)) || i[0].State != "opened" || i[0].Reason != "Default" {
		t.Errorf("the default range is from now for 30 days, got %+v", i)
	}
}

func TestPreviewCountsRequestsInAnnotations(t *testing.T) {
	manifest := strings.Replace(nights, "namespace: flux-system}", `namespace: flux-system, annotations: {open.gate.fluxcd.io/requestedAt: "2026-11-24T10:00:00Z"}}`, 1)
	manifest = strings.Replace(manifest, "spec:\n", "spec:\n  window: 1h\n", 1)
	code, out, errOut := execute(t, manifest, "--from", "2026-11-24T00:00:00Z", "--until", "2026-11-25T00:00:00Z")
	want := `GATE                     FROM                   UNTIL                  STATE    REASON               DECIDED BY
flux-system/production   2026-11-24T00:00:00Z   2026-11-24T10:00:00Z   closed   OutsideOpenPeriods   
flux-system/production   2026-11-24T10:00:00Z   2026-11-24T11:00:00Z   opened   OpenRequested        
flux-system/production   2026-11-24T11:00:00Z   2026-11-25T00:00:00Z   closed   OutsideOpenPeriods   
`
	if code != 0 || out != want {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errOut)
	}
}

func TestPreviewCountsWindowOfRequest(t *testing.T) {
	for value, until := range map[string]string{
		"2026-11-24T10:00:00Z/30m": "2026-11-24T10:30:00Z",
		"2026-11-24T10:00:00Z/3h":  "2026-11-24T11:00:00Z", // spec.window is an hour
	} {
		manifest := strings.Replace(nights, "namespace: flux-system}", `namespace: flux-system, annotations: {open.gate.fluxcd.io/requestedAt: "`+value+`"}}`, 1)
		manifest = strings.Replace(manifest, "spec:\n", "spec:\n  window: 1h\n", 1)
		code, out, errOut := execute(t, manifest, "--from", "2026-11-24T00:00:00Z", "--until", "2026-11-25T00:00:00Z")
		want := `
flux-system/production   2026-11-24T10:00:00Z   ` + until + `   opened   OpenRequested        
flux-system/production   ` + until
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d\nstdout: %s\nstderr: %s", value, code, out, errOut)
		}
	}
}

func TestPreviewPrintsOneErrorPerLine(t *testing.T) {
	head := "gates.yaml: flux-system/production: "
	for _, test := range []struct{ name, from, to, want string }{
		{"unknown zone", "Europe/Oslo", "Europe/Olso", head + `spec.timeZone: Invalid value: "Europe/Olso": unknown time zone, use a name of the IANA database such as Europe/Oslo or UTC`},
		{"impossible time", `"22:00"`, `"25:00"`, head + `spec.openPeriods[0].start: Invalid value: "25:00": start must be a time of day from 00:00 to 23:59`},
		{"unknown field", "daysOfWeek", "weekdays", head + "spec.openPeriods[0].weekdays: unknown field"},
		{"wrong type", `start: "22:00"`, `start: 22`, head + "spec.openPeriods[0].start: Invalid value: must be a string, put it in quotes"},
		{"no time", "timeZone: Europe/Oslo", "notBefore: tomorrow", head + `spec.notBefore: Invalid value: "tomorrow": must be a time in RFC 3339 such as 2026-12-19T00:00:00Z`},
		{"no default", "default: closed", "suspend: false", head + "spec.default: Required value: default must be set"},
		{"refused request", "namespace: flux-system}", "namespace: flux-system, annotations: {close.gate.fluxcd.io/requestedAt: yesterday}}",
			head + "metadata.annotations[close.gate.fluxcd.io/requestedAt]: must be TIME[/DURATION|/unlimited][,only=KIND/NAME]..."},
		{"other version", "v1alpha1", "v9", head + `apiVersion: Invalid value: "gating.toolkit.fluxcd.io/v9": must be gating.toolkit.fluxcd.io/v1alpha1`},
		{"a name that writes lines of its own", "name: production", `name: "a\n::error::x"`, "gates.yaml: flux-system/a ::error::x: metadata.name: Invalid value: \"a\\n::error::x\": a lowercase RFC 1123 subdomain must consist of"},
		{"no name", "name: production, ", "", "gates.yaml: flux-system/: metadata.name: Required value: name or generateName is required"},
		{"a namespace that YAML takes for false", "namespace: flux-system", "namespace: n", "gates.yaml: default/production: metadata.namespace: Invalid value: must be a string, put it in quotes"},
		{"a field twice", "spec:\n", "spec: {default: opened}\nspec:\n", "gates.yaml: "},
		{"no YAML", "spec:", "spec: {", "gates.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := execute(t, strings.Replace(nights, test.from, test.to, 1))
			if code != term.ExitError || out != "" || !strings.HasPrefix(errOut, test.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant: %s", code, out, errOut, test.want)
			}
		})
	}
}

func TestPreviewReportsAllErrorsOfAllDocuments(t *testing.T) {
	bad := strings.NewReplacer("Europe/Oslo", "Nowhere", "22:00", "24:01").Replace(nights)
	code, _, errOut := execute(t, bad+"---"+nights+"---"+strings.ReplaceAll(bad, "production", "staging"))
	if code != term.ExitError || strings.Count(errOut, "\n") != 5 ||
		!strings.Contains(errOut, "flux-system/production: metadata.name: is already defined in ") || !strings.Contains(errOut, "flux-system/staging: spec.timeZone") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestPreviewRefusesWrongArguments(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown output", []string{"-o", "xml"}, `unknown output "xml"`},
		{"a from that cannot be read as a time", []string{"--from", "now"}, "--from must be a time"},
		{"an until that cannot be read as a time", []string{"--until", "never"}, "--until must be a time"},
		{"an empty range", []string{"--from", "2026-11-21T00:00:00Z", "--until", "2026-11-21T00:00:00Z"}, "--until must be later"},
		{"a file that is not there", []string{"missing.yaml"}, "missing.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := execute(t, nights, test.args...)
			if code != term.ExitError || out != "" || !strings.Contains(errOut, test.want) {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errOut)
			}
		})
	}
}

func TestPreviewReadsStandardInput(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run([]string{"preview", "-f", "-"}, strings.NewReader(nights), &out, &errOut, now)
	if code != 0 || !strings.Contains(out.String(), "flux-system/production") {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
}

func TestPreviewAssumesReadyDependenciesAndWarns(t *testing.T) {
	watches := nights + "  dependsOn:\n  - {kind: Kustomization, name: staging}\n  - {kind: HelmRelease, name: canary, readyExpr: \"dep.spec.suspend == false\"}\n"
	args := []string{"-o", "json", "--from", "2026-11-21T00:00:00Z", "--until", "2026-11-22T00:00:00Z"}
	_, without, _ := execute(t, nights, args...)
	code, out, errOut := execute(t, watches, args...)
	want := "warning: gates.yaml: flux-system/production: spec.dependsOn: the gate is closed while a dependency is not ready, the preview treats all 2 as ready\n"
	if code != 0 || errOut != want {
		t.Errorf("exit %d\ngot  %swant %s", code, errOut, want)
	}
	if out != without {
		t.Errorf("got  %s\nwant %s", out, without)
	}
}

func TestPreviewWarnsAboutUnapprovedRequests(t *testing.T) {
	asks := strings.NewReplacer("namespace: flux-system}", `namespace: flux-system, annotations: {open.gate.fluxcd.io/requestedAt: "2026-11-21T00:00:00Z"}}`,
		"default: closed", "default: closed\n  approvals: {openRequests: {required: 1}}").Replace(nights)
	args := []string{"-o", "json", "--from", "2026-11-21T00:00:00Z", "--until", "2026-11-22T00:00:00Z"}
	_, without, _ := execute(t, nights, args...)
	code, out, errOut := execute(t, asks, args...)
	want := "warning: gates.yaml: flux-system/production: spec.approvals: an open request of the user who applies it at 2026-11-21T00:00:00Z waits for 1 more approval: " +
		"approve it with kubectl gate approve gate/production -n flux-system\n"
	if code != 0 || errOut != want || out != without {
		t.Errorf("exit %d\ngot  %s%s\nwant %s%s", code, errOut, out, want, without)
	}
}

func TestPreviewRefusesInvalidCEL(t *testing.T) {
	code, _, errOut := execute(t, nights+"  dependsOn:\n  - {kind: Kustomization, name: staging, readyExpr: \"dep.status =\"}\n")
	if code != 2 || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "gates.yaml: flux-system/production: spec.dependsOn[0].readyExpr: ") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestPreviewAndDiffWarnAboutCronDaysOfMonthAndWeek(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	const schedule = "{name: sundays, schedule: \"0 2 1-7 * SUN\", duration: 3h}"
	ambiguous := nights + "  closePeriods:\n  - " + schedule + "\n"
	excepted := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\nmetadata: {name: hotfix, namespace: flux-system}\nspec:\n" +
		"  gateRef: {name: production}\n  timeZone: UTC\n  validFrom: \"2026-11-24T00:00:00Z\"\n  validUntil: \"2026-11-30T00:00:00Z\"\n  openPeriods:\n  - " + schedule + "\n"
	warning := func(of, field, noun string) string {
		return "warning: new.yaml: flux-system/" + of + ": spec." + field + "[0].schedule: " + noun + " 'sundays': '0 2 1-7 * SUN' starts on each day whose day of month is 1-7 OR whose day of week is SUN, " +
			"as always in cron. For days that are both, such as the first Sunday of a month, use a weekly period with daysOfWeek and weeksOfMonth\n"
	}
	for name, tc := range map[string]struct{ before, after, from, want string }{
		"a schedule with both":           {nights, ambiguous, "2026-11-21T00:00:00Z", warning("production", "closePeriods", "close period")},
		"a schedule with one of them":    {nights, strings.Replace(ambiguous, "1-7 * SUN", "* * SUN", 1), "2026-11-21T00:00:00Z", ""},
		"it was there before":            {ambiguous, nights, "2026-11-21T00:00:00Z", ""},
		"a period of an exception":       {nights, nights + "---\n" + excepted, "2026-11-21T00:00:00Z", warning("hotfix", "openPeriods", "open period")},
		"an exception that is over then": {nights, nights + "---\n" + excepted, "2026-12-01T00:00:00Z", "warning: new.yaml: flux-system/hotfix: spec.validUntil: the exception is already over\n"},
	} {
		old, changed := sides(t, tc.before, tc.after)
		for _, args := range [][]string{{"preview", "-f", changed}, {"diff", "--old", old, "-f", changed}} {
			var out, errOut bytes.Buffer
			code := run(append(args, "--from", tc.from), nil, &out, &errOut, now)
			if got := strings.ReplaceAll(errOut.String(), filepath.Dir(changed)+"/", ""); code > term.ExitDiffers || got != tc.want {
				t.Errorf("%s: %s: exit %d\ngot  %swant %s", name, args[0], code, got, tc.want)
			}
		}
	}
}
