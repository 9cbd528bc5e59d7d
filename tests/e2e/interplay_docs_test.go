package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestInterplayTablesMatchTests(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "contribute", "interplay.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(content), -1) {
		rows = append(rows, row[1])
	}
	slices.Sort(rows)
	tests := slices.Sorted(maps.Keys(states))
	tests = slices.AppendSeq(tests, maps.Keys(downCases))
	for _, c := range []cases{gitCases, peopleCases, gateCases, onlyCases} {
		tests = slices.AppendSeq(tests, maps.Keys(c))
	}
	slices.Sort(tests)
	if !slices.Equal(rows, tests) {
		t.Errorf("rows %q\ntests %q", rows, tests)
	}
}

func TestBrokenPromiseIsFound(t *testing.T) {
	of := func(suspend string, heldBy []string, owners ...string) version {
		return version{resourceVersion: "1", observation: observation{exists: true, suspend: suspend, owners: owners, heldBy: heldBy}}
	}
	gates := []string{"ns/production"}
	bothOwn, oursAlone, othersOwn, noneOwns := of("true", gates, inGit, us), of("true", gates, us), of("true", nil, inGit), of("", nil)
	for name, tc := range map[string]struct {
		before, after version
		promises      promises
		broken        bool
	}{
		"a release of what Git suspends":              {bothOwn, noneOwns, promises{suspended: true, resumed: true}, true},
		"a resume of what Git suspends, by no client": {othersOwn, noneOwns, promises{suspended: true}, true},
		"a resume of what Git suspends, by a person":  {othersOwn, noneOwns, promises{suspended: true, resumed: true}, false},
		"flux resume of what is held and suspended":   {bothOwn, of("", gates), promises{suspended: true, resumed: true}, false},
		"a release of what no other client suspends":  {oursAlone, noneOwns, promises{}, false},
		"a release that leaves it suspended":          {bothOwn, othersOwn, promises{suspended: true}, false},
		"a release while a gate is closed":            {oursAlone, noneOwns, promises{closed: true}, true},
		"flux resume while a gate is closed":          {oursAlone, of("", gates), promises{closed: true, resumed: true}, false},
		"a hold while no gate is closed":              {noneOwns, oursAlone, promises{free: true}, true},
		"a hold while a gate is closed":               {noneOwns, oursAlone, promises{}, false},
		"a status write in between":                   {bothOwn, bothOwn, promises{suspended: true}, false},
		"the first version of an object":              {version{}, noneOwns, promises{suspended: true}, false},
	} {
		if err := tc.promises.check(tc.before, tc.after); (err != nil) != tc.broken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
