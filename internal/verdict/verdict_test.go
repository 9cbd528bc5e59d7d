package verdict_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// TestSteps has a sentence for each thing that Gates do with a target.
func TestSteps(t *testing.T) {
	a, b := []string{"shop/a"}, []string{"shop/b"}
	both := []string{"shop/a", "shop/b"}
	toldBefore, toldSince := noon.Add(-2*time.Hour), noon.Add(-time.Minute)
	hold := func(names ...string) verdict.Step {
		return verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: names}
	}
	stays := func(names ...string) verdict.Step {
		return verdict.Step{Outcome: verdict.Held, Hold: true, Names: names}
	}
	waits := func(names ...string) verdict.Step {
		return verdict.Step{Outcome: verdict.Held, Hold: true, Names: names, Waits: true}
	}
	release := verdict.Step{Write: true}
	missing := verdict.Gate{Name: "shop/m", Effect: verdict.Missing, Governs: true}
	denied := verdict.Gate{Name: "infra/d", Effect: verdict.Denied, Governs: true}
	elsewhere := verdict.Gate{Name: "shop/s", Effect: verdict.OtherShard}
	for name, test := range map[string]struct {
		observed verdict.Observed
		gates    []verdict.Gate
		want     verdict.Step
		again    bool
	}{
		"nothing governs it":                 {verdict.Observed{}, nil, verdict.Step{}, false},
		"its gate is open":                   {verdict.Observed{}, governing(opened("a")), verdict.Step{}, false},
		"its gate closes":                    {verdict.Observed{}, governing(closed("a")), hold("shop/a"), false},
		"two gates close: one write":         {verdict.Observed{}, governing(closed("b"), closed("a")), hold("shop/a", "shop/b"), false},
		"one of two gates closes":            {verdict.Observed{}, governing(closed("a"), opened("b")), hold("shop/a"), false},
		"its gate stays closed":              {verdict.Observed{State: target.Held, HeldBy: a}, governing(closed("a")), stays("shop/a"), false},
		"another gate closes, too":           {verdict.Observed{State: target.Held, HeldBy: a}, governing(closed("a"), closed("b")), hold("shop/a", "shop/b"), false},
		"its gate opens":                     {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a")), release, false},
		"one of two gates opens":             {verdict.Observed{State: target.Held, HeldBy: both}, governing(closed("a"), opened("b")), hold("shop/a"), false},
		"one opens as the other closes":      {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a"), closed("b")), hold("shop/b"), false},
		"both open: one write":               {verdict.Observed{State: target.Held, HeldBy: both}, governing(opened("a"), opened("b")), release, false},
		"its gate is deleted":                {verdict.Observed{State: target.Held, HeldBy: a}, governing(closed("a", deleted)), release, false},
		"its gate is gone":                   {verdict.Observed{State: target.Held, HeldBy: a}, nil, release, false},
		"its gate is about to decide":        {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a", edited)), stays("shop/a"), false},
		"a new gate is about to decide":      {verdict.Observed{}, governing(closed("a", untold)), verdict.Step{}, false},
		"one opens as another decides":       {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a"), opened("b", askedToClose)), waits("shop/a"), false},
		"one opens as another is due":        {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a"), opened("b", next(0, v1alpha1.StateClosed))), hold("shop/b"), false},
		"its gate is suspended":              {verdict.Observed{State: target.Held, HeldBy: a}, governing(closed("a", suspended)), stays("shop/a"), false},
		"a suspended gate holds nothing new": {verdict.Observed{}, governing(closed("a", suspended)), verdict.Step{}, false},
		"resumed under a suspended gate":     {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(closed("a", suspended)), verdict.Step{Names: a}, false},
		"the other gate is suspended":        {verdict.Observed{State: target.Held, HeldBy: both}, governing(closed("a", suspended), opened("b")), hold("shop/a"), false},

		"it opens, and a suspended gate has no name on it":       {verdict.Observed{State: target.Held, HeldBy: a}, governing(opened("a"), closed("b", suspended)), release, false},
		"held, and no gate says so, suspended while it was open": {verdict.Observed{State: target.Held}, governing(opened("a", suspended)), release, false},
		"its gate is missing, and it has no condition":           {verdict.Observed{HeldBy: []string{"shop/m"}}, []verdict.Gate{missing}, hold("shop/m"), false},

		"it names a gate that does not exist":              {verdict.Observed{}, []verdict.Gate{missing}, hold("shop/m"), false},
		"it names a gate that it must not refer to":        {verdict.Observed{}, []verdict.Gate{denied}, hold("infra/d"), false},
		"a gate of another shard has its name on it":       {verdict.Observed{State: target.Held, HeldBy: []string{"shop/a", "shop/s"}}, append(governing(opened("a")), elsewhere), hold("shop/s"), false},
		"a gate of another shard is its own business":      {verdict.Observed{}, []verdict.Gate{elsewhere}, verdict.Step{}, false},
		"resumed under a gate of another shard":            {verdict.Observed{HeldBy: []string{"shop/s"}, ReportedAt: toldSince}, []verdict.Gate{elsewhere}, verdict.Step{Names: []string{"shop/s"}}, false},
		"one of ours opens, resumed under another's":       {verdict.Observed{HeldBy: []string{"shop/a", "shop/s"}, ReportedAt: toldSince}, append(governing(opened("a")), elsewhere), verdict.Step{Write: true, Names: []string{"shop/s"}}, false},
		"somebody resumes it":                              {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(closed("a")), hold("shop/a"), true},
		"somebody resumes it, and the gate respects":       {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(closed("a", respecting)), verdict.Step{Outcome: verdict.Resumed, Names: a}, false},
		"it was resumed before the gate closed again":      {verdict.Observed{HeldBy: a, ReportedAt: toldBefore}, governing(closed("a", respecting)), hold("shop/a"), false},
		"nobody knows whether it was resumed":              {verdict.Observed{HeldBy: a}, governing(closed("a", respecting)), hold("shop/a"), false},
		"resumed, and a second gate closes":                {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(closed("a", respecting), closed("b", respecting)), hold("shop/a", "shop/b"), false},
		"resumed under two, and one does not respect":      {verdict.Observed{HeldBy: both, ReportedAt: toldSince}, governing(closed("a", respecting), closed("b")), hold("shop/a", "shop/b"), true},
		"resumed under two, and one opens":                 {verdict.Observed{HeldBy: both, ReportedAt: toldSince}, governing(closed("a", respecting), opened("b")), verdict.Step{Outcome: verdict.Resumed, Write: true, Names: a}, false},
		"resumed, and the gate opens":                      {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(opened("a")), release, false},
		"exempt so far is not resumed":                     {verdict.Observed{HeldBy: a, ReportedAt: toldSince, Exempted: true}, governing(closed("a", respecting)), hold("shop/a"), false},
		"the gate is due to close, resumed before":         {verdict.Observed{HeldBy: a, ReportedAt: toldSince}, governing(opened("a", respecting, next(0, v1alpha1.StateClosed))), hold("shop/a"), false},
		"a user has suspended it":                          {verdict.Observed{State: target.SuspendedByOthers}, governing(closed("a")), verdict.Step{Outcome: verdict.SuspendedByOthers}, false},
		"somebody has taken it over":                       {verdict.Observed{State: target.SuspendedByOthers, HeldBy: a}, governing(closed("a")), verdict.Step{Outcome: verdict.SuspendedByOthers, Write: true}, false},
		"held, and no gate says so, a gate is closed":      {verdict.Observed{State: target.Held}, governing(closed("a")), hold("shop/a"), false},
		"held, and no gate says so, all gates are open":    {verdict.Observed{State: target.Held}, governing(opened("a"), opened("b")), release, false},
		"held, and no gate says so, the gate is suspended": {verdict.Observed{State: target.Held}, governing(closed("a", suspended)), waits(), false},
		"held, and no gate says so, nothing governs it":    {verdict.Observed{State: target.Held}, nil, release, false},
		"the lock holds it as it is born":                  {verdict.Observed{State: target.Locked, HeldBy: a}, governing(closed("a")), hold("shop/a"), false},
		"the lock holds it, and the gate opens":            {verdict.Observed{State: target.Locked, HeldBy: a}, governing(opened("a")), verdict.Step{Write: true, Claim: true}, false},
		"the lock holds it for another gate":               {verdict.Observed{State: target.Locked, HeldBy: b}, governing(closed("a"), closed("b")), hold("shop/a", "shop/b"), false},
		"the lock puts back what somebody resumed":         {verdict.Observed{State: target.Overridden, HeldBy: a}, governing(closed("a")), hold("shop/a"), true},
		"the lock puts it back as the gate opens":          {verdict.Observed{State: target.Overridden, HeldBy: a}, governing(opened("a")), verdict.Step{Write: true, Claim: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict.Judge(test.observed, test.gates)
			if got := verdict.Next(test.observed, v, target.Plan{}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if v.Again != test.again {
				t.Errorf("again is %t, want %t", v.Again, test.again)
			}
		})
	}
}

func TestStepsOfExemptTargets(t *testing.T) {
	a := []string{"shop/a"}
	gates := governing(closed("a"))
	for name, test := range map[string]struct {
		observed verdict.Observed
		exempt   target.Exemption
		want     verdict.Step
	}{
		"not issued yet":                      {verdict.Observed{}, target.NotReady, verdict.Step{Outcome: verdict.Exempt}},
		"being issued while it is held":       {verdict.Observed{State: target.Held, HeldBy: a}, target.NotReady, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a}},
		"about to expire":                     {verdict.Observed{}, target.Imminent, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a}},
		"about to expire while it is held":    {verdict.Observed{State: target.Held, HeldBy: a}, target.Imminent, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a}},
		"about to expire, and told":           {verdict.Observed{HeldBy: a, Exempted: true}, target.Imminent, verdict.Step{Outcome: verdict.Exempt, Names: a}},
		"about to expire, held by the lock":   {verdict.Observed{State: target.Locked, HeldBy: a}, target.Imminent, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a, Claim: true}},
		"activated instead":                   {verdict.Observed{}, target.Activates, verdict.Step{Outcome: verdict.Exempt}},
		"activated instead of held":           {verdict.Observed{State: target.Held, HeldBy: a}, target.Activates, verdict.Step{Outcome: verdict.Exempt, Write: true}},
		"somebody else has a renewal policy":  {verdict.Observed{State: target.SuspendedByOthers}, target.Imminent, verdict.Step{Outcome: verdict.SuspendedByOthers}},
		"it cannot be held in this version":   {verdict.Observed{}, target.Unsupported, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a}},
		"the renewal is within the margin":    {verdict.Observed{HeldBy: a}, target.Needless, verdict.Step{Outcome: verdict.Exempt, Names: a}},
		"a gate that has opened is forgotten": {verdict.Observed{HeldBy: []string{"shop/a", "shop/b"}}, target.NotReady, verdict.Step{Outcome: verdict.Exempt, Write: true, Names: a}},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict.Next(test.observed, verdict.Judge(test.observed, gates), target.Plan{Exempt: test.exempt})
			if len(got.Names) == 0 {
				got.Names = nil
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestChangedHoldIsWritten(t *testing.T) {
	observed := verdict.Observed{State: target.Held, HeldBy: []string{"shop/a"}}
	got := verdict.Next(observed, verdict.Judge(observed, governing(closed("a"))), target.Plan{Stale: true})
	if !got.Write || !got.Hold {
		t.Errorf("got %+v", got)
	}
}
