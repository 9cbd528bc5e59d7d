package verdict_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestPassRecordHasLinePerField(t *testing.T) {
	p := verdict.Pass{
		State: verdict.PassEnded, Gates: "shop/a,shop/b", Value: "2026-11-24T12:00:00Z/30m", By: "alice", Reason: "hotfix: key=value, twice", Since: noon,
		Until: noon.Add(30 * time.Minute), Ended: noon.Add(time.Minute), Was: target.Progress{"x\nstate=Passing", "v1", "7"}, Is: target.Progress{"y", "v2", "8"},
		Before: "v1", After: "main@sha1:a,b", Outcome: verdict.PassSucceeded, Message: "Ready: Done",
	}
	const want = "state=Ended\ngates=shop/a,shop/b\nrequestedAt=2026-11-24T12:00:00Z/30m\nrequestedBy=alice\nstartedAt=2026-11-24T12:00:00Z\n" +
		"until=2026-11-24T12:30:00Z\nendedAt=2026-11-24T12:01:00Z\noutcome=Succeeded\nrevisionBefore=v1\nrevisionAfter=main@sha1:a,b\n" +
		`handledBefore="x\nstate=Passing"` + "\nhandled=y\nattemptedBefore=v1\nattempted=v2\ngenerationBefore=7\ngeneration=8\n" +
		"reason=hotfix: key=value, twice\nmessage=Ready: Done"
	if got := p.Record(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, ok := verdict.ParseRecord(want); !ok || got != p {
		t.Errorf("got %+v", got)
	}
	for name, text := range map[string]string{
		"nothing": "", "no key": "Passing", "a field without a value": "state=", "an unknown key": "state=Ended\nby=alice", "a key twice": "state=Ended\nstate=Passing",
		"another order": "gates=a/b\nstate=Passing", "no time": "state=Passing\nstartedAt=now", "an open quote": "state=Passing\nreason=\"x", "an empty line": "state=Passing\n",
		"JSON": `{"state":"Passing","gates":"shop/a"}`,
	} {
		if got, ok := verdict.ParseRecord(text); ok || got != (verdict.Pass{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestPassRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a=," \\\n\t]{0,5}`)).Draw(t, name)
		}
		p := verdict.Pass{
			State: verdict.PassInProgress, Gates: text("gates"), Value: text("value"), By: text("by"), Reason: text("reason"), Since: noon, Message: text("message"),
			Was: target.Progress{text("was"), text("revision"), "7"}, Is: target.Progress{text("is"), "", ""}, Before: text("before"), After: text("after"),
		}
		record := p.Record()
		if got, ok := verdict.ParseRecord(record); !ok || got != p {
			t.Errorf("%q\nis read as %+v\nwant       %+v", record, got, p)
		}
		if strings.Count("\n"+record, "\nstate=") != 1 {
			t.Errorf("%q has two states", record)
		}
	})
}

// A value counts once, also if a later release has written what became of it.
func TestUnreadablePassRecordPreventsSecondPass(t *testing.T) {
	for _, record := range []string{`{"state":"Passing"}`, "state=Ended\nlater=x"} {
		obj := kustomization("apps", annotated(v1alpha1.PassAnnotation, record), annotated(v1alpha1.PassRequestedAtAnnotation, "2026-11-24T12:00:00Z"))
		if p := verdict.PassOf(obj); p.State != verdict.PassEnded || p.Value != "2026-11-24T12:00:00Z" {
			t.Errorf("%q: got %+v", record, p)
		}
	}
}
