package receivers

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestADeliveryIsRememberedForTheReplayWindow(t *testing.T) {
	id := deliveryOf("apps/smoke", "1")
	annotation, err := remember("", id, testNow)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]error{
		0: errReplayed, replayWindow: errReplayed, replayWindow + time.Nanosecond: nil, -replayWindow: errReplayed, -replayWindow - 1: nil,
	} {
		got, err := remember(annotation, id, testNow.Add(after))
		if !errors.Is(err, want) {
			t.Errorf("after %s: %v, want %v", after, err, want)
		}
		if want == nil && strings.Count(got, "=") != 1 {
			t.Errorf("after %s: not pruned: %q", after, got)
		}
		if remembers(annotation, id, testNow.Add(after)) != (want != nil) {
			t.Errorf("after %s: remembers says otherwise", after)
		}
	}
}

func TestDeliveriesOfTwoReceiversDiffer(t *testing.T) {
	if deliveryOf("apps/a", "b1") == deliveryOf("apps/ab", "1") || deliveryOf("apps/a", "1") == deliveryOf("apps/b", "1") {
		t.Error("they are the same")
	}
	if got := deliveryOf("apps/a", strings.Repeat("x", 1<<20)); len(got) != lengthOfDelivery || strings.ContainsAny(got, ",=") {
		t.Errorf("got %q", got)
	}
}

func TestTooManyDeliveriesAreRefusedUntilTheyAreTooOld(t *testing.T) {
	annotation := ""
	var err error
	for i := range maxDeliveries {
		if annotation, err = remember(annotation, deliveryOf("apps/smoke", fmt.Sprint(i)), testNow); err != nil {
			t.Fatal(i, err)
		}
	}
	if len(annotation) > 64<<10 {
		t.Errorf("%d bytes of the 256 KiB of annotations", len(annotation))
	}
	id := deliveryOf("apps/smoke", "one more")
	if _, err := remember(annotation, id, testNow); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
	if _, err := remember(annotation, deliveryOf("apps/smoke", "0"), testNow); !errors.Is(err, errReplayed) {
		t.Errorf("a replay is %v", err)
	}
	after, err := remember(annotation, id, testNow.Add(replayWindow+time.Second))
	if err != nil || strings.Contains(after, ",") {
		t.Errorf("got %q, %v", after, err)
	}
}

// Who may write annotations could keep webhooks out for good, or have us carry
// anything along.
func TestAnAnnotationThatNobodyOfUsHasWrittenIsPruned(t *testing.T) {
	id := deliveryOf("apps/smoke", "1")
	for name, forged := range map[string]string{
		"garbage": "x,y=,=,=1,,,", "not a number": id + "=soon", "the end of time": fmt.Sprintf("%s=%d", id, int64(math.MaxInt64)),
		"the beginning of time": fmt.Sprintf("%s=%d", id, int64(math.MinInt64)),
		"far ahead":             fmt.Sprintf("%s=%d", id, testNow.Add(replayWindow+time.Second).Unix()),
		"long":                  strings.Repeat("a", 200<<10) + fmt.Sprintf("=%d", testNow.Unix()),
		"many without a digest": strings.Repeat(fmt.Sprintf("=%d,", testNow.Unix()), maxDeliveries),
		"a number out of range": id + "=99999999999999999999",
	} {
		got, err := remember(forged, id, testNow)
		if want := fmt.Sprintf("%s=%d", id, testNow.Unix()); err != nil || got != want {
			t.Errorf("%s: got %.100q, %v", name, got, err)
		}
	}
}
