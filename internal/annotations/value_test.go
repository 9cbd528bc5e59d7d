package annotations_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/annotations"
)

const uid = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"

var forms = map[string]*annotations.Form{
	"open": annotations.Open, "close": annotations.Close, "pass": annotations.Pass, "proceed": annotations.Proceed,
	"exception": annotations.ApproveException, "request": annotations.ApproveRequest, "revision": annotations.ApproveRevision, "rollback": annotations.Rollback,
}

// text returns a parsed value as its parts, separated by blanks.
func text(v annotations.Value) string {
	parts := []string{v.At.Format(time.RFC3339Nano)}
	if v.Unlimited {
		parts = append(parts, "unlimited")
	}
	if v.Duration != nil {
		parts = append(parts, v.Duration.String())
	}
	for _, k := range slices.Sorted(maps.Keys(v.Keys)) {
		parts = append(parts, k+"="+v.Keys[k])
	}
	return strings.Join(parts, " ")
}

func TestParse(t *testing.T) {
	const at, noon = "2026-12-19T12:00:00Z", "2026-12-19T12:00:00Z"
	approval := at + ",round=7,uid=" + uid + ",revision="
	for _, tc := range []struct{ form, value, want string }{
		{"open", at, noon},
		{"open", at + "/30m", noon + " 30m0s"},
		{"open", at + "/0s", noon + " 0s"},
		{"open", at + "/3d", noon + " 72h0m0s"},
		{"open", at + "/2w", noon + " 336h0m0s"},
		{"open", "2026-12-19T13:00:00.123456789+01:00", "2026-12-19T12:00:00.123456789Z"},
		{"open", at + "/unlimited", ""},
		{"open", at + "/", ""},
		{"open", at + "/1d12h", ""},
		{"open", at + "/-30m", ""},
		{"open", at + "/30m/30m", ""},
		{"open", at + "/" + strings.Repeat("0", 8) + "1m" + strings.Repeat("1m", 30), ""},
		{"open", at + ",", ""},
		{"open", at + ",wave=canary", ""},
		{"open", "", ""},
		{"open", "/30m", ""},
		{"open", "now", ""},
		{"open", "2026-12-19T12:00:00", ""},
		{"open", "2026-12-19 12:00:00Z", ""},
		{"open", "2026-12-19T12:00:00,5Z", ""},
		{"open", "2026-12-19T1:00:00Z", ""},
		{"open", "2026-02-30T12:00:00Z", ""},
		{"open", "2026-12-19T12:00:00.1234567891Z", ""},
		{"open", " " + at, ""},
		{"open", at + "\n", ""},
		{"close", at + "/unlimited", noon + " unlimited"},
		{"close", at + "/Unlimited", ""},
		{"pass", at + "/30m", noon + " 30m0s"},
		{"pass", at + "/unlimited", ""},
		{"proceed", at, noon},
		{"proceed", at + ",wave=canary", noon + " wave=canary"},
		{"proceed", at + ",wave=the rest", noon + " wave=the rest"},
		{"proceed", at + ",wave=", ""},
		{"proceed", at + ",wave=a,wave=a", ""},
		{"proceed", at + ",wave=A b", ""},
		{"proceed", at + ",wave=a,", ""},
		{"proceed", at + ",waves=a", ""},
		{"proceed", at + "/30m", ""},
		{"exception", at + ",generation=3,uid=" + uid, noon + " generation=3 uid=" + uid},
		{"exception", at + ",uid=" + uid + ",generation=3", ""},
		{"exception", at + ",generation=3", ""},
		{"exception", at + ",generation=03,uid=" + uid, ""},
		{"exception", at + ",generation=3,generation=3,uid=" + uid, ""},
		{"exception", at + ",generation=3,uid=" + uid + ",by=alice", ""},
		{"exception", at + ",generation=3, uid=" + uid, ""},
		{"exception", at + ",generation=3,uid=" + uid + "\n", ""},
		{"request", at + ",request=2026-12-19T11:00:00.000000Z,uid=" + uid, noon + " request=2026-12-19T11:00:00.000000Z uid=" + uid},
		{"request", at + ",request=2026-12-19T11:00:00Z,uid=" + uid, ""},
		{"revision", approval + "main@sha1:abc", noon + " revision=main@sha1:abc round=7 uid=" + uid},
		{"revision", approval + "a,b,revision=c@sha1:abc", noon + " revision=a,b,revision=c@sha1:abc round=7 uid=" + uid},
		{"rollback", at + ",uid=" + uid + ",revision=a,uid=b@sha1:abc", noon + " revision=a,uid=b@sha1:abc uid=" + uid},
		{"rollback", at + ",revision=a,uid=" + uid, ""},
		{"rollback", at + ",uid=" + uid, ""},
		{"revision", approval, ""},
		{"revision", approval + "a b", ""},
		{"revision", approval + "a\n", ""},
		{"revision", approval + strings.Repeat("a", 513), ""},
		{"revision", at + ",revision=a,round=7,uid=" + uid, ""},
		{"revision", "main@sha1:abc", ""},
	} {
		f := forms[tc.form]
		v, err := f.Parse(tc.value)
		if got := text(v); err == nil && got != tc.want || err != nil && tc.want != "" {
			t.Errorf("%s %q: got %q, %v, want %q", tc.form, tc.value, got, err, tc.want)
		}
		var wrong *annotations.FormError
		if err != nil && (!errors.As(err, &wrong) || err.Error() != "must be "+f.String()+", such as "+f.Example) {
			t.Errorf("%s %q: %v", tc.form, tc.value, err)
		}
	}
}

func TestFormatsAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"open": "TIME[/DURATION][,only=KIND/NAME]...", "close": "TIME[/DURATION|/unlimited][,only=KIND/NAME]...", "pass": "TIME[/DURATION]", "proceed": "TIME[,wave=NAME]",
		"exception": "TIME,generation=NUMBER,uid=UID", "request": "TIME,request=TIME,uid=UID", "revision": "TIME,round=NUMBER,uid=UID,revision=REVISION",
		"rollback": "TIME,uid=UID,revision=REVISION",
	} {
		f := forms[name]
		if got := f.String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if _, err := f.Parse(f.Example); err != nil {
			t.Errorf("%s: the example: %v", name, err)
		}
		if cell := "| `" + strings.ReplaceAll(want, "|", `\|`) + "` |"; !strings.Contains(string(page), cell) {
			t.Errorf("%s: the page of annotations does not have %s", name, cell)
		}
	}
}

func FuzzParse(f *testing.F) {
	for name, form := range forms {
		f.Add(name, form.Example)
		f.Add(name, form.Example+",wave=x")
	}
	f.Add("close", "2026-12-19T12:00:00Z/unlimited")
	f.Fuzz(func(t *testing.T, name, value string) {
		form := forms[name]
		if form == nil {
			return
		}
		v, err := form.Parse(value)
		if err != nil {
			return
		}
		written := form.Format(v)
		again, err := form.Parse(written)
		if err != nil || text(again) != text(v) {
			t.Errorf("%q is written as %q, which is read as %q, %v", value, written, text(again), err)
		}
		if _, keys, _ := strings.Cut(value, ","); keys != form.FormatKeys(v.Keys) {
			t.Errorf("%q has the keys %q", value, form.FormatKeys(v.Keys))
		}
	})
}
