package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// decodeItems returns the items of a List of a kind. Unknown fields, other versions and other kinds fail the test.
func decodeItems[T any](t *testing.T, out, kind string) (items []T) {
	t.Helper()
	strict := func(data []byte, into any) {
		t.Helper()
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	var list struct {
		APIVersion, Kind string
		Items            *[]map[string]any
	}
	strict([]byte(out), &list)
	wantVersion, wantKind := "cli.gating.toolkit.fluxcd.io/v1alpha1", kind+"List"
	if kind == v1alpha1.GateKind {
		wantVersion, wantKind = "v1", "List"
	}
	if list.APIVersion != wantVersion || list.Kind != wantKind || list.Items == nil {
		t.Fatalf("got %s of %s, want %s of %s:\n%s", list.Kind, list.APIVersion, wantKind, wantVersion, out)
	}
	for _, fields := range *list.Items {
		version := list.APIVersion
		if kind == v1alpha1.GateKind {
			version = v1alpha1.GroupVersion.String()
		}
		if fields["apiVersion"] != version || fields["kind"] != kind {
			t.Errorf("an item is a %s of %s, want %s of %s", fields["kind"], fields["apiVersion"], kind, version)
		}
		delete(fields, "apiVersion")
		delete(fields, "kind")
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		var item T
		strict(data, &item)
		items = append(items, item)
	}
	return items
}

// timelinesIn returns what preview -o json has printed.
func timelinesIn(t *testing.T, out string) []gateTimeline {
	t.Helper()
	return decodeItems[gateTimeline](t, out, "GateTimeline")
}

// prints checks that what a command prints is a List of a kind with these items.
func prints[T any](kind string, items []T, print func(*session, *output) error) func(*testing.T) {
	return func(t *testing.T) {
		var stdout bytes.Buffer
		out := newOutput(&cobra.Command{})
		*out.OutputFormat = "json"
		if err := print(&session{terminal: &terminal{IOStreams: genericiooptions.IOStreams{Out: &stdout}}}, out); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(decodeItems[T](t, stdout.String(), kind))
		if err != nil || string(got) != string(want) {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
}

func TestEveryReportIsAListOfItsKind(t *testing.T) {
	at, r := metav1.NewTime(now), preview.Range{From: now, Until: now.AddDate(0, 0, 1)}
	about := explain.Metadata{Namespace: "flux-system", Name: "production"}
	ref := explain.Ref{APIVersion: "v1", Kind: "Kustomization", Namespace: "flux-system", Name: "production"}
	cause := preview.Cause{State: "opened", Reason: "OpenPeriod", Period: "nights"}
	timeline := preview.Timeline{Intervals: []preview.Interval{{From: at, Until: at, Cause: cause}}}
	change := preview.Change{Change: preview.Changed, Stretches: []preview.Stretch{{From: at, Until: at, Before: cause, After: cause}}}
	g := freezing(v1alpha1.OverrideDeny)
	g.Status.History = []v1alpha1.HistoryEntry{{At: at, State: v1alpha1.StateClosed, Reason: "Default"}}
	source := &v1alpha1.GatedSource{}
	source.Namespace, source.Name = about.Namespace, about.Name
	source.Status.Promotions = []v1alpha1.Promotion{{Revision: "main@sha1:b", At: at, Reason: "Approved"}}
	finding := check.Finding{Severity: check.Warning, Object: "Gate flux-system/production", Message: "m"}
	waiting := explain.Waiting{Metadata: about, Target: ref, Gates: []string{}, Reason: explain.NewRevision, Since: &at}
	why := explain.Explanation{Metadata: about, Target: ref, State: explain.Held, Gates: []explain.Gate{}, Waiting: &waiting}
	gates := prints(gateReport, []*v1alpha1.Gate{g.DeepCopy()}, func(s *session, o *output) error { return printGates(o, s.Out, []*v1alpha1.Gate{g}) })
	tests := map[string]func(*testing.T){
		"check": prints(findingReport, []check.Finding{finding}, func(s *session, o *output) error { return printFindings(s.terminal, o, []check.Finding{finding}, 0) }),
		"diff": prints(gateChangeReport, []gateChange{{newReportRange("flux-system/production", r), change}}, func(s *session, o *output) error {
			change.Gate = "flux-system/production"
			return printChanges(o, s.Out, &preview.Changes{Gates: []preview.Change{change}}, r)
		}),
		"history": prints(gateHistoryEntry, []historyItem{{about, g.Status.History[0]}}, func(s *session, o *output) error {
			return past[historyItem]{kind: gateHistoryEntry, items: historySince(s.terminal, []*v1alpha1.Gate{g}, now)}.print(s.terminal, o)
		}),
		"history source/NAME": prints(sourcePromotion, []promotionItem{{about, source.Status.Promotions[0]}}, func(s *session, o *output) error {
			return past[promotionItem]{kind: sourcePromotion, items: promotionsSince(s.terminal, source, now)}.print(s.terminal, o)
		}),
		"list": gates, "status": gates,
		"pending": prints(pendingTarget, []pendingItem{{Waiting: waiting}}, func(s *session, o *output) error {
			return printPending(s, &pendingFlags{output: o}, []pendingItem{{Waiting: waiting}}, 1, now)
		}),
		"preview": prints(gateTimelineReport, []gateTimeline{{newReportRange("flux-system/production", r), timeline}}, func(s *session, o *output) error {
			timeline.Gate = "flux-system/production"
			return printTimelines(o, s.Out, &preview.Report{Gates: []preview.Timeline{timeline}}, r)
		}),
		"version": func(t *testing.T) {
			var out bytes.Buffer
			code := run([]string{"version", "--client", "-o", "json"}, nil, &out, &out, now)
			if items := decodeItems[versions](t, out.String(), versionReport); code != 0 || len(items) != 1 || items[0].Client.TimeZoneData != tz.Version() {
				t.Errorf("exit %d: %+v", code, items)
			}
		},
		"why": prints(targetExplanation, []explain.Explanation{why}, func(s *session, o *output) error {
			return o.reports(s.Out, targetExplanation, []explain.Explanation{why})
		}),
	}
	for _, report := range reports {
		if test := tests[report.command]; test == nil {
			t.Errorf("no test of %s", report.command)
		} else {
			t.Run(report.command, test)
		}
	}
}

func TestThePageOnTheCommandsHasTheKindOfEachReport(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	if err != nil || !strings.Contains(string(page), Reports()) {
		t.Errorf("%v: run make generate, the page lacks\n%s", err, Reports())
	}
	for _, cmd := range Command().Commands() {
		writes := cmd.Name() == "exception" || cmd.Name() == "approve" // these print the object that they write
		listed := slices.ContainsFunc(reports, func(r struct{ command, kind, text string }) bool { return strings.Fields(r.command)[0] == cmd.Name() })
		if has := cmd.Flags().Lookup("output") != nil; has && !writes != listed {
			t.Errorf("%s: in the table %t", cmd.Name(), listed)
		}
	}
}

func TestAReportHasNoName(t *testing.T) {
	code, out, errOut := execute(t, nights, "-o", "name")
	if want := "error: -o name: a report has no name, use json\n"; code != exitError || out != "" || errOut != want {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}
