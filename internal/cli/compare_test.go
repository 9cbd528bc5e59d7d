package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// The year for which the pages of docs/compare are computed. It has both changes of clocks, and all dates of the pages.
var (
	yearBegins = time.Date(2027, 1, 4, 0, 0, 0, 0, time.UTC)
	yearEnds   = time.Date(2028, 1, 4, 0, 0, 0, 0, time.UTC)
)

// allows says whether a peer lets something change at an instant.
type allows func(time.Time) bool

// peers are what the pages of docs/compare convert: a file on the page, how its rules are read, and what in the Gate makes another
// schedule of it.
var peers = []struct {
	page, file string
	read       func(t *testing.T, manifest string) allows
	old, other string
}{
	{"argo-cd.md", "appproject.yaml", syncWindows, `end: "05:00"`, `end: "05:01"`},
	{"flux-operator.md", "provider.yaml", inputSchedules, "timeZone: America/New_York", "timeZone: Europe/London"},
	{"kargo.md", "projectconfig.yaml", promotionWindows, "2027-12-23T00:00:00Z", "2027-12-22T00:00:00Z"},
	{"flux-suspend.md", "cronjobs.yaml", suspendingJobs, "Thursday, Friday]", "Thursday]"},
}

func TestThePagesThatCompareShowWhatPreviewPrints(t *testing.T) {
	for _, p := range peers {
		t.Run(p.page, func(t *testing.T) { showsWhatPreviewPrints(t, "compare/"+p.page, 1) })
	}
}

func TestTheGatesOfThePagesThatCompareAreOpenWhenThePeersAllowIt(t *testing.T) {
	for _, p := range peers {
		t.Run(p.page, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", "docs", "compare", p.page))
			if err != nil {
				t.Fatal(err)
			}
			theirs := func() allows { return p.read(t, onPage(t, string(content), p.file)) }
			gate := onPage(t, string(content), "gate.yaml")
			if at := differAt(t, theirs(), opened(t, gate)); !at.IsZero() {
				t.Errorf("they differ at %s, when the peer says %t", at.Format(time.RFC3339), theirs()(at))
			}
			if !strings.Contains(gate, p.old) || differAt(t, theirs(), opened(t, strings.Replace(gate, p.old, p.other, 1))).IsZero() {
				t.Errorf("with %s the Gate is the same: nothing is compared", p.other)
			}
		})
	}
}

// onPage returns the manifest of a page whose first line is the name of a file.
func onPage(t *testing.T, page, file string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```yaml\n# " + regexp.QuoteMeta(file) + "\n(.*?)```").FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no %s", file)
	}
	return found[1]
}

// differAt returns the first minute of the year in which two schedules differ, zero if there is none. It asks in the middle of each
// minute: whether the instant of an edge belongs to a window is not the same everywhere.
func differAt(t *testing.T, a, b allows) time.Time {
	t.Helper()
	open := 0
	for at := yearBegins.Add(30 * time.Second); at.Before(yearEnds); at = at.Add(time.Minute) {
		allowed := a(at)
		if allowed != b(at) {
			return at
		}
		if allowed {
			open++
		}
	}
	if open < 24*60 {
		t.Fatalf("open for %d minutes only", open)
	}
	return time.Time{}
}

// opened returns when kubectl gate preview says that a Gate is open.
func opened(t *testing.T, manifest string) allows {
	t.Helper()
	code, out, errOut := execute(t, manifest, "-o", "json", "--from", yearBegins.Format(time.RFC3339), "--until", yearEnds.Format(time.RFC3339))
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	intervals := timelinesIn(t, out)[0].Intervals
	next := 0
	return func(at time.Time) bool { // instants come in their order
		for next < len(intervals)-1 && !at.Before(intervals[next].Until.Time) {
			next++
		}
		return intervals[next].State == "opened"
	}
}

// decoded reads a manifest, and returns the zone of a name.
func decoded(t *testing.T, manifest string, into any) func(zone string) *time.Location {
	t.Helper()
	if err := yaml.Unmarshal([]byte(manifest), into); err != nil {
		t.Fatal(err)
	}
	return func(name string) *time.Location {
		zone, err := tz.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return zone
	}
}

// ticks are the instants at which something begins, in their order: those of the year, and of some weeks before and after it.
type ticks []time.Time

// ticksIn returns the ticks of an expression in a zone, as robfig/cron reads it for all of the peers.
func ticksIn(t *testing.T, expression string, zone *time.Location) (all ticks) {
	t.Helper()
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		t.Fatal(err)
	}
	schedule := *parsed.(*cron.SpecSchedule) //nolint:forcetypeassert // an expression of five fields is one
	schedule.Location = zone
	const around = 30 * 24 * time.Hour
	for at := schedule.Next(yearBegins.Add(-around)); !at.IsZero() && at.Before(yearEnds.Add(around)); at = schedule.Next(at) {
		all = append(all, at)
	}
	return all
}

