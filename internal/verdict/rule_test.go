package verdict_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// row is a situation at noon and the ruling on it, as ruled describes it.
type row struct {
	obj     *target.Object
	gates   []verdict.Gate
	want    string
	changes []func(*verdict.Situation)
}

const allFacts = verdict.Lockers | verdict.Live | verdict.Slots

func (r row) situation() verdict.Situation {
	s := verdict.Situation{Object: r.obj, Gates: r.gates, Definition: modern, Now: noon}
	s.Definition.Handles = true
	for _, change := range r.changes {
		change(&s)
	}
	return s
}

func lockers(names ...string) func(*verdict.Situation) {
	return func(s *verdict.Situation) { s.Lockers = names }
}

func noSlot(names ...string) func(*verdict.Situation) {
	return func(s *verdict.Situation) { s.NoSlot = names }
}

func live(gates ...verdict.Gate) func(*verdict.Situation) {
	return func(s *verdict.Situation) { s.Live = gates }
}

func sharded(isReporter bool) func(*verdict.Situation) {
	return func(s *verdict.Situation) { s.Sharded, s.Reporter = true, isReporter }
}

// ruled describes a ruling.
func ruled(r verdict.Ruling) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	short := func(names ...string) string { return strings.ReplaceAll(strings.Join(names, "+"), "shop/", "") }
	action := map[bool]string{true: "write", false: "keep"}[r.Step.Write]
	outcome := []string{"free", "held", "suspended by others", "resumed", "exempt", "passing"}[r.Step.Outcome]
	if len(r.Step.Names) > 0 {
		outcome += " " + short(r.Step.Names...)
	}
	add("%s %s", action, outcome)
	if r.Step.Ends.IsNew(r.Observed.Pass) && r.Step.Ends.State != verdict.PassInProgress {
		add("pass %s %s", r.Step.Ends.State, r.Step.Ends.Outcome)
	}
	if r.Needs != 0 {
		add("needs %s", map[verdict.Facts]string{verdict.Lockers: "lockers", verdict.Live: "live gates", verdict.Slots: "slots"}[r.Needs])
	}
	if r.Wait != verdict.NoWait {
		add("waits for %s", []string{"", "facts", "lock", "shard", "slot"}[r.Wait])
	}
	for _, g := range r.Queues {
		add("enqueued by %s", short(g.Name))
	}
	for _, g := range r.Slots {
		add("slot of %s", short(g.Name))
	}
	if r.Report {
		add("conditions")
	}
	if r.Step.Refused != "" {
		add("refuses: %s", r.Step.Refused)
	}
	if !r.Recheck.IsZero() {
		add("again in %s", r.Recheck.Sub(r.Now))
	}
	return strings.Join(parts, ", ")
}

// inWaves has a Gate release its targets in waves.
func inWaves(g *v1alpha1.Gate) {
	g.Spec.Release = &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "one"}}}
}

