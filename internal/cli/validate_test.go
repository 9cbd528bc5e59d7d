package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// validateText runs validate with a manifest on standard input.
func validateText(manifest string, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"validate", "-f", "-"}, args...), strings.NewReader(manifest), &stdout, &stderr, now)
	return code, stdout.String(), stderr.String()
}

// manifest returns a manifest of our API group in the namespace apps.
func manifest(kind, name, spec string) string {
	return "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: apps}\nspec: " + spec + "\n---\n"
}

// calendarOn returns a ConfigMap with a calendar that has one event, on the given day.
func calendarOn(day string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: days, namespace: apps}\ndata:\n  a.ics: \"BEGIN:VCALENDAR\\nVERSION:2.0\\nPRODID:a\\nBEGIN:VEVENT\\nUID:1\\n" +
		"DTSTAMP:20250101T000000Z\\nDTSTART;VALUE=DATE:" + day + "\\nSUMMARY:a\\nEND:VEVENT\\nEND:VCALENDAR\\n\"\n---\n"
}

// annotated returns a Gate with an annotation, given as key: value.
func annotated(annotation string) string {
	return strings.Replace(manifest("Gate", "a", "{default: closed}"), "namespace: apps", "namespace: apps, annotations: {"+annotation+"}", 1)
}

// requestingOpen returns a Gate with an open request.
func requestingOpen(value string) string {
	return annotated(`open.gate.fluxcd.io/requestedAt: "` + value + `"`)
}

