package preview_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	decision "github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// changes returns the differences, one per line.
func changes(t *testing.T, before, after *preview.Set) string {
	t.Helper()
	found, _, err := preview.Diff(before, after, day)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range found.Gates {
		if len(c.Differences) == 0 {
			lines = append(lines, c.Gate+" "+c.Change)
		}
		for _, s := range c.Differences {
			line := fmt.Sprintf("%s %s %s-%s %s %s: %s, %s", c.Gate, c.Change, s.From.UTC().Format("15:04"), s.Until.UTC().Format("15:04"),
				s.Before.State, s.After.State, s.Before.ShortReason(), s.After.ShortReason())
			if s.Targets != nil {
				line += ", only " + decision.Only(s.Targets)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestDiffHasIntervalsWithDifferentState(t *testing.T) {
	web, evening := gate("web", "12:00"), exception("hotfix", "web")
	some := func(e, targets string) string {
		return strings.Replace(e, "spec:\n", "spec:\n  targets: ["+targets+"]\n", 1)
	}
	apps, team := some(evening, "{kind: Kustomization, name: apps}"), some(evening, `{kind: HelmRelease, name: "*", matchLabels: {team: a}}`)
	frozen := strings.Replace(web, "openPeriods:", "closePeriods: [{name: freeze, start: \"19:30\", end: \"23:00\"}]\n  openPeriods:", 1)
	shut := strings.NewReplacer("openPeriods", "closePeriods", "20:00", "11:00", "21:00", "13:00").Replace(apps)
	opens, text := "apps/web changed 20:00-21:00 closed opened: outside open periods, exception hotfix", ", only Kustomization/apps"
	for name, tc := range map[string]struct{ before, after, want string }{
		"the same":            {web, web, ""},
		"a comment":           {web, "# hello\n" + web, ""},
		"a name of a window":  {web, strings.Replace(web, "name: day", "name: noon", 1), ""},
		"a longer window":     {web, gate("web", "13:00"), "apps/web changed 12:00-13:00 closed opened: outside open periods, open period day"},
		"a shorter window":    {web, gate("web", "11:00"), "apps/web changed 11:00-12:00 opened closed: open period day, outside open periods"},
		"a window that moves": {web, strings.NewReplacer("10:00", "11:00", "12:00", "13:00").Replace(web), "apps/web changed 10:00-11:00 opened closed: open period day, outside open periods\napps/web changed 12:00-13:00 closed opened: outside open periods, open period day"},
		"an exception":        {web, web + evening, "apps/web changed 20:00-21:00 closed opened: outside open periods, exception hotfix"},
		"one that goes":       {web + evening, web, "apps/web changed 20:00-21:00 opened closed: exception hotfix, outside open periods"},
		"a gate that comes":   {web, gate("a", "11:00") + web, "apps/a added"},
		"a gate that goes":    {gate("z", "11:00") + web, web, "apps/z removed"},
		"all at once":         {gate("z", "11:00") + web, gate("a", "11:00") + gate("web", "13:00"), "apps/a added\napps/web changed 12:00-13:00 closed opened: outside open periods, open period day\napps/z removed"},
		"another order":       {gate("z", "11:00") + web, web + gate("z", "11:00"), ""},
		"nothing to nothing":  {"", "", ""},
		"some targets":        {web, web + apps, opens + text},
		"some that close":     {web, web + shut, "apps/web changed 11:00-12:00 opened closed: open period day, exception hotfix" + text},
		"some that stay":      {web + apps, web + apps, ""},
		"some that go":        {web + apps, web, "apps/web changed 20:00-21:00 opened closed: exception hotfix, outside open periods" + text},
		"other targets":       {web + apps, web + team, "apps/web changed 20:00-21:00 opened closed: exception hotfix, outside open periods" + text + "\n" + opens + ", only HelmRelease/* with team=a"},
		"some at other times": {web + apps, web + strings.Replace(apps, "20:00", "20:30", 1), "apps/web changed 20:00-20:30 opened closed: exception hotfix, outside open periods" + text},
		"the gate and some":   {web, gate("web", "13:00") + apps, "apps/web changed 12:00-13:00 closed opened: outside open periods, open period day\n" + opens + text},
		"some, then all":      {web + apps, web + evening, opens},
		"some in a period":    {frozen, frozen + apps, strings.Replace(opens, "outside open periods", "close period freeze", 1) + text},
		"a freeze over some":  {web + apps, strings.NewReplacer("freeze", "hard, override: Deny", "19:30", "20:30").Replace(frozen) + apps, "apps/web changed 20:30-21:00 opened closed: exception hotfix, close period hard" + text},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changes(t, manifests(t, tc.before), manifests(t, tc.after)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// From the start to 10:00, the Gate is open by request on both sides. After that, it stays open by its period on one side.
func TestDifferenceHasCauseAtItsStart(t *testing.T) {
	asked := func(g *v1alpha1.Gate) {
		g.Status.Requests = []v1alpha1.AcceptedRequest{{
			State:  v1alpha1.RequestInForce,
			Action: v1alpha1.RequestOpen, RequestedAt: metav1.NewMicroTime(day.From), Window: &v1alpha1.Duration{Duration: 11 * time.Hour},
		}}
	}
	before := preview.FromCluster([]*v1alpha1.Gate{known("web", asked)}, nil)
	want := "apps/web changed 11:00-12:00 opened closed: open period day, outside open periods"
	if got := changes(t, before, before.Applied(manifests(t, gate("web", "10:30")))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDiffReportsErrorOfEitherSide(t *testing.T) {
	good, bad := manifests(t, gate("web", "12:00")), manifests(t, gate("web", "25:00"))
	for name, sides := range map[string][2]*preview.Set{"before": {bad, good}, "after": {good, bad}} {
		if _, _, err := preview.Diff(sides[0], sides[1], day); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestGatesMissingFromManifestsStayUnlessPruned(t *testing.T) {
	before := preview.FromCluster([]*v1alpha1.Gate{known("web"), known("db")}, []*v1alpha1.GateException{extending("hotfix", "web")})
	change := manifests(t, gate("web", "13:00"))
	if got, want := changes(t, before, before.Applied(change)), "apps/web changed 12:00-13:00 closed opened: outside open periods, open period day"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	pruned := before.Without(func(obj metav1.Object) bool { return !change.Has(obj) }).Applied(change)
	want := "apps/db removed\napps/web changed 12:00-13:00 closed opened: outside open periods, open period day\napps/web changed 20:00-21:00 opened closed: exception hotfix, outside open periods"
	if got := changes(t, before, pruned); got != want {
		t.Errorf("pruned: got\n%s\nwant\n%s", got, want)
	}
}

func TestChangeJSONIsStable(t *testing.T) {
	found, _, err := preview.Diff(manifests(t, gate("web", "12:00")), manifests(t, gate("web", "13:00"), gate("x", "11:00")), day)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(found.Gates)
	want := `[` +
		`{"change":"changed","differences":[{"from":"2026-11-24T12:00:00Z","until":"2026-11-24T13:00:00Z",` +
		`"before":{"state":"closed","reason":"OutsideOpenPeriods"},"after":{"state":"opened","reason":"OpenPeriod","period":"day"}}]},` +
		`{"change":"added","differences":[]}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
}