// suspendedBy has another manager own the suspension of an object, and leaves us the names on it.
func suspendedBy(manager string) edit {
	return func(obj *target.Object) {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{
			{
				Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{}}}}`),
			},
			{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)},
		})
	}
}

// decisions is the decision table of targets: all combinations that Rule distinguishes.
func decisions() map[string]row {
	const now = "2026-11-24T12:00:00Z"
	app := func(edits ...edit) *target.Object { return kustomization("apps", edits...) }
	heldByA, heldByBoth, nameless := heldBy("shop/a", suspension), heldBy("shop/a,shop/b", suspension), heldBy("", suspension)
	isFree := map[string]any{"suspend": false}
	suspendedByOthers := func(obj *target.Object) { obj.Object["spec"].(map[string]any)["suspend"] = true } //nolint:forcetypeassert // see newObject
	releasedNow := annotated(v1alpha1.HeldByAnnotation, "shop/a")
	since := func(ago time.Duration) edit {
		return told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon.Add(-ago))
	}
	requests := requesting(now, "shop/a")
	inProgress := func(edits ...edit) *target.Object {
		pass := before
		pass.Gates, pass.Was, pass.Is = "shop/a", target.Progress{"old", "v1", "7"}, target.Progress{"old", "v1", "7"}
		token := annotated(fluxmeta.ReconcileRequestAnnotation, pass.Since.Format(time.RFC3339Nano))
		return app(append([]edit{reports("old", "v1", "Unknown", 7), passing(pass), requesting(pass.Value, "shop/a"), token, heldBy("shop/a", isFree)}, edits...)...)
	}
	ended := verdict.Pass{State: verdict.PassEnded, Value: now, Since: noon.Add(-time.Second), Ended: noon, Outcome: verdict.PassSucceeded}
	isOver := reports(before.Since.Format(time.RFC3339Nano), "v2", "True", 8)
	missing, elsewhere := verdict.Gate{Name: "shop/a", Effect: verdict.Missing}, verdict.Gate{Name: "shop/a", Effect: verdict.OtherShard}
	expiring := func(obj *target.Object) { _ = setStatus(obj, "notAfter", noon.Add(time.Hour).Format(time.RFC3339)) }
	never := map[string]any{"renewal": map[string]any{"policy": "Disabled"}}
	disabled := heldBy("shop/a", never)
	ignoresWindow := func(obj *target.Object) {
		heldBy("shop/a", rule(certificate(), governing(closed("a")), modern, noon).Plan.Lever)(obj)
		_ = setStatus(obj, "renewalTime", noon.Add(time.Hour).Format(time.RFC3339))
	}
	isReported := func(obj *target.Object) {
		obj.SetConditions(append(obj.GetConditions(), metav1.Condition{Type: v1alpha1.RenewalConfigInvalidCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.WindowIgnoredReason}))
	}
	type rows = []func(*verdict.Situation)
	return map[string]row{
		// Holds.
		"no gate":                   {app(), nil, "keep free, conditions", nil},
		"open":                      {app(), governing(opened("a")), "keep free, conditions", nil},
		"closed":                    {app(), governing(closed("a")), "write held a", nil},
		"closed, held":              {app(heldByA), governing(closed("a")), "keep held a, conditions", nil},
		"two are closed, one holds": {app(heldByA), governing(closed("a"), closed("b")), "write held a+b", nil},
		"one of two opens":          {app(heldByBoth), governing(opened("a", paced), closed("b")), "write held b", rows{lockers("shop/a"), noSlot("shop/a")}},
		"undecided":                 {app(), governing(opened("a", edited)), "keep free, conditions", nil},
		"undecided, held":           {app(heldByA), governing(opened("a", edited)), "keep held a, conditions", nil},
		"open, held by another that is undecided": {app(heldByA), governing(opened("a"), opened("b", edited)), "keep held a, conditions", nil},
		"suspended gate":                 {app(), governing(closed("a", suspended)), "keep free, conditions", nil},
		"suspended gate, held":           {app(heldByA), governing(closed("a", suspended)), "keep held a, conditions", nil},
		"missing gate":                   {app(), []verdict.Gate{missing}, "write held a, again in 10m0s", nil},
		"missing gate, held":             {app(heldByA), []verdict.Gate{missing}, "keep held a, conditions, again in 10m0s", nil},
		"held without a name, undecided": {app(nameless), governing(opened("a", edited)), "keep held, conditions, again in 10m0s", nil},

		// Releases.
		"opened":                                 {app(heldByA), governing(opened("a")), "write free", nil},
		"governed no more":                       {app(heldByA), []verdict.Gate{verdict.Leaving("shop/a", closed("a"), noon)}, "write free", nil},
		"opened, locked":                         {app(heldByA), governing(opened("a")), "keep held a, waits for lock, again in 5s", rows{lockers("shop/a")}},
		"opened, locked by another gate":         {app(heldByA), governing(opened("a")), "write free", rows{lockers("shop/b")}},
		"opened, locked by an open one":          {app(heldByA), governing(opened("a"), opened("b")), "keep held a, waits for lock, again in 5s", rows{lockers("shop/b")}},
		"opened, with a slot":                    {app(heldByA), governing(opened("a", paced)), "write free, slot of a", nil},
		"opened, without a slot":                 {app(heldByA), governing(opened("a", paced)), "keep held a, waits for slot, enqueued by a", rows{noSlot("shop/a")}},
		"opened, locked and without a slot":      {app(heldByA), governing(opened("a", paced)), "keep held a, waits for lock, again in 5s", rows{lockers("shop/a"), noSlot("shop/a")}},
		"two opened, with one slot":              {app(heldByBoth), governing(opened("a", paced), opened("b", paced)), "keep held a+b, waits for slot, enqueued by b", rows{noSlot("shop/b")}},
		"two opened, with both slots":            {app(heldByBoth), governing(opened("a", paced), opened("b", paced)), "write free, slot of a, slot of b", nil},
		"opened, another has a pace":             {app(heldByA), governing(opened("a"), opened("b", paced)), "write free", rows{noSlot("shop/b")}},
		"opened, another has waves":              {app(heldByA), governing(opened("a"), opened("b", inWaves)), "keep held a, waits for slot, enqueued by b", rows{noSlot("shop/b")}},
		"held without a name":                    {app(nameless), nil, "write free", nil},
		"held without a name, closed elsewhere":  {app(nameless), nil, "keep held, waits for shard", rows{live(governing(closed("b"))...)}},
		"held without a name, undecided there":   {app(nameless), nil, "keep held, waits for shard", rows{live(governing(opened("b", edited))...)}},
		"held without a name, open elsewhere":    {app(nameless), nil, "write free", rows{live(governing(opened("b"), opened("c", suspended))...)}},
		"held without a name, a waits for waves": {app(nameless), governing(opened("a", inWaves)), "keep held, waits for slot, enqueued by a", rows{live(governing(opened("a"))...), noSlot("shop/a")}},

		// Passes.
		"requested":                            {app(heldByA, requests), governing(closed("a")), "write passing a, again in 10m0s", nil},
		"requested, closed live":               {app(heldByA, requests), governing(closed("a")), "write passing a, again in 10m0s", rows{live(governing(closed("a"))...)}},
		"requested, another is closed live":    {app(heldByA, requests), governing(closed("a")), "write held a+b", rows{live(governing(closed("a"), closed("b"))...)}},
		"requested, undecided live":            {app(heldByA, requests), governing(closed("a")), "keep held a, conditions, again in 1s", rows{live(governing(opened("a", edited))...)}},
		"requested, open live":                 {app(heldByA, requests), governing(closed("a")), "write free", rows{live(governing(opened("a"))...)}},
		"requested, open live, locked":         {app(heldByA, requests), governing(closed("a")), "keep held a, waits for lock, again in 5s", rows{live(governing(opened("a"))...), lockers("shop/a")}},
		"requested, hard freeze":               {app(heldByA, requests), governing(closed("a", hardly, because(v1alpha1.ClosePeriodReason, "freeze"))), "write held a, pass Refused ", nil},
		"requested, opened":                    {app(heldByA, requests), governing(opened("a")), "write free", nil},
		"requested, opened, without a slot":    {app(heldByA, requests), governing(opened("a", paced)), "keep held a, waits for slot, enqueued by a, refuses: its gates are open, and it waits for a release slot", rows{noSlot("shop/a")}},
		"requested, opened, locked":            {app(heldByA, requests), governing(opened("a", paced)), "keep held a, waits for lock, again in 5s", rows{lockers("shop/a")}},
		"requested, free":                      {app(requests), governing(opened("a")), "keep free, conditions, refuses: no gate holds it, so a pass would have no effect", nil},
		"requested, free, another one reports": {app(requests), []verdict.Gate{elsewhere}, "keep free", rows{sharded(false)}},
		"ignored, long before the close":       {app(heldByA, requesting("2026-11-24T11:45:00Z", "shop/a")), governing(closed("a", func(g *v1alpha1.Gate) { g.Status.LastTransition.At = metav1.NewTime(noon.Add(-time.Minute)) })), "keep held a, conditions", nil},
		"ignored, requested a day ago":         {app(heldByA, requesting("2026-11-23T12:00:00Z", "shop/a")), governing(closed("a")), "keep held a, conditions", nil},
		"refused, older than the last":         {app(passing(ended), heldByA, requesting("2026-11-24T11:59:00Z", "shop/a")), governing(closed("a")), "keep held a, conditions, refuses: a later request was handled before, request it again", nil},
		"handled before":                       {app(passing(ended), heldByA, requests), governing(closed("a")), "keep held a, conditions", nil},
		"in progress":                          {inProgress(), governing(closed("a")), "keep passing a, conditions, again in 20m0s", nil},
		"in progress, another closes":          {inProgress(), governing(closed("a"), closed("b")), "write held a+b, pass Ended Closed", nil},
		"in progress, its time is over":        {inProgress(), governing(closed("a")), "write held a, pass Ended TimedOut", rows{func(s *verdict.Situation) { s.Now = before.Until }}},
		"in progress, a hard freeze begins":    {inProgress(), governing(closed("a", hardly, because(v1alpha1.ClosePeriodReason, "freeze"))), "write held a, pass Ended Closed", nil},
		"in progress, suspended by others":     {inProgress(suspendedByOthers, suspendedBy("flux")), governing(closed("a")), "write suspended by others, pass Ended Suspended", nil},
		"in progress, its record is removed":   {inProgress(without(v1alpha1.PassAnnotation, v1alpha1.PassRequestedAtAnnotation)), governing(closed("a")), "write held a", nil},
		"in progress, its names are removed":   {inProgress(without(v1alpha1.HeldByAnnotation, v1alpha1.PassRequestedAtAnnotation)), governing(closed("a")), "write held a, pass Ended Interrupted", nil},
		"in progress, opened":                  {inProgress(), governing(opened("a")), "write free, pass Ended Opened, again in 20m0s", nil},
		"in progress, opened, locked":          {inProgress(), governing(opened("a")), "keep passing a, waits for lock, again in 5s", rows{lockers("shop/a")}},
		"in progress, opened, without a slot":  {inProgress(), governing(opened("a", paced)), "keep passing a, waits for slot, enqueued by a, again in 20m0s", rows{noSlot("shop/a")}},
		"over":                                 {inProgress(isOver), governing(closed("a")), "write held a, pass Ended Succeeded", nil},
		"over, opened":                         {inProgress(isOver), governing(opened("a")), "write free, pass Ended Succeeded, again in 20m0s", nil},
		"over, opened, locked":                 {inProgress(isOver), governing(opened("a")), "write held a, pass Ended Succeeded, waits for lock, again in 5s", rows{lockers("shop/a")}},
		"over, opened, without a slot":         {inProgress(isOver), governing(opened("a", paced), opened("b", inWaves)), "write held a, pass Ended Succeeded, waits for slot, enqueued by b", rows{noSlot("shop/b")}},

		// Resumed, suspended by others, audit.
		"resumed":                               {app(releasedNow, since(time.Minute)), governing(closed("a")), "write held a", nil},
		"resumed, the gate is lenient":          {app(releasedNow, since(time.Minute)), governing(closed("a", respecting)), "keep resumed a, conditions", nil},
		"resumed before the gate closed":        {app(releasedNow, since(2*time.Hour)), governing(closed("a", respecting)), "write held a", nil},
		"resumed, opened":                       {app(releasedNow, since(time.Minute)), governing(opened("a", paced)), "write free", rows{lockers("shop/a"), noSlot("shop/a")}},
		"suspended by others":                   {app(suspendedByOthers), governing(closed("a")), "keep suspended by others, conditions", nil},
		"suspended by others, with a name":      {app(heldByA, suspendedBy("flux")), governing(closed("a")), "write suspended by others", nil},
		"audit":                                 {app(), governing(closed("a", audits)), "keep free, conditions", nil},
		"audit, held":                           {app(heldByA), governing(closed("a", audits)), "write free", nil},
		"audit, held, locked":                   {app(heldByA), governing(closed("a", audits)), "keep held a, waits for lock, again in 5s", rows{lockers("shop/a")}},
		"audit, held, without a slot":           {app(heldByA), governing(closed("a", audits, paced)), "write free", rows{noSlot("shop/a")}},
		"audit, undecided, held":                {app(heldByA), governing(closed("a", audits, edited)), "keep held a, conditions", nil},
		"audit, another is closed":              {app(heldByBoth), governing(closed("a", audits), closed("b")), "write held b", nil},
		"certificate":                           {certificate(), governing(closed("a")), "write held a, again in 1872h0m0s", nil},
		"certificate, locks are for suspension": {certificate(disabled), governing(opened("a")), "write free, again in 1872h0m0s", rows{lockers("shop/a")}},
		"certificate, without a slot":           {certificate(disabled), governing(opened("a", paced)), "keep held a, waits for slot, enqueued by a, again in 1872h0m0s", rows{noSlot("shop/a")}},
		"certificate, a forged pass":            {certificate(passing(before), heldByA), governing(closed("a")), "write held a, again in 1872h0m0s", nil},
		"exempt":                                {certificate(disabled, expiring), governing(closed("a")), "write exempt a", nil},
		"exempt, the gate is suspended":         {certificate(disabled, expiring), governing(closed("a", suspended)), "write exempt a", nil},
		"exempt, the gate is undecided":         {certificate(disabled, expiring), governing(opened("a", edited)), "keep held a, conditions", nil},
		"stale, the gate is suspended":          {certificate(disabled), governing(closed("a", suspended)), "write held a, again in 1872h0m0s", nil},
		"stale, the gate is undecided":          {certificate(disabled), governing(opened("a", edited)), "keep held a, conditions, again in 1872h0m0s", nil},
		"stale, another shard decides":          {certificate(heldBy("shop/a,shop/b", never)), append(governing(closed("b", suspended)), elsewhere), "keep held a+b, conditions, again in 1872h0m0s", nil},
		"exempt, late":                          {certificate(disabled, expiring), governing(closed("a"), opened("b", paced)), "write exempt a", rows{noSlot("shop/b")}},
		"exempt, released":                      {certificate(releasedNow, expiring), governing(closed("a")), "keep exempt a, conditions", nil},
		"exempt, released, now suspended":       {certificate(releasedNow, expiring), governing(closed("a", suspended)), "keep exempt a, conditions", nil},

		"ignored window":                      {certificate(ignoresWindow), governing(closed("a")), "keep held a, conditions, again in 0s", nil},
		"ignored window, another one reports": {certificate(ignoresWindow), append(governing(closed("b")), elsewhere), "keep held a+b, again in 1872h0m0s", rows{sharded(false)}},
		"ignored window, reported":            {certificate(ignoresWindow, isReported), governing(closed("a")), "write held a, again in 1872h0m0s", nil},

		// Shards.
		"shards, held by one of ours":          {app(heldByA), governing(closed("a")), "keep held a, conditions", rows{sharded(false)}},
		"shards, held by another":              {app(heldByBoth), append(governing(closed("b")), elsewhere), "keep held a+b", rows{sharded(true)}},
		"shards, one of ours is open":          {app(), governing(opened("a")), "keep free, conditions", rows{sharded(false)}},
		"shards, none of ours":                 {app(), nil, "keep free", rows{sharded(false)}},
		"shards, none of ours, released by us": {app(), nil, "keep free, conditions", rows{sharded(true)}},
		"shards, released without a report":    {app(heldByA), []verdict.Gate{{Name: "shop/a", Effect: verdict.Open}}, "write free", rows{sharded(false)}},
	}
}

func TestDecisions(t *testing.T) {
	for name, row := range decisions() {
		t.Run(name, func(t *testing.T) {
			want := verdict.Rule(row.situation())
			if got := ruled(want); got != row.want {
				t.Errorf("\ngot  %s\nwant %s", got, row.want)
			}
			known := row.situation()
			s := known
			s.Unknown, s.Lockers, s.Live, s.NoSlot = allFacts, nil, nil, nil
			for fetched := range 4 {
				got := verdict.Rule(s)
				if got.Step.Write && got.Needs != 0 || got.Report && got.Needs != 0 || s.Unknown&got.Needs != got.Needs {
					t.Errorf("acts on unknown facts: %s", ruled(got))
				}
				switch got.Needs {
				case verdict.Lockers:
					s.Lockers = known.Lockers
				case verdict.Live:
					s.Live = known.Live
				case verdict.Slots:
					s.NoSlot = known.NoSlot
				default:
					if !reflect.DeepEqual(got, want) {
						t.Errorf("after %d facts\ngot  %s\nwant %s", fetched, ruled(got), ruled(want))
					}
					return
				}
				s.Unknown &^= got.Needs
			}
			t.Error("needs more than there is")
		})
	}
}

// A target that nothing changes costs no lookups.
func TestSettledTargetNeedsNoFacts(t *testing.T) {
	for name, row := range decisions() {
		s := row.situation()
		s.Unknown = allFacts
		if want := verdict.Rule(row.situation()); want.Wait == verdict.NoWait && !want.Step.Write && want.Recheck.Sub(noon) != time.Second {
			if r := verdict.Rule(s); r.Needs != 0 {
				t.Errorf("%s: %s", name, ruled(r))
			}
		}
	}
}