func TestValidateReportsErrorsOfAllKinds(t *testing.T) {
	for _, test := range []struct{ name, manifest, want string }{
		{"empty approvals", manifest("Gate", "a", "{default: closed, approvals: {}}"), "-: apps/a: spec.approvals: Invalid value: approvals must have openRequests or exceptions: write openRequests: {required: 1}, or remove approvals"},
		{"an interval of zero", manifest("Gate", "a", "{default: closed, interval: 0s}"), `-: apps/a: spec.interval: Invalid value: "0s": interval must be a duration of at least 10s, such as 1m`},
		{"no days", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, start: "08:00", end: "09:00", daysOfWeek: []}]}`), "-: apps/a: spec.openPeriods[0].daysOfWeek: Invalid value: must have at least 1 item"},
		{"a short day", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, start: "08:00", end: "09:00", daysOfWeek: [Mon]}]}`),
			`-: apps/a: spec.openPeriods[0].daysOfWeek[0]: Unsupported value: "Mon": supported values: "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"`},
		{"a number as a time", manifest("Gate", "a", "{default: closed, notBefore: 5}"), "-: apps/a: spec.notBefore: Invalid value: 5: must be a time in RFC 3339 such as "},
		{"a number as a state", manifest("Gate", "a", "{default: 5}"), "-: apps/a: spec.default: Invalid value: must be a string, put it in quotes"},
		{"a list as a period", manifest("Gate", "a", "{default: closed, openPeriods: [[]]}"), "-: apps/a: spec.openPeriods[0]: Invalid value: must be a map of fields\n"},
		{"half a day", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, start: "08:00", end: "09:00", daysOfMonth: [1.5]}]}`), "-: apps/a: spec.openPeriods[0].daysOfMonth[0]: Invalid value: must be a whole number"},
		{"a field without a value", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, start: "08:00", end: "09:00", daysOfMonth: }]}`), "-: apps/a: spec.openPeriods[0].daysOfMonth: has no value"},
		{"a list in a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: gating.toolkit.fluxcd.io/v1alpha1, kind: Gate, metadata: {name: a, namespace: apps}, spec: {default: ajar}}]}]",
			`-: apps/a: spec.default: Unsupported value: "ajar"`},
		{"an item of a list of Gates", "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateList\nitems: [{metadata: {name: a, namespace: apps}, spec: {default: ajar}}]", `-: apps/a: spec.default: Unsupported value: "ajar"`},
		{"the second of two JSON texts", `{"kind": "Other"} {"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "Gate", "metadata": {"name": "a", "namespace": "apps"}, "spec": {"default": "ajar"}}`,
			`-: apps/a: spec.default: Unsupported value: "ajar"`},
		{"no version", strings.Replace(manifest("Gate", "a", "{default: closed}"), "/v1alpha1", "", 1), "-: a: apiVersion: must be gating.toolkit.fluxcd.io/v1alpha1"},
		{"no group and no version", "kind: Gate\nmetadata: {name: a}\nspec: {default: closed}", "-: a: apiVersion: must be gating.toolkit.fluxcd.io/v1alpha1"},
		{"a kind that is misspelled", manifest("Gates", "a", "{default: closed}"), `-: apps/a: kind: Invalid value: "Gates": is not a kind of gating.toolkit.fluxcd.io, did you mean Gate?`},
		{"an unknown kind", manifest("Barrier", "a", "{}"), `-: apps/a: kind: Invalid value: "Barrier": is not a kind of gating.toolkit.fluxcd.io: must be one of CalendarFeed, Gate, `},
		{"a field in lower case", manifest("Gate", "a", "{default: closed, timezone: UTC}"), "-: apps/a: spec.timezone: unknown field, did you mean timeZone?"},
		{"a field of the metadata", strings.Replace(manifest("Gate", "a", "{default: closed}"), "namespace:", "nameSpace: b, namespace:", 1), "-: apps/a: metadata.nameSpace: unknown field"},
		{"a number as label", strings.Replace(manifest("Gate", "a", "{default: closed}"), "namespace:", "labels: {a: 1}, namespace:", 1), "-: apps/a: metadata.labels: Invalid value: must be a string, put it in quotes"},
		{"a receiver without a Secret", manifest("GateReceiver", "a", "{type: github, gateRefs: [{name: g}], action: close}"), "-: apps/a: spec: Invalid value: secretRef is required when type is not generic-oidc"},
		{"a receiver whose path is its only secret", manifest("GateReceiver", "a", "{type: generic, secretRef: {name: s}, gateRefs: [{name: g}], action: open}"),
			`-: apps/a: spec.type: Invalid value: type generic can only close, because the path is its only secret: `},
		{"a filter that is no CEL", manifest("GateReceiver", "a", "{type: github, secretRef: {name: s}, gateRefs: [{name: g}], action: close, filter: 'req.a =='}"), `-: apps/a: spec.filter: Invalid value: "req.a ==": `},
		{"an action of another type", manifest("GateReceiver", "a", "{type: github, secretRef: {name: s}, gateRefs: [{name: g}], actionExpr: 'true'}"), `-: apps/a: spec.actionExpr: Invalid value: "true": `},
		{"a token that is not validated by CEL", manifest("GateReceiver", "a", "{type: generic-oidc, gateRefs: [{name: g}], action: close, oidcProviders: [{issuerURL: 'https://a', validations: [{expression: 'claim.sub', message: m}]}]}"),
			`-: apps/a: spec.oidcProviders[0].validations[0].expression: Invalid value: "claim.sub": `},
		{"a receiver with gates", manifest("GateReceiver", "a", "{type: github, secretRef: {name: s}, gateRefs: [{name: g}], gates: [{name: g}], action: close}"), "-: apps/a: spec.gates: unknown field, did you mean gateRefs?"},
		{"a feed with gates", manifest("CalendarFeed", "a", "{secretRef: {name: s}, gateRefs: [{name: g}], gates: [{name: g}]}"), "-: apps/a: spec.gates: unknown field, did you mean gateRefs?"},
		{"a feed of nothing", manifest("CalendarFeed", "a", "{secretRef: {name: s}}"), "-: apps/a: spec: Invalid value: exactly one of gateRefs and selector must be set"},
		{"a bucket", manifest("GatedSource", "a", "{sourceRef: {kind: Bucket, name: b}}"), "-: apps/a: spec.sourceRef: Invalid value: a Bucket cannot be pinned"},
		{"a request that is malformed", requestingOpen("2026-11-24"), "-: apps/a: metadata.annotations[open.gate.fluxcd.io/requestedAt]: must be TIME[/DURATION][,only=KIND/NAME]..., such as "},
		{"a request that is too long", requestingOpen("2026-11-24T00:00:00Z/367d"), "-: apps/a: metadata.annotations[open.gate.fluxcd.io/requestedAt]: must have a DURATION from 1s to 366d"},
		{"a range from Friday to Tuesday", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, schedule: "0 8 * * 5-2", duration: 1h}]}`), `-: apps/a: spec.openPeriods[0].schedule: Invalid value: "0 8 * * 5-2": `},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := validateText(test.manifest)
			if code != term.ExitError || out != "" || !strings.HasPrefix(errOut, test.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant:   %s", code, out, errOut, test.want)
			}
		})
	}
}

func TestValidateReportsAllErrorsOfFile(t *testing.T) {
	code, _, errOut := validateText(manifest("Gate", "a", `{default: ajar, suspend: "no", interval: 1s, foo: bar, openPeriods: [{name: w, start: "25:00", end: "09:00"}, {start: "08:00", end: 9}]}`) +
		manifest("GateReceiver", "b", "{type: generic, secretRef: {name: s}, gateRefs: [], action: close}"))
	for _, want := range []string{
		"apps/a: spec.default: Unsupported value", "apps/a: spec.suspend: Invalid value: must be true or false", "apps/a: spec.interval: Invalid value", "apps/a: spec.foo: unknown field",
		"apps/a: spec.openPeriods[0].start: Invalid value", "apps/a: spec.openPeriods[1].name: Required value", "apps/a: spec.openPeriods[1].end: Invalid value: must be a string, put it in quotes", "apps/b: spec.gateRefs: Invalid value",
	} {
		if !strings.Contains(errOut, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != term.ExitError || strings.Count(errOut, "\n") != 8 {
		t.Errorf("exit %d:\n%s", code, errOut)
	}
}

func TestValidateWarnsAboutProbableMistakes(t *testing.T) {
	for _, test := range []struct{ name, manifest, want string }{
		{"always closed", manifest("Gate", "a", `{default: opened, closePeriods: [{name: c, start: "12:00", end: "12:00"}]}`), "spec: the gate is always closed: its close periods leave no time in which it is open"},
		{"never opens", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, start: "08:00", end: "09:00"}], closePeriods: [{name: c, start: "07:00", end: "10:00"}]}`), "spec: the gate never opens"},
		{"periods that are all over", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, from: "2026-11-01T00:00:00Z", until: "2026-11-02T00:00:00Z"}]}`), "spec: the gate never opens"},
		{"a validity that ends first", manifest("Gate", "a", `{default: closed, notAfter: "2026-12-01T00:00:00Z", openPeriods: [{name: c, schedule: "0 8 1 6 *", duration: 1h}]}`), "spec: the gate never opens"},
		{"a calendar whose events are over", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}]}`) + calendarOn("20250101"), "spec: the gate does not open in the next 366 days"},
		{"a calendar that has no event", manifest("Gate", "a", `{default: opened, closePeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}]}`) + calendarOn("20250101"), "spec.closePeriods[0]: period c has no event in the next 366 days"},
		{"a calendar in a close period", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}], closePeriods: [{name: all, start: "00:00", end: "24:00"}]}`) + calendarOn("20261224"), "spec: the gate does not open in the next 366 days"},
		{"a calendar that opens", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}]}`) + calendarOn("20261224"), ""},
		{"a calendar that is missing", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}]}`), "is not in the manifests: the preview treats it as closed"},
		{"openings every hour", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, schedule: "0 * * * *", duration: 10m}]}`), ""},
		{"opens on a leap day", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, schedule: "0 8 29 2 *", duration: 1h}]}`), ""},
		{"waits for requests", manifest("Gate", "a", `{default: closed}`), ""},
		{"over", manifest("Gate", "a", `{default: closed, notAfter: "2026-11-01T00:00:00Z"}`), "spec.notAfter: is in the past"},
		{"a period that is over", manifest("Gate", "a", `{default: opened, closePeriods: [{name: c, from: "2026-11-01T00:00:00Z", until: "2026-11-02T00:00:00Z"}]}`), "spec.closePeriods[0]: period c is already over"},
		{"a period after the end", manifest("Gate", "a", `{default: opened, notAfter: "2026-12-01T00:00:00Z", closePeriods: [{name: c, from: "2026-12-02T00:00:00Z", until: "2026-12-03T00:00:00Z"}]}`), "spec.closePeriods[0]: period c never occurs before notAfter"},
		{"a period before the begin", manifest("Gate", "a", `{default: opened, notBefore: "2027-01-01T00:00:00Z", closePeriods: [{name: c, from: "2026-12-02T00:00:00Z", until: "2026-12-03T00:00:00Z"}]}`), "spec.closePeriods[0]: period c never occurs after notBefore"},
		{"a period outside of both", manifest("Gate", "a", `{default: opened, notBefore: "2027-01-01T00:00:00Z", notAfter: "2027-02-01T00:00:00Z", closePeriods: [{name: c, from: "2027-03-02T00:00:00Z", until: "2027-03-03T00:00:00Z"}]}`), "spec.closePeriods[0]: period c never occurs between notBefore and notAfter"},
		{"a period in 2050", manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, from: "2050-12-02", until: "2050-12-03"}]}`), ""},
		{"a period in 2050 of a bounded Gate", manifest("Gate", "a", `{default: closed, notBefore: "2026-01-01T00:00:00Z", openPeriods: [{name: c, from: "2050-12-02", until: "2050-12-03"}]}`), ""},
		{"a Gate from 2050 on", manifest("Gate", "a", `{default: closed, notBefore: "2050-01-01T00:00:00Z", openPeriods: [{name: w, start: "08:00", end: "09:00"}]}`), ""},
		{"closed until 2050", manifest("Gate", "a", `{default: opened, closePeriods: [{name: c, from: "2026-01-01", until: "2050-12-03"}]}`), ""},
		{"closed since notBefore", manifest("Gate", "a", `{default: closed, notBefore: "2027-01-01T00:00:00Z", openPeriods: [{name: c, from: "2026-12-02", until: "2026-12-03"}]}`), "spec: the gate never opens: its periods and notBefore leave no time in which it is open"},
		{"strict with a margin", manifest("Gate", "a", `{default: closed, certificates: {strict: true, safetyMargin: 1h}}`), "spec.certificates.safetyMargin: has no effect with strict: true"},
		{"an audit with a pace", manifest("Gate", "a", `{default: closed, mode: Audit, release: {perMinute: 1}}`), "spec.release: has no effect with mode Audit"},
		{"too many openings", manifest("Gate", "a", `{default: closed, openPeriods: [{name: w, schedule: "*/2 * * * *", duration: 1m}]}`), "spec: the gate opens 21600 times in 30 days"},
		{"a kind that cannot be held", manifest("Gate", "a", `{default: closed, targets: [{kind: Deployment, name: a}]}`), "spec.targets[0].kind: kind Deployment is not supported"},
		{"a request that is over", requestingOpen("2025-01-01T00:00:00Z/1h"), "metadata.annotations[open.gate.fluxcd.io/requestedAt]: must be at most 366 days from now"},
		{"a request of yesterday", requestingOpen("2026-11-20T00:00:00Z/1h"), "metadata.annotations[open.gate.fluxcd.io/requestedAt]: is refused, it ended at 2026-11-20T01:00:00Z"},
		{"a withdrawal that is planned", requestingOpen("2026-11-24T00:00:00Z/0s"), "metadata.annotations[open.gate.fluxcd.io/requestedAt]: is refused, a withdrawal takes effect at once"},
		{"a request far in the future", requestingOpen("2030-01-01T00:00:00Z/1h"), "metadata.annotations[open.gate.fluxcd.io/requestedAt]: must be at most 366 days from now"},
		{"an annotation in lower case", annotated("open.gate.fluxcd.io/requestedat: x"),
			"metadata.annotations[open.gate.fluxcd.io/requestedat]: unknown annotation, did you mean open.gate.fluxcd.io/requestedAt?"},
		{"an annotation of the controller", annotated("gating.toolkit.fluxcd.io/deliveries: x"), "metadata.annotations[gating.toolkit.fluxcd.io/deliveries]: only the controller writes it"},
		{"an annotation of a target", manifest("Gate", "a", "{default: closed}") + "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" +
			"metadata: {name: b, namespace: apps, annotations: {gating.toolkit.fluxcd.io/held-by: x}}\n", "apps/b: metadata.annotations[gating.toolkit.fluxcd.io/held-by]: unknown annotation, did you mean gating.toolkit.fluxcd.io/heldBy?"},
		{"an exception that is over", manifest("Gate", "a", `{default: closed}`) + manifest("GateException", "a", `{gateRef: {name: a}, default: closed, validFrom: "2026-11-01T00:00:00Z", validUntil: "2026-11-02T00:00:00Z"}`), "spec.validUntil: the exception is already over"},
		{"a period outside of an exception", manifest("Gate", "a", `{default: closed}`) + manifest("GateException", "a",
			`{gateRef: {name: a}, timeZone: UTC, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z", openPeriods: [{name: w, daysOfWeek: [Sunday], start: "08:00", end: "09:00"}]}`), "spec.openPeriods[0]: has no time within validFrom and validUntil"},
		{"a period outside of an exception in its zone", manifest("Gate", "a", `{default: closed, timeZone: UTC}`) + manifest("GateException", "a",
			`{gateRef: {name: a}, timeZone: Asia/Tokyo, validFrom: "2026-12-01T08:00:00Z", validUntil: "2026-12-01T09:00:00Z", closePeriods: [{name: w, start: "08:00", end: "09:00"}]}`), "spec.closePeriods[0]: has no time within validFrom and validUntil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := validateText(test.manifest)
			if code != 0 || !strings.Contains(out, "valid, with ") || test.want == "" && errOut != "" || !strings.Contains(errOut, test.want) {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant:   %s", code, out, errOut, test.want)
			}
			_, _, previewed := execute(t, test.manifest)
			if !strings.Contains(previewed, test.want) {
				t.Errorf("preview prints %swant %s", previewed, test.want)
			}
		})
	}
	if code, _, errOut := validateText(manifest("Gate", "a", `{default: closed, targets: [{kind: CronJob, name: a}]}`), "--suspend-kinds=batch/CronJob"); code != 0 || errOut != "" {
		t.Errorf("a kind of --suspend-kinds: exit %d: %s", code, errOut)
	}
}

