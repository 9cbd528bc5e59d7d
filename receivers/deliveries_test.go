package receivers

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// remembering is a Gate that takes webhooks.
type remembering struct {
	*testing.T
	gate *v1alpha1.Gate
	now  time.Time
}

func newRemembering(t *testing.T) *remembering {
	return &remembering{T: t, gate: &v1alpha1.Gate{}, now: testNow}
}

// take has a receiver take a webhook that is to be remembered.
func (r *remembering) take(receiver, delivery string, action v1alpha1.RequestAction) error {
	return r.write(ask{action: action, delivery: deliveryOf("apps/"+receiver, delivery)})
}

func (r *remembering) write(a ask) error {
	r.Helper()
	next := r.gate.DeepCopy()
	// The controller has handled all before.
	delete(next.Annotations, v1alpha1.OpenRequestedAtAnnotation)
	delete(next.Annotations, v1alpha1.CloseRequestedAtAnnotation)
	err := write(next, a, r.now)
	if err == nil {
		r.gate = next
	}
	if got := len(r.annotation()); got > maxDeliveriesBytes {
		r.Fatalf("%d bytes", got)
	}
	return err
}

func (r *remembering) annotation() string { return r.gate.Annotations[v1alpha1.DeliveriesAnnotation] }

// fill has a receiver take as many as it may.
func (r *remembering) fill(receiver string, action v1alpha1.RequestAction) {
	r.Helper()
	for i := range maxDeliveries {
		if err := r.take(receiver, fmt.Sprint(action, i), action); err != nil {
			r.Fatal(i, err)
		}
	}
}

// want checks what becomes of a webhook.
func (r *remembering) want(name string, got, want error) {
	r.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		r.Errorf("%s: %v, want %v", name, got, want)
	}
}

const (
	opens  = v1alpha1.RequestOpen
	closes = v1alpha1.RequestClose
)

func TestADeliveryIsRememberedForTheReplayWindow(t *testing.T) {
	for _, action := range []v1alpha1.RequestAction{opens, closes} {
		r := newRemembering(t)
		r.want("the first", r.take("ci", "1", action), nil)
		first := r.gate
		for after, want := range map[time.Duration]error{
			0: errReplayed, replayWindow: errReplayed, replayWindow + time.Nanosecond: nil, -replayWindow: errReplayed, -replayWindow - 1: nil,
		} {
			r.gate, r.now = first.DeepCopy(), testNow.Add(after)
			r.want(fmt.Sprint("after ", after), r.take("ci", "1", action), want)
			if want == nil && strings.Count(r.annotation(), "=") != 1 {
				t.Errorf("after %s: not pruned: %q", after, r.annotation())
			}
			r.gate = first.DeepCopy()
			r.want(fmt.Sprint("not to be remembered, after ", after), r.write(ask{action: action, repeats: deliveryOf("apps/ci", "1")}), want)
			r.want("another one", r.write(ask{action: action, repeats: deliveryOf("apps/ci", "2")}), nil)
		}
	}
}

func TestDeliveriesOfTwoReceiversDiffer(t *testing.T) {
	if deliveryOf("apps/a", "b1") == deliveryOf("apps/ab", "1") || deliveryOf("apps/a", "1") == deliveryOf("apps/b", "1") {
		t.Error("they are the same")
	}
	if sender(deliveryOf("apps/a", "1")) != sender(deliveryOf("apps/a", "2")) || sender(deliveryOf("apps/a", "1")) == sender(deliveryOf("apps/b", "1")) {
		t.Error("they do not tell their receiver")
	}
	if got := deliveryOf("apps/a", strings.Repeat("x", 1<<20)); len(got) != lengthOfSender+lengthOfDelivery || strings.ContainsAny(got, ",=") {
		t.Errorf("got %q", got)
	}
}

func TestAReceiverWithoutMemoryOpensNothingUntilSomeOfItIsTooOld(t *testing.T) {
	r := newRemembering(t)
	r.fill("ci", opens)
	r.want("one more", r.take("ci", "one more", opens), errTooMany)
	r.want("a repetition", r.take("ci", fmt.Sprint(opens, 0), opens), errReplayed)
	r.want("another receiver's", r.take("other", "1", opens), nil)
	r.want("another receiver's that closes", r.take("alerts", "1", closes), nil)
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("later", r.take("ci", "one more", opens), nil)
	if strings.Contains(r.annotation(), ",") {
		t.Errorf("not pruned: %q", r.annotation())
	}
}

