package activation

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pool has certificates to draw from; making one is slow.
var pool = func() []map[string][]byte {
	var all []map[string][]byte
	for i, life := range [][2]time.Duration{
		{-30 * day, 10 * day}, {-day, 30 * day}, {-day, 60 * day}, {-time.Hour, 5 * time.Hour}, {-40 * day, -day},
		{5 * day, 50 * day}, {-10 * day, 20 * day}, {0, 90 * day}, {-day, day}, {20 * day, 21 * day},
	} {
		all = append(all, issue(int64(i), life[0], life[1]))
	}
	return append(all, with(all[0], "key.der", []byte{1}), with(all[1], "keystore.p12", []byte{2}), with(all[2], CertKey, nil),
		with(all[3], PrivateKeyKey, all[4][PrivateKeyKey]), with(all[5], CertKey, []byte("x")), temporary())
}()

func drawData(t *rapid.T, label string) map[string][]byte {
	return pool[rapid.IntRange(0, len(pool)-1).Draw(t, label)]
}

func drawWhen(t *rapid.T) When {
	return When{
		Open: rapid.Bool().Draw(t, "open"), Strict: rapid.Bool().Draw(t, "strict"),
		Margin: time.Duration(rapid.Int64Range(0, int64(10*day)).Draw(t, "margin")),
	}
}

func drawNow(t *rapid.T) time.Time {
	return start.Add(time.Duration(rapid.Int64Range(int64(-3*day), int64(100*day)).Draw(t, "now")))
}

// drawLive is nil, ours, made by a person, or foreign.
func drawLive(t *rapid.T) (live *Secret, foreign bool) {
	data := drawData(t, "live")
	switch rapid.SampledFrom([]string{"none", "ours", "rolled back", "by hand", "cert-manager", "label", "another", "controlled", "immutable", "opaque"}).Draw(t, "kind of live") {
	case "none":
		return nil, false
	case "ours":
		return liveSecret(data), false
	case "rolled back":
		live = liveSecret(drawData(t, "promoted"))
		live.Data = data
		return live, false
	case "by hand":
		return &Secret{Type: TLSType, Data: data}, false
	case "cert-manager":
		return &Secret{Type: TLSType, Data: data, Annotations: map[string]string{CertificateNameAnnotation: "mail"}}, true
	case "label":
		return &Secret{Type: TLSType, Data: data, Labels: map[string]string{certManagerLabel: "true"}}, true
	case "another":
		return &Secret{Type: TLSType, Data: data, Annotations: map[string]string{us.Certificate: "mail"}}, true
	case "controlled":
		return &Secret{Type: TLSType, Data: data, Controller: "SealedSecret 'web'"}, true
	case "immutable":
		return &Secret{Type: TLSType, Data: data, Immutable: true}, true
	default:
		return &Secret{Type: "Opaque", Data: data}, true
	}
}

func TestDecisionInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		staged := stagedSecret(drawData(t, "staged"))
		live, foreign := drawLive(t)
		when, now := drawWhen(t), drawNow(t)
		d := Decide(names, us, staged, live, when, now)

		if foreign && d.Outcome != Refused {
			t.Fatalf("outcome %d of what is foreign", d.Outcome)
		}
		if d.Outcome != Promote {
			if !d.Recheck.IsZero() {
				recheckIsExact(t, d, staged, live, when, now)
			}
			return
		}
		next, err := usable(staged.Data)
		if err != nil || now.Before(next.NotBefore) || now.After(next.NotAfter) {
			t.Fatalf("promotes what is of no use: %+v, %v", next, err)
		}
		if d.Early == when.Open {
			t.Fatal("early means although closed")
		}
		if !when.Open {
			used, err := leafOf(live.Data[CertKey])
			margin := min(when.Margin, used.NotAfter.Sub(used.NotBefore)/6)
			if err != nil || when.Strict || now.Before(used.NotAfter.Add(-margin)) || !next.NotAfter.After(used.NotAfter) {
				t.Fatalf("promotes while closed: %+v instead of %+v", next, used)
			}
		}
		live = promoted(live, d, staged)
		if again := Decide(names, us, staged, live, when, now); again.Outcome != Activated {
			t.Fatalf("outcome %d once it is promoted", again.Outcome)
		}
	})
}

