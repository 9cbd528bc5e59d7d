package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// third is the third generation of an exception.
func third(e *v1alpha1.GateException) { e.Generation = 3 }

const (
	form  = "it must be TIME,generation=NUMBER,uid=UID, such as 2026-12-19T12:00:00Z,generation=3,uid=6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	right = "2026-11-23T12:00:00Z,generation=3,uid=" + uid
	other = "0d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
)

func TestApprovalMatchesItsReference(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"the present generation":           {right, ""},
		"with a fraction":                  {strings.Replace(right, "00Z", "00.123456789Z", 1), ""},
		"with an offset":                   {strings.Replace(right, "00Z", "00+01:00", 1), ""},
		"an older generation":              {strings.Replace(right, "=3", "=2", 1), "generation 2 is not the current one"},
		"a generation to come":             {strings.Replace(right, "=3", "=4", 1), "generation 4 is not the current one"},
		"one that begins as the present":   {strings.Replace(right, "=3", "=33", 1), "generation 33 is not the current one"},
		"the longest number":               {strings.Replace(right, "=3", "=9999999999999999999", 1), "generation 9999999999999999999 is not the current one"},
		"another exception":                {strings.Replace(right, uid, other, 1), other + " is the UID of another exception"},
		"another exception and generation": {strings.Replace(right, "=3,uid="+uid, "=2,uid="+other, 1), other + " is the UID of another exception"},
		"nothing":                          {"", form},
		"a time alone":                     {"2026-11-23T12:00:00Z", form},
		"a time and a comma":               {"2026-11-23T12:00:00Z,", form},
		"no time":                          {"generation=3,uid=" + uid, form},
		"an empty time":                    {",generation=3,uid=" + uid, form},
		"another time":                     {"yesterday,generation=3,uid=" + uid, form},
		"a time without zone":              {strings.Replace(right, "Z", "", 1), form},
		"a time of lower case":             {strings.ToLower(right), form},
		"no uid":                           {"2026-11-23T12:00:00Z,generation=3", form},
		"no generation":                    {"2026-11-23T12:00:00Z,uid=" + uid, form},
		"a window":                         {"2026-11-23T12:00:00Z/30m", form},
		"a slash":                          {"2026-11-23T12:00:00Z/3", form},
		"another order":                    {"2026-11-23T12:00:00Z,uid=" + uid + ",generation=3", form},
		"generation 0":                     {strings.Replace(right, "=3", "=0", 1), form},
		"a zero before":                    {strings.Replace(right, "=3", "=03", 1), form},
		"a sign":                           {strings.Replace(right, "=3", "=+3", 1), form},
		"no digits of ours":                {strings.Replace(right, "=3", "=３", 1), form},
		"a number that is too long":        {strings.Replace(right, "=3", "=30000000000000000000", 1), form},
		"a blank between":                  {strings.Replace(right, ",", ", ", 1), form},
		"a blank before":                   {" " + right, form},
		"a line break after":               {right + "\n", form},
		"two in two lines":                 {strings.Replace(right, "=3", "=2", 1) + "\n" + right, form},
		"two in one line":                  {right + "," + right, form},
		"two generations":                  {strings.Replace(right, "generation=3", "generation=2,generation=3", 1), form},
		"more than that":                   {right + ",by=alice", form},
		"the uid in capitals":              {strings.Replace(right, uid, strings.ToUpper(uid), 1), form},
		"a part of the uid":                {right[:len(right)-1], form},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := gate.CheckApproval(exception(byDefault(isClosed), third), tc.value); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.value, got, tc.want)
			}
		})
	}
}

func TestApprovalRoundTrip(t *testing.T) {
	e := exception(byDefault(isClosed), third)
	oslo := time.FixedZone("CET", 3600)
	if got := gate.FormatApproval(e, noon.In(oslo)); got != right || gate.CheckApproval(e, got) != nil {
		t.Errorf("got %q, %v", got, gate.CheckApproval(e, got))
	}
	e.Generation++
	if gate.CheckApproval(e, right) == nil {
		t.Error("it approves the next generation")
	}
}