// next returns the first tick after an instant.
func (all ticks) next(after time.Time) time.Time {
	i := sort.Search(len(all), func(i int) bool { return all[i].After(after) })
	if i == len(all) {
		return yearEnds.AddDate(1, 0, 0)
	}
	return all[i]
}

// last returns the last tick that is not after an instant.
func (all ticks) last(at time.Time) time.Time {
	i := sort.Search(len(all), func(i int) bool { return all[i].After(at) })
	if i == 0 {
		return time.Time{}
	}
	return all[i-1]
}

// syncWindows reads the sync windows of an AppProject. Argo CD takes the present time on the clock of the zone as if it were UTC, and
// asks whether a tick lies less than the duration before it. A deny wins, and one allow is enough.
func syncWindows(t *testing.T, manifest string) allows {
	t.Helper()
	var project struct {
		Spec struct {
			SyncWindows []struct{ Kind, Schedule, Duration, TimeZone string }
		}
	}
	zoneOf := decoded(t, manifest, &project)
	var all []func(time.Time) (allow, active bool)
	for _, w := range project.Spec.SyncWindows {
		begins, zone := ticksIn(t, w.Schedule, time.UTC), zoneOf(w.TimeZone)
		lasts, err := time.ParseDuration(w.Duration)
		if err != nil || w.Kind != "allow" && w.Kind != "deny" {
			t.Fatalf("%+v: %v", w, err)
		}
		all = append(all, func(at time.Time) (bool, bool) {
			_, offset := at.In(zone).Zone()
			wall := at.UTC().Add(time.Duration(offset) * time.Second)
			return w.Kind == "allow", begins.next(wall.Add(-lasts)).Before(wall)
		})
	}
	return func(at time.Time) bool {
		allowed := false
		for _, window := range all {
			switch allow, active := window(at); {
			case active && !allow:
				return false
			case active:
				allowed = true
			}
		}
		return allowed
	}
}

// inputSchedules reads the schedule of a ResourceSetInputProvider: from each tick in its zone for as long as its window is.
func inputSchedules(t *testing.T, manifest string) allows {
	t.Helper()
	var provider struct {
		Spec struct {
			Schedule []struct{ Cron, TimeZone, Window string }
		}
	}
	zoneOf := decoded(t, manifest, &provider)
	var all []allows
	for _, s := range provider.Spec.Schedule {
		begins := ticksIn(t, s.Cron, zoneOf(s.TimeZone))
		lasts, err := time.ParseDuration(s.Window)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, func(at time.Time) bool { return !begins.next(at.Add(-lasts)).After(at) })
	}
	return func(at time.Time) bool {
		for _, schedule := range all {
			if schedule(at) {
				return true
			}
		}
		return false
	}
}

// suspendingJobs reads two CronJobs that resume and suspend: what ran last decides.
func suspendingJobs(t *testing.T, manifests string) allows {
	t.Helper()
	jobs := map[string]ticks{}
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		var job batchv1.CronJob
		if err := yaml.UnmarshalStrict([]byte(manifest), &job); err != nil || job.Spec.TimeZone == nil {
			t.Fatalf("%v: %s", err, manifest)
		}
		zone, err := tz.Load(*job.Spec.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		verb := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args[0]
		jobs[verb] = ticksIn(t, job.Spec.Schedule, zone)
	}
	resumes, suspends := jobs["resume"], jobs["suspend"]
	if len(resumes) == 0 || len(suspends) == 0 {
		t.Fatalf("%v", jobs)
	}
	return func(at time.Time) bool { return resumes.last(at).After(suspends.last(at)) }
}

func TestTheManifestsOfPeersHaveNoFieldThatIsNotRead(t *testing.T) {
	for page, fields := range map[string]string{
		"argo-cd.md":       "kind schedule duration timeZone applications",
		"flux-operator.md": "cron timeZone window",
		"kargo.md":         "name kind stageSelector rrule dtstart dtend",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "docs", "compare", page))
		if err != nil {
			t.Fatal(err)
		}
		lists := regexp.MustCompile(`(?m)^  (?:syncWindows|schedule|promotionWindows):\n((?:  [- ] .*\n)+)`).FindSubmatch(content)
		if lists == nil {
			t.Fatalf("%s has no list", page)
		}
		for _, key := range regexp.MustCompile(`(?m)^  [- ] ([a-zA-Z]+):`).FindAllSubmatch(lists[1], -1) {
			if !bytes.Contains([]byte(" "+fields+" "), []byte(" "+string(key[1])+" ")) {
				t.Errorf("%s: no code reads %s", page, key[1])
			}
		}
	}
}