// recheckIsExact checks that nothing changes until the time to look again, and
// that something does then.
func recheckIsExact(t *rapid.T, d Decision, staged, live *Secret, when When, now time.Time) {
	if !d.Recheck.After(now) {
		t.Fatalf("looks again at %s, now is %s", d.Recheck, now)
	}
	between := now.Add(time.Duration(rapid.Int64Range(0, int64(d.Recheck.Sub(now))-1).Draw(t, "between")))
	if got := Decide(names, us, staged, live, when, between); got.Outcome != d.Outcome && got.Outcome != Refused {
		t.Fatalf("outcome %d between, %d before", got.Outcome, d.Outcome)
	}
	if got := Decide(names, us, staged, live, when, d.Recheck); got.Outcome == d.Outcome {
		t.Fatalf("outcome %d as before", got.Outcome)
	}
}

// promoted is the live Secret after the write of a decision.
func promoted(live *Secret, d Decision, staged *Secret) *Secret {
	after := &Secret{Type: TLSType, Annotations: map[string]string{us.Certificate: names.Certificate, us.Fingerprint: d.Fingerprint}}
	if live != nil {
		annotations := maps.Clone(live.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, after.Annotations)
		after.Annotations = annotations
	}
	after.Data = maps.Clone(staged.Data)
	return after
}

// A history of issuances, people and crashes in which the gate is open: the
// Secret that keeps what was in use before always has what was in use before.
func TestHistoryInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var staged, live, previous *Secret
		// before is what previous has to have, nil if it is not known yet.
		var before map[string][]byte
		rolledBack := ""
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"issue", "roll back", "delete", "nothing"}).Draw(t, "step") {
			case "issue":
				staged = stagedSecret(drawData(t, "staged"))
			case "roll back":
				if live != nil && previous != nil {
					rolledBack = live.Annotations[us.Fingerprint]
					live = &Secret{Type: TLSType, Annotations: live.Annotations, Data: previous.Data}
				}
			case "delete":
				live, rolledBack = nil, ""
			}
			d := Decide(names, us, staged, live, open, start)
			if d.Outcome == Promote && d.Fingerprint == rolledBack {
				t.Fatal("promotes again what was rolled back")
			}
			crash := rapid.IntRange(0, 2).Draw(t, "crash before write")
			if d.Outcome != Promote || crash == 0 {
				continue
			}
			if d.Previous != nil {
				before = live.Data
				previous = &Secret{Data: d.Previous}
			}
			if crash == 1 {
				continue
			}
			live, rolledBack = promoted(live, d, staged), "" // until the next issuance
			if previous != nil && !Same(previous.Data, before) {
				t.Fatal("what was in use before is lost")
			}
			if previous != nil && d.Previous != nil && Same(previous.Data, staged.Data) {
				t.Fatal("what is promoted is kept as what was in use before")
			}
		}
	})
}

// A merge patch has the same effect on data as the write that it stands for,
// with all that there was before.
func TestPatchInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := Secret{Data: drawData(t, "have")}, Secret{Data: drawData(t, "want")}
		raw, err := Patch("1", have, want)
		if err != nil {
			t.Fatal(err)
		}
		var patch struct {
			Data map[string]*[]byte
		}
		if err := json.Unmarshal(raw, &patch); err != nil {
			t.Fatal(err)
		}
		got := maps.Clone(have.Data)
		for key, value := range patch.Data {
			delete(got, key)
			if value != nil {
				got[key] = *value
			}
		}
		if !Same(got, want.Data) {
			t.Fatalf("got %v", got)
		}
	})
}