func TestACloseIsTakenHoweverManyThereWere(t *testing.T) {
	r := newRemembering(t)
	r.fill("ci", opens)
	before := r.annotation()
	for i := range 2 * maxDeliveries {
		r.want("a close without memory", r.take("ci", fmt.Sprint("close", i), closes), nil)
	}
	if !strings.HasPrefix(r.annotation(), before) {
		t.Error("what opened is forgotten")
	}
	r.want("a repetition of what opened", r.take("ci", fmt.Sprint(opens, 7), opens), errReplayed)

	r = newRemembering(t)
	r.fill("alerts", closes)
	r.now = testNow.Add(time.Minute)
	for i := range maxDeliveries / 2 {
		r.want("a close in place of another", r.take("alerts", fmt.Sprint("more", i), closes), nil)
	}
	r.want("one that is remembered", r.take("alerts", fmt.Sprint(closes, maxDeliveries-1), closes), errReplayed)
	r.want("the newest", r.take("alerts", "more1", closes), errReplayed)
	r.want("one that is forgotten closes once more", r.take("alerts", fmt.Sprint(closes, 0), closes), nil)
}

// A receiver may read headers that are not signed.
func TestWhatClosedAndIsForgottenOpensNothing(t *testing.T) {
	r := newRemembering(t)
	r.want("the first", r.take("ci", "captured", closes), nil)
	r.want("as something that opens", r.take("ci", "captured", opens), errReplayed)
	r.now = testNow.Add(5 * time.Minute)
	r.fill("ci", closes)
	captured := ask{action: opens, repeats: deliveryOf("apps/ci", "captured")}
	for _, after := range []time.Duration{5 * time.Minute, replayWindow} {
		r.now = testNow.Add(after)
		r.want("it is forgotten, and opens", r.take("ci", "captured", opens), errTooMany)
		r.want("without being remembered", r.write(captured), errTooMany)
		r.want("another one that opens", r.take("ci", "new", opens), errTooMany)
		r.want("another receiver's", r.take("other", fmt.Sprint(after), opens), nil)
		r.want("one that closes", r.write(ask{action: closes, repeats: captured.repeats}), nil)
	}
	// One that was taken later is forgotten as well, and the doubt lasts for that one.
	later := newRemembering(t)
	later.gate, later.now = r.gate.DeepCopy(), testNow.Add(replayWindow)
	later.want("one more that closes", later.take("ci", "last", closes), nil)
	later.now = testNow.Add(replayWindow + time.Second)
	later.want("the second one that is forgotten, to open", later.write(ask{action: opens, repeats: deliveryOf("apps/ci", fmt.Sprint(closes, 0))}), errTooMany)
	// It is older than what is remembered at all, but the receiver has its quota full.
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("after the window", r.write(captured), nil)
	r.want("with the quota full", r.take("ci", "new", opens), errTooMany)
	r.now = testNow.Add(5*time.Minute + replayWindow + time.Second)
	r.want("with room", r.take("ci", "new", opens), nil)
}

func TestTheAnnotationIsBoundedForAnyNumberOfReceivers(t *testing.T) {
	r := newRemembering(t)
	full := 0
	for r.take(fmt.Sprint("ci-", full), "probe", opens) == nil {
		for i := range maxDeliveries - 1 {
			if r.take(fmt.Sprint("ci-", full), fmt.Sprint(i), opens) != nil {
				break
			}
		}
		full++
	}
	if full < 8 {
		t.Errorf("%d receivers have their quota full", full)
	}
	before := r.annotation()
	for i := range 500 {
		r.want("a close of a new receiver", r.take(fmt.Sprint("alerts-", i), "1", closes), nil)
	}
	if len(r.annotation()) > len(before)+2*lengthOfDelivery {
		t.Errorf("from %d bytes to %d", len(before), len(r.annotation()))
	}
	r.want("what may be a repetition of them", r.write(ask{action: opens, repeats: deliveryOf("apps/alerts-400", "1")}), errTooMany)
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("later", r.take("ci-0", "1", opens), nil)
}