func TestValidateAcceptsGeneratedName(t *testing.T) {
	if code, out, errOut := validateText("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {generateName: a-}\nspec: {default: opened}"); code != 0 || !strings.HasPrefix(out, "1 manifest: valid") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestSamplesAreValid(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run([]string{"validate", "-f", filepath.Join("..", "..", "config", "samples")}, nil, &out, &errOut, now)
	if code != 0 || !strings.Contains(out.String(), " manifests: valid") {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
}

func TestValidateReportsFilesWithoutManifests(t *testing.T) {
	code, out, errOut := validateText("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	if code != 0 || out != "" || errOut != "The files contain no manifests of the API group gating.toolkit.fluxcd.io.\n" {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	if code := run([]string{"validate"}, nil, &bytes.Buffer{}, &bytes.Buffer{}, now); code != term.ExitError {
		t.Errorf("without files: exit %d", code)
	}
}

func TestValidateAcceptsOneNameInSeveralOverlays(t *testing.T) {
	t.Chdir(t.TempDir())
	days := func(day string) string {
		return manifest("Gate", "a", `{default: closed, openPeriods: [{name: c, calendar: {configMapRef: {name: days, key: a.ics}}}]}`) + calendarOn(day)
	}
	for path, content := range map[string]string{
		"eu/gate.yaml": days("20261224"), "us/gate.yaml": days("20261225"), "built/gate.yaml": strings.Replace(days("20261226"), "{default: closed,", "{default: closed, mode: Audit,", 1), "built/kustomization.yaml": "resources: [gate.yaml]\n",
		"bad/gate.yaml": manifest("Gate", "a", "{default: ajar}"), "twice/a.yaml": days("20261224"), "twice/b.yaml": days("20261224"),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	both := "2 us/gate.yaml: apps/a: metadata.name: is already defined in eu/gate.yaml\nus/gate.yaml: apps/days: data[a.ics]: differs from the one in eu/gate.yaml\n"
	for args, want := range map[string]string{
		"validate -f eu us built": "0 3 manifests: valid, with 2 warnings.\n" +
			"warning: us/gate.yaml: apps/a: is also defined in eu/gate.yaml: other warnings are given only for that one\n" +
			"warning: built: apps/a: is also defined in eu/gate.yaml: other warnings are given only for that one\n",
		"validate -f eu bad":            `2 bad/gate.yaml: apps/a: spec.default: Unsupported value: "ajar": supported values: "closed", "opened"` + "\n",
		"validate -f twice":             "2 twice/b.yaml: apps/a: metadata.name: is already defined in twice/a.yaml\n",
		"preview -f eu us":              both,
		"diff --old built -f eu -f us":  both,
		"validate -f eu eu/gate.yaml":   "2 eu/gate.yaml: apps/a: metadata.name: is already defined in eu/gate.yaml\n",
		"validate -f us/gate.yaml bad/": `2 bad/gate.yaml: apps/a: spec.default: Unsupported value: "ajar": supported values: "closed", "opened"` + "\n",
	} {
		var out, errOut bytes.Buffer
		code := run(strings.Fields(args), nil, &out, &errOut, now)
		if got := fmt.Sprintf("%d %s%s", code, out.String(), errOut.String()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", args, got, want)
		}
	}
}