// An approval of an exception ends in the exception, in one line, after a time and nothing
// else.
func FuzzCheckApproval(f *testing.F) {
	for _, value := range []string{right, "", "2026-11-23T12:00:00Z", strings.Replace(right, "=3", "=2", 1), strings.Replace(right, uid, other, 1), right + "\n", right + "," + right} {
		f.Add(value)
	}
	e, next := exception(byDefault(isClosed), third), exception(byDefault(isClosed), func(e *v1alpha1.GateException) { e.Generation = 4 })
	f.Fuzz(func(t *testing.T, value string) {
		err := gate.CheckApproval(e, value)
		if err == nil && gate.CheckApproval(next, value) == nil {
			t.Errorf("%q approves two generations", value)
		}
		at, ok := strings.CutSuffix(value, ",generation=3,uid="+uid)
		if err == nil && (!ok || len(at) < len("2026-11-23T12:00:00Z") || len(at) > len("2026-11-23T12:00:00.123456789+01:00") || strings.ContainsAny(at, ", \n=")) {
			t.Errorf("%q approves", value)
		}
		if read, bad := time.Parse(time.RFC3339, at); err != nil && ok && bad == nil && read.Format(time.RFC3339Nano) == at {
			t.Errorf("%q does not approve: %v", value, err)
		}
		if err != nil && len(err.Error()) > 250 {
			t.Errorf("%q is quoted: %v", value, err)
		}
	})
}

func TestExceptionHasApproveCommandAndRefusedApproval(t *testing.T) {
	const how = "to approve generation 3 after reading it: kubectl -n flux-system annotate --overwrite gateexception/x " +
		"approve.gate.fluxcd.io/requestedAt=$(date -u +%Y-%m-%dT%H:%M:%SZ),generation=3,uid=" + uid
	asked := func(value string) edit { return noted(v1alpha1.ApproveRequestedAtAnnotation, value) }
	older := strings.Replace(right, "=3", "=2", 1)
	for name, tc := range map[string]struct {
		edit             edit
		asks             int32
		approve, refused string
	}{
		"nobody has approved":              {written("mallory"), 1, how, ""},
		"one is missing":                   {all(written("mallory"), lines("3 alice"), asked(right)), 2, how, ""},
		"approved":                         {all(written("mallory"), lines("3 alice"), asked(right)), 1, "", ""},
		"no approval is asked for":         {all(written("mallory"), asked("x")), 0, "", ""},
		"nobody can approve":               {asked("x"), 1, "", `the approval "x" does not count: ` + form},
		"a time alone":                     {all(written("mallory"), asked("2026-11-23T12:00:00Z")), 1, how, `the approval "2026-11-23T12:00:00Z" does not count: ` + form},
		"an older generation":              {all(written("mallory"), lines("2 alice"), asked(older)), 1, how, `the approval "` + older + `" does not count: generation 2 is not the current one`},
		"nobody has stamped it":            {all(written("mallory"), asked(right)), 1, how, `the approval "` + right + `" does not count: the API server has not stamped the approver`},
		"an older one is stamped":          {all(written("mallory"), lines("2 alice"), asked(right)), 1, how, `the approval "` + right + `" does not count: the API server has not stamped the approver`},
		"what is not a line is not a line": {all(written("mallory"), raw("x generation=3,uid="+uid+" alice"), asked(right)), 1, how, `the approval "` + right + `" does not count: the API server has not stamped the approver`},
		"much and in lines":                {all(written("mallory"), asked("\n"+strings.Repeat("ø", 1000))), 1, how, `the approval "\n` + strings.Repeat("ø", 127) + `" does not count: ` + form},
	} {
		t.Run(name, func(t *testing.T) {
			e := exception(byDefault(isClosed), third, tc.edit)
			gate.HandleApprovals(e, noon, true)
			d := gate.DecideException(e, asking(production(closed()), tc.asks), []*v1alpha1.GateException{e}, noon)
			if d.Approve != tc.approve || d.Refused != tc.refused {
				t.Errorf("got  %q, %q\nwant %q, %q", d.Approve, d.Refused, tc.approve, tc.refused)
			}
		})
	}
}