func TestOtherAnnotationsOfAGateLeaveLessRoom(t *testing.T) {
	others := func(bytes int) *remembering {
		r := newRemembering(t)
		r.want("one that is remembered", r.take("ci", "1", opens), nil)
		r.gate.Annotations["example.com/large"] = strings.Repeat("x", bytes)
		return r
	}
	r := others(validation.TotalAnnotationSizeLimitB - maxRequestBytes - 1000)
	opened := 0
	for r.take("ci", fmt.Sprint("more", opened), opens) == nil {
		opened++
	}
	if opened == 0 || opened > 1000/(lengthOfDelivery+lengthOfSender) {
		t.Errorf("%d have room", opened)
	}
	for _, receiver := range []string{"ci", "alerts"} {
		for i := range 100 {
			r.want("a close", r.take(receiver, fmt.Sprint("close", i), closes), nil)
		}
	}
	r.want("a repetition", r.take("ci", "1", opens), errReplayed)
	r.fits()

	r = others(validation.TotalAnnotationSizeLimitB - 1000) // no room at all
	r.want("one that opens", r.take("ci", "2", opens), errTooMany)
	r.want("one that closes", r.take("ci", "3", closes), nil)
	r.want("the one that closed, to open", r.take("ci", "3", opens), errTooMany)
	r.want("a repetition", r.take("ci", "1", opens), errReplayed)
	r.fits()
}

// fits fails if the API server would refuse the annotations.
func (r *remembering) fits() {
	r.Helper()
	if err := validation.ValidateAnnotationsSize(r.gate.Annotations); err != nil {
		r.Error(err)
	}
}

// Of many webhooks in any order, none opens twice within the window, and none that
// closes is refused unless it is known.
func TestNothingThatWasTakenOpensHoweverFullTheMemoryIs(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := newRemembering(t)
		taken := map[string]time.Time{}
		refused := 0
		for range 2500 {
			r.now = r.now.Add(time.Duration(random.IntN(1200)) * time.Millisecond)
			receiver, delivery := fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(2000))
			action := []v1alpha1.RequestAction{opens, closes, closes}[random.IntN(3)]
			err := r.take(receiver, delivery, action)
			at, known := taken[receiver+"/"+delivery]
			known = known && r.now.Sub(at) <= replayWindow
			switch {
			case err == nil && known && action == opens:
				t.Fatalf("seed %d: %s/%s opens although it was taken %s before", seed, receiver, delivery, r.now.Sub(at))
			case errors.Is(err, errReplayed) && !known && r.now.Sub(at) > replayWindow+time.Second:
				t.Fatalf("seed %d: %s/%s was never taken, or long ago", seed, receiver, delivery)
			case errors.Is(err, errTooMany) && action == closes:
				t.Fatalf("seed %d: a close is refused", seed)
			case errors.Is(err, errTooMany):
				refused++
			case err == nil:
				taken[receiver+"/"+delivery] = r.now.Truncate(time.Second)
			}
		}
		if refused == 0 {
			t.Errorf("seed %d: the memory was never full", seed)
		}
	}
}

// A writer of annotations could keep webhooks out for good, or have us carry
// anything along.
func TestAnAnnotationThatNobodyOfUsHasWrittenIsPruned(t *testing.T) {
	id := deliveryOf("apps/smoke", "1")
	for name, forged := range map[string]string{
		"garbage": "x,y=,=,=1,=o,o=o,,,", "not a number": id + "=osoon", "the end of time": fmt.Sprintf("%s=o%d", id, int64(math.MaxInt64)),
		"the beginning of time": fmt.Sprintf("%s=o%d", id, int64(math.MinInt64)),
		"far ahead":             fmt.Sprintf("%s=o%d", id, testNow.Add(replayWindow+time.Second).Unix()),
		"long":                  strings.Repeat("a", 200<<10) + fmt.Sprintf("=o%d", testNow.Unix()),
		"many without a digest": strings.Repeat(fmt.Sprintf("=o%d,", testNow.Unix()), 1024),
		"a number out of range": id + "=o99999999999999999999",
		"of no kind":            fmt.Sprintf("%s=%d", id, testNow.Unix()),
		"of another kind":       fmt.Sprintf("%s=z%d", id, testNow.Unix()),
		"a note with a digest":  fmt.Sprintf("%s=x%d", id, testNow.Unix()),
		"a receiver that opens": fmt.Sprintf("%s=o%d", sender(id), testNow.Unix()),
	} {
		r := newRemembering(t)
		r.gate.Annotations = map[string]string{v1alpha1.DeliveriesAnnotation: forged}
		r.want(name, r.take("smoke", "1", opens), nil)
		if want := fmt.Sprintf("%s=o%d", id, testNow.Unix()); r.annotation() != want {
			t.Errorf("%s: got %.100q", name, r.annotation())
		}
	}
}
