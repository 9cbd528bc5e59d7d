package summary_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestTargetOutcomesForGate(t *testing.T) {
	object := &v1alpha1.Gate{}
	object.Namespace, object.Name, object.UID = "shop", "a", "1"
	gate := func(stand verdict.Effect) verdict.Gate {
		return verdict.Gate{Name: "shop/a", Effect: stand, Governs: true, Object: object}
	}
	open, closed, undecided := gate(verdict.Open), gate(verdict.Closed), gate(verdict.Undecided)
	leaving, audits, unknown, overlaid := open, open, closed, open
	overlaid.Overlaid = true
	leaving.Governs = false
	audits.Governs, audits.Audits = false, true
	unknown.Object = nil
	named := []string{"shop/a"}
	free, held := verdict.Step{}, verdict.Step{Outcome: verdict.Held, Hold: true, Names: named}
	others := verdict.Step{Outcome: verdict.Held, Hold: true, Names: []string{"shop/b"}}
	passing := verdict.Step{Outcome: verdict.Passing, Names: named}
	exempt, foreign := verdict.Step{Outcome: verdict.Exempt}, verdict.Step{Outcome: verdict.SuspendedByOthers}
	read, write := v1alpha1.ReadFailedReason, v1alpha1.WriteFailedReason
	for name, tc := range map[string]struct {
		gate   verdict.Gate
		state  target.State
		heldBy []string
		step   verdict.Step
		wait   verdict.Wait
		plan   target.Plan
		wrote  bool
		failed string
		want   string
	}{
		"open, free":                       {open, target.Free, nil, free, 0, target.Plan{}, false, "", "Other"},
		"open, released":                   {open, target.Held, named, free, 0, target.Plan{}, true, "", "Other, pending"},
		"open, held by another":            {open, target.Held, []string{"shop/b"}, others, 0, target.Plan{}, false, "", "Other"},
		"closed, held":                     {closed, target.Held, named, held, 0, target.Plan{}, false, "", "Held"},
		"closed, held now":                 {closed, target.Free, nil, held, 0, target.Plan{}, true, "", "Held, pending"},
		"closed, held without its name":    {closed, target.Held, nil, others, 0, target.Plan{}, false, "", "Held"},
		"closed, not written":              {closed, target.Free, nil, held, 0, target.Plan{}, false, write, "Other, WriteFailed"},
		"closed, resumed and not written":  {closed, target.Free, named, held, 0, target.Plan{}, false, write, "Other, WriteFailed"},
		"open, not released":               {open, target.Held, named, free, 0, target.Plan{}, false, write, "Held, WriteFailed"},
		"open, conditions not written":     {closed, target.Held, named, held, 0, target.Plan{}, false, v1alpha1.StatusWriteFailedReason, "Held, StatusWriteFailed"},
		"waits for a lock":                 {open, target.Held, named, held, verdict.ForLock, target.Plan{}, false, "", "Held, pending"},
		"waits for a slot":                 {open, target.Held, named, held, verdict.ForSlot, target.Plan{}, false, "", "Held"},
		"waits for another shard":          {open, target.Held, nil, verdict.Step{Outcome: verdict.Held, Hold: true}, verdict.ForShard, target.Plan{}, false, "", "Other"},
		"waits for facts that are unread":  {open, target.Held, named, held, verdict.ForFacts, target.Plan{}, false, read, "Held, pending, ReadFailed"},
		"exempt, another waits for a slot": {closed, target.Held, []string{"shop/b"}, others, verdict.ForSlot, target.Plan{Exempt: target.Imminent}, false, "", "Exempt"},
		"open, exempt, another waits":      {open, target.Held, []string{"shop/b"}, others, verdict.ForSlot, target.Plan{Exempt: target.Imminent}, false, "", "Other"},
		"open, exempt":                     {open, target.Free, nil, exempt, 0, target.Plan{Exempt: target.Imminent}, false, "", "Other"},
		"passing":                          {closed, target.Passing, named, passing, 0, target.Plan{}, false, "", "Held"},
		"passing, live gates are unread":   {closed, target.Held, named, held, 0, target.Plan{}, false, read, "Held, ReadFailed"},
		"passed, waits for a slot":         {open, target.Passing, named, held, verdict.ForSlot, target.Plan{}, true, "", "Held, pending"},
		"passed, waits and is not written": {open, target.Passing, named, held, verdict.ForSlot, target.Plan{}, false, write, "Held, WriteFailed"},
		"passed, not written":              {closed, target.Passing, named, held, 0, target.Plan{}, false, write, "Other, WriteFailed"},
		"undecided":                        {undecided, target.Held, named, held, 0, target.Plan{}, false, "", "Held, pending"},
		"undecided, free":                  {undecided, target.Free, nil, free, 0, target.Plan{}, false, "", "Other, pending"},
		"suspended by others, open":        {open, target.SuspendedByOthers, nil, foreign, 0, target.Plan{}, false, "", "Other"},
		"suspended by others, closed":      {closed, target.SuspendedByOthers, nil, foreign, 0, target.Plan{}, false, "", "Foreign"},
		"exempt":                           {closed, target.Free, nil, exempt, 0, target.Plan{Exempt: target.Imminent}, false, "", "Exempt"},
		"opened by an overlay":             {overlaid, target.Free, nil, free, 0, target.Plan{}, false, "", "Other, overlaid"},
		"audit":                            {audits, target.Free, nil, free, 0, target.Plan{}, false, "", "Other"},
		"governed no more":                 {leaving, target.Free, nil, free, 0, target.Plan{}, false, "", "none"},
		"governed no more, released":       {leaving, target.Held, named, free, 0, target.Plan{}, true, "", "Other, pending, uncounted"},
		"governed no more, locked":         {leaving, target.Held, named, held, verdict.ForLock, target.Plan{}, false, "", "Other, pending, uncounted"},
		"governed no more, not released":   {leaving, target.Held, named, free, 0, target.Plan{}, false, write, "Other, uncounted, WriteFailed"},
		"a gate that another shard has":    {unknown, target.Held, named, held, 0, target.Plan{}, false, "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			r := summary.Result{Gates: []verdict.Gate{tc.gate}, Wrote: tc.wrote, Ruling: verdict.Ruling{
				Observed: verdict.Observed{State: tc.state, HeldBy: tc.heldBy}, Step: tc.step, Wait: tc.wait, Plan: tc.plan,
			}}
			if tc.failed != "" {
				r.Failure = &summary.Failure{Reason: tc.failed}
			}
			got := "none"
			for _, e := range r.Entries() {
				got = []string{"Other", "Held", "Foreign", "Exempt", "WouldHold"}[e.Outcome]
				if e.Overlaid {
					got += ", overlaid"
				}
				if e.Pending {
					got += ", pending"
				}
				if e.Uncounted {
					got += ", uncounted"
				}
				if e.Failure != nil {
					got += ", " + e.Failure.Reason
				}
				if want := summary.KeyFor(object); e.Gate != want {
					t.Errorf("counted for %+v", e.Gate)
				}
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
