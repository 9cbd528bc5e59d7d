package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func noted(key, value string) edit {
	return func(e *v1alpha1.GateException) {
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[key] = value
	}
}

// written sets the authors of an exception.
func written(authors ...string) edit {
	return noted(v1alpha1.AuthorsAnnotation, strings.Join(authors, "\n"))
}

// lines are the approvals as the API server stamps them: "1 alice" for the first
// generation of this exception.
func lines(lines ...string) edit {
	lines = slices.Clone(lines)
	for i, line := range lines {
		if number, by, ok := strings.Cut(line, " "); ok {
			lines[i] = "generation=" + number + ",uid=" + uid + " " + by
		}
	}
	return raw(lines...)
}

// raw are lines as they are.
func raw(lines ...string) edit {
	return noted(v1alpha1.ApproveRequestedByAnnotation, strings.Join(lines, "\n"))
}

// by1 sets the approvers of the first generation.
func by1(who string) edit { return lines("1 " + who) }

func names(approvals []v1alpha1.Approval) (names []string) {
	for _, a := range approvals {
		names = append(names, a.ApprovedBy)
	}
	return names
}

func TestCountedApprovals(t *testing.T) {
	long := strings.Repeat("n", 512)
	for name, tc := range map[string]struct {
		edit edit
		want []string
	}{
		"none":                                   {written("mallory"), nil},
		"one":                                    {all(written("mallory"), lines("1 alice")), []string{"alice"}},
		"with a line break at the end":           {all(written("mallory"), lines("1 alice", "")), []string{"alice"}},
		"as it is stamped":                       {all(written("mallory"), raw("generation=1,uid="+uid+" alice")), []string{"alice"}},
		"two, in their order":                    {all(written("mallory"), lines("1 bob", "1 alice")), []string{"bob", "alice"}},
		"one person twice":                       {all(written("mallory"), lines("1 alice", "1 alice")), []string{"alice"}},
		"the author":                             {all(written("mallory"), lines("1 mallory", "1 alice")), []string{"alice"}},
		"one of several authors":                 {all(written("mallory", "trudy"), lines("1 trudy", "1 mallory")), nil},
		"a name that begins as that of authors":  {all(written("mallory"), lines("1 mallory2", "1 mall")), []string{"mallory2", "mall"}},
		"no author is known":                     {lines("1 alice"), nil},
		"no author is in the list of authors":    {all(written("", ""), lines("1 alice")), nil},
		"an older generation":                    {all(written("mallory"), lines("0 alice")), nil},
		"a generation to come":                   {all(written("mallory"), lines("2 alice")), nil},
		"a name with blanks":                     {all(written("mallory"), lines("1 Ann  of Green")), []string{"Ann  of Green"}},
		"an author with a blank":                 {all(written("Ann of Green"), lines("1 Ann of Green", "1 Ann")), []string{"Ann"}},
		"no generation":                          {all(written("mallory"), lines("alice")), nil},
		"no name":                                {all(written("mallory"), lines("1", "1 ")), nil},
		"no number":                              {all(written("mallory"), lines("one alice", "1x alice", "01 alice", "0x1 alice", "99999999999999999999 alice", "-1 alice")), nil},
		"a number alone, as older policies have": {all(written("mallory"), raw("1 alice", "generation=1 alice")), nil},
		"no uid":                                 {all(written("mallory"), raw("generation=1,uid= alice")), nil},
		"the uid of another exception":           {all(written("mallory"), raw(strings.Replace("generation=1,uid="+uid+" alice", "6d", "7d", 1))), nil},
		"more than that":                         {all(written("mallory"), raw(" generation=1,uid="+uid+" alice", "generation=1,uid="+uid+", alice", "2026-11-23T12:00:00Z,generation=1,uid="+uid+" alice")), nil},
		"in another order":                       {all(written("mallory"), raw("uid="+uid+",generation=1 alice")), nil},
		"malformed lines beside good ones":       {all(written("mallory"), lines("", "?", "1 alice", "1", "1 bob")), []string{"alice", "bob"}},
		"the longest name":                       {all(written("mallory"), lines("1 "+long)), []string{long}},
		"a name that is too long for the status": {all(written("mallory"), lines("1 "+long+"n")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := exception(byDefault(isClosed), tc.edit)
			approved, voided := gate.HandleApprovals(e, noon, true)
			if got := names(approved); !slices.Equal(got, tc.want) || len(voided) > 0 {
				t.Errorf("approved by %q, want %q; voided %v", got, tc.want, voided)
			}
			for _, a := range e.Status.Approvals {
				if !a.RecordedAt.Time.Equal(noon) || a.Generation != 1 {
					t.Errorf("noted as %+v", a)
				}
			}
			for asks := range int32(5) {
				if got, want := gate.Missing(asking(closed(), asks), e), max(0, int(asks)-len(tc.want)); got != want {
					t.Errorf("of %d approvals %d are missing, want %d", asks, got, want)
				}
			}
			if again, _ := gate.HandleApprovals(e, noon.Add(time.Minute), true); len(again) > 0 || !slices.Equal(names(e.Status.Approvals), tc.want) {
				t.Errorf("seen again: %q are new, the status has %q", names(again), names(e.Status.Approvals))
			}
		})
	}
}

