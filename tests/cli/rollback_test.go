package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRollbackDuringFreeze(t *testing.T) {
	t.Parallel()
	p := newPinned(t)
	first := p.readPinned()
	p.expect(p.gate("rollback", "source/app"), exitError, "", "its status lists no revision that was promoted before "+first)
	p.push("two")
	p.Eventually("the second revision is pinned", func() error {
		if now := p.readPinned(); now == first {
			return fmt.Errorf("the status is %+v", p.g.Status)
		}
		return nil
	})
	second := p.readPinned()
	p.waitsFor(p.g, v1alpha1.UpToDateReason)
	nights := p.ClosedGate("nights", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "app"})
	p.Eventually("the gate holds it", func() error {
		if p.Read(p.g); len(p.g.Status.HeldBy) != 1 {
			return fmt.Errorf("the status is %+v", p.g.Status)
		}
		return nil
	})
	for _, tc := range []struct {
		args, want string
		code       int
	}{
		{"source/app --to " + second, second + " is pinned already", exitError},
		{"source/app --to latest@sha256:" + strings.Repeat("0", 64), "is not among its last 20 promotions", exitError},
		{"source/nothing", `there is no gatedsource "nothing"`, exitError},
		{"app", `"app" is not a GatedSource: name it as source/NAME`, exitError},
		{"", "source/NAME", exitError},
	} {
		if got := p.gate(append([]string{"rollback"}, strings.Fields(tc.args)...)...); got.code != tc.code || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	p.Eventually("the revision is completed", func() error { // the cluster may take longer than a completion waits
		if got := p.gate("__complete", "rollback", "source/app", "--to", ""); got.out != first+"\n:4\n" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	name := "gatedsource " + p.Namespace + "/app"
	from := name + ": rolling back from " + second + " to " + first + " through " + p.Namespace + "/nights\n"
	p.expect(p.gate("rollback", "source/app", "--dry-run=server"), 0, from+"the API server would accept this (dry run); to roll back: kubectl gate rollback source/app -n "+p.Namespace+" --to "+first, "")
	if now := p.readPinned(); now != second {
		t.Fatalf("the dry run has moved the pin to %s", now)
	}
	p.expect(p.gate("rollback", "source/app", "--reason", "checkout fails"), 0, from+name+": pinned to "+first+"\n", "")
	p.waitsFor(p.g, v1alpha1.RolledBackReason)
	history := p.gate("history", "source/app")
	if lines := strings.Split(strings.TrimSpace(history.out), "\n"); len(lines) != 4 || !strings.Contains(lines[1], short(first)+"   "+short(second)+"   RolledBack") || !strings.HasSuffix(lines[1], "checkout fails") {
		t.Errorf("%+v", history)
	}
	p.expect(p.gate("why", "gatedsource/app"), 0, "It was rolled back from "+second+" to "+first, "")
	p.Must(p.Merge(nights, `{"spec":{"closePeriods":[{"name":"freeze","from":%q,"until":%q,"override":"Deny"}]}}`,
		time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	p.Decided(nights)
	p.expect(p.gate("rollback", "source/app", "--to", second), exitIncomplete, "",
		"the controller refused this: gate '"+p.Namespace+"/nights' permits no pass: its close period 'freeze' has override: Deny")
	if now := p.readPinned(); now != first {
		t.Errorf("the pin is at %s", now)
	}
}
