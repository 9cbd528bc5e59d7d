package verdict_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func askedToClose(g *v1alpha1.Gate) {
	g.Annotations = map[string]string{v1alpha1.CloseRequestedAtAnnotation: noon.Format(time.RFC3339)}
}

func TestEffectOnGovernedTarget(t *testing.T) {
	for name, test := range map[string]struct {
		gate *v1alpha1.Gate
		want verdict.Effect
	}{
		"open":                                  {opened("a"), verdict.Open},
		"closed":                                {closed("a"), verdict.Closed},
		"nobody has looked at it":               {closed("a", untold), verdict.Undecided},
		"its spec has changed while it is open": {opened("a", edited), verdict.Undecided},
		"its spec has changed while it is closed":      {closed("a", edited), verdict.Undecided},
		"somebody asks it to close":                    {opened("a", askedToClose), verdict.Undecided},
		"it closes in a moment":                        {opened("a", next(time.Second, v1alpha1.StateClosed)), verdict.Open},
		"it is due to close":                           {opened("a", next(0, v1alpha1.StateClosed)), verdict.Closed},
		"it is due to close and somebody edits it":     {opened("a", next(0, v1alpha1.StateClosed), edited), verdict.Undecided},
		"it opens in a moment":                         {closed("a", next(time.Second, v1alpha1.StateOpened)), verdict.Closed},
		"it is due to open":                            {closed("a", next(0, v1alpha1.StateOpened)), verdict.Closed},
		"it is open and its status is out of date":     {opened("a", next(0, v1alpha1.StateOpened)), verdict.Undecided},
		"somebody asks it to close while it is closed": {closed("a", askedToClose), verdict.Closed},
		"it is suspended while it is closed":           {closed("a", suspended), verdict.Suspended},
		"it is suspended while it is open":             {opened("a", suspended), verdict.Suspended},
		"it is deleted while it is closed":             {closed("a", deleted), verdict.Open},
		"it is deleted while it is suspended, closed":  {closed("a", suspended, deleted), verdict.Open},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Governing("shop/a", test.gate, noon); got.Effect != test.want {
				t.Errorf("got %d, want %d", got.Effect, test.want)
			}
		})
	}
}

func TestTargetOutOfReachStaysUntilGateOpens(t *testing.T) {
	for name, test := range map[string]struct {
		gate *v1alpha1.Gate
		want verdict.Effect
	}{
		"open":    {opened("a"), verdict.Open},
		"closed":  {closed("a"), verdict.Suspended},
		"deleted": {closed("a", deleted), verdict.Open},
		"edited":  {closed("a", edited), verdict.Undecided},
	} {
		if got := verdict.OutOfReach("shop/a", test.gate, noon); got.Effect != test.want || got.Governs {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestGateReleasesUngovernedTargetOnceItHasDecided(t *testing.T) {
	for name, test := range map[string]struct {
		gate *v1alpha1.Gate
		want verdict.Effect
	}{
		"open":                   {opened("a"), verdict.Open},
		"closed":                 {closed("a"), verdict.Open},
		"deleted":                {closed("a", deleted), verdict.Open},
		"its spec has changed":   {closed("a", edited), verdict.Undecided},
		"it is suspended":        {closed("a", suspended), verdict.Suspended},
		"its spec is invalid":    {closed("a", because(v1alpha1.InvalidSpecReason, "")), verdict.Closed},
		"it is open and invalid": {opened("a", because(v1alpha1.InvalidSpecReason, "")), verdict.Open},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Leaving("shop/a", test.gate, noon); got.Effect != test.want {
				t.Errorf("got %d, want %d", got.Effect, test.want)
			}
		})
	}
}

// Before a certificate is activated, all Gates that cover the Certificate must permit that.
func TestGatesPermittingActivation(t *testing.T) {
	for name, test := range map[string]struct {
		gate            verdict.Gate
		covers, permits bool
	}{
		"open":                      {verdict.Governing("shop/a", opened("a"), noon), true, true},
		"closed":                    {verdict.Governing("shop/a", closed("a"), noon), true, false},
		"due to close":              {verdict.Governing("shop/a", opened("a", next(0, v1alpha1.StateClosed)), noon), true, false},
		"undecided":                 {verdict.Governing("shop/a", closed("a", untold), noon), true, false},
		"suspended while open":      {verdict.Governing("shop/a", opened("a", suspended), noon), true, true},
		"suspended while closed":    {verdict.Governing("shop/a", closed("a", suspended), noon), true, false},
		"closed, with mode Audit":   {verdict.Governing("shop/a", closed("a", audits), noon), true, true},
		"edited, with mode Audit":   {verdict.Governing("shop/a", closed("a", audits, edited), noon), true, false},
		"deleted":                   {verdict.Governing("shop/a", closed("a", deleted), noon), false, true},
		"governs it no more":        {verdict.Leaving("shop/a", closed("a"), noon), false, true},
		"missing":                   {verdict.Gate{Name: "shop/a", Effect: verdict.Missing}, true, false},
		"denied":                    {verdict.Gate{Name: "shop/a", Effect: verdict.Denied}, true, false},
		"a gate of another shard":   {verdict.Gate{Name: "shop/a", Effect: verdict.OtherShard}, false, false},
		"deleted, with mode Audit":  {verdict.Governing("shop/a", closed("a", audits, deleted), noon), false, true},
		"invalid while it was open": {verdict.Governing("shop/a", opened("a", because(v1alpha1.InvalidSpecReason, "")), noon), true, true},
	} {
		if covers, permits := test.gate.Covers(), test.gate.LetsActivate(); covers != test.covers || permits != test.permits {
			t.Errorf("%s: covers %t, permits %t", name, covers, permits)
		}
	}
}