func TestGateWithoutPolicyRequiresNoApprovals(t *testing.T) {
	if n := gate.Missing(closed(), exception(byDefault(isClosed))); n != 0 {
		t.Errorf("%d are missing", n)
	}
}

// Flux removes the annotations from an object that is in Git.
func TestApprovalsOutliveTheirAnnotation(t *testing.T) {
	e := exception(byDefault(isClosed), written("mallory"), by1("alice"))
	gate.HandleApprovals(e, noon, true)
	delete(e.Annotations, v1alpha1.ApproveRequestedByAnnotation)
	if approved, voided := gate.HandleApprovals(e, noon, true); len(approved)+len(voided) > 0 || gate.Missing(asking(closed(), 1), e) != 0 {
		t.Errorf("approved %v, voided %v, status %v", approved, voided, e.Status.Approvals)
	}
	lines("1 bob")(e)
	gate.HandleApprovals(e, noon, true)
	if got := names(e.Status.Approvals); !slices.Equal(got, []string{"alice", "bob"}) {
		t.Errorf("the status has %q", got)
	}
}

func TestEditVoidsApprovals(t *testing.T) {
	e := exception(byDefault(isClosed), written("mallory"), lines("1 alice", "1 bob"))
	gate.HandleApprovals(e, noon, true)
	e.Generation = 2
	if n := gate.Missing(asking(closed(), 2), e); n != 2 {
		t.Errorf("before the controller has seen the edit %d are missing, want 2", n)
	}
	lines("1 alice", "1 bob", "2 bob")(e)
	before := slices.Clone(e.Status.Approvals)
	kept := e.Status.Approvals
	approved, voided := gate.HandleApprovals(e, noon, true)
	if !slices.Equal(names(approved), []string{"bob"}) || !slices.Equal(names(voided), []string{"alice", "bob"}) {
		t.Errorf("approved by %q, voided of %q", names(approved), names(voided))
	}
	if got := e.Status.Approvals; len(got) != 1 || got[0].Generation != 2 {
		t.Errorf("the status has %+v", got)
	}
	if !slices.Equal(kept, before) {
		t.Error("the slice that was in the status is changed, which may be one of the cache")
	}
	if _, voided := gate.HandleApprovals(e, noon, true); len(voided) > 0 {
		t.Errorf("voided again: %v", voided)
	}
}

// A user who edits the spec becomes an author. Earlier approvals by that user no longer count, not even those in the status.
func TestLaterAuthorsApprovalDoesNotCount(t *testing.T) {
	e := exception(byDefault(isClosed), written("mallory"), lines("1 alice", "1 bob"))
	gate.HandleApprovals(e, noon, true)
	written("mallory", "alice")(e)
	if n := gate.Missing(asking(closed(), 2), e); n != 1 {
		t.Errorf("%d are missing, want 1", n)
	}
	delete(e.Annotations, v1alpha1.AuthorsAnnotation)
	if n := gate.Missing(asking(closed(), 2), e); n != 2 {
		t.Errorf("without authors %d are missing, want 2", n)
	}
}

func TestStatusApprovalsAreBounded(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("1 user%d", i))
	}
	e := exception(byDefault(isClosed), written("mallory"), lines(many...))
	if approved, _ := gate.HandleApprovals(e, noon, true); len(approved) != 32 || len(e.Status.Approvals) != 32 || approved[31].ApprovedBy != "user31" {
		t.Errorf("%d approvals, %d in the status", len(approved), len(e.Status.Approvals))
	}
}
