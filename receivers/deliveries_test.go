package receivers

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// remembering is a Gate that accepts webhooks.
type remembering struct {
	*testing.T
	gate *v1alpha1.Gate
	now  time.Time
}

func newRemembering(t *testing.T) *remembering {
	return &remembering{T: t, gate: &v1alpha1.Gate{}, now: testNow}
}

// take writes a recorded webhook of a receiver.
func (r *remembering) take(receiver, delivery string, action v1alpha1.RequestAction) error {
	return r.write(gateRequest{action: action, delivery: deliveryID("apps/"+receiver, delivery)})
}

func (r *remembering) write(a gateRequest) error {
	r.Helper()
	next := r.gate.DeepCopy()
	// The controller has handled all previous requests.
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

// recorded returns the items in the annotation.
func (r *remembering) recorded() deliveries {
	r.Helper()
	m, err := recall(r.annotation(), r.now)
	if err != nil {
		r.Error(err)
	}
	return m
}

func (r *remembering) annotation() string { return r.gate.Annotations[v1alpha1.DeliveriesAnnotation] }

// fill writes as many webhooks as a receiver may record.
func (r *remembering) fill(receiver string, action v1alpha1.RequestAction) {
	r.Helper()
	for i := range maxDeliveries {
		if err := r.take(receiver, fmt.Sprint(action, i), action); err != nil {
			r.Fatal(i, err)
		}
	}
}

// want checks the error for a webhook.
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

func TestDeliveryIsRecordedForReplayWindow(t *testing.T) {
	for _, action := range []v1alpha1.RequestAction{opens, closes} {
		r := newRemembering(t)
		r.want("the first", r.take("ci", "1", action), nil)
		first := r.gate
		for after, want := range map[time.Duration]error{
			0: errReplayed, replayWindow: errReplayed, replayWindow + time.Nanosecond: nil, -replayWindow: errReplayed, -replayWindow - 1: nil,
		} {
			r.gate, r.now = first.DeepCopy(), testNow.Add(after)
			r.want(fmt.Sprint("after ", after), r.take("ci", "1", action), want)
			if want == nil && len(r.recorded()) != 1 {
				t.Errorf("after %s: not pruned: %q", after, r.annotation())
			}
			r.gate = first.DeepCopy()
			r.want(fmt.Sprint("not to be remembered, after ", after), r.write(gateRequest{action: action, repeats: deliveryID("apps/ci", "1")}), want)
			r.want("another one", r.write(gateRequest{action: action, repeats: deliveryID("apps/ci", "2")}), nil)
		}
	}
}

func TestDeliveriesOfTwoReceiversDiffer(t *testing.T) {
	if deliveryID("apps/a", "b1") == deliveryID("apps/ab", "1") || deliveryID("apps/a", "1") == deliveryID("apps/b", "1") {
		t.Error("they are the same")
	}
	if sender(deliveryID("apps/a", "1")) != sender(deliveryID("apps/a", "2")) || sender(deliveryID("apps/a", "1")) == sender(deliveryID("apps/b", "1")) {
		t.Error("they do not tell their receiver")
	}
	if got := deliveryID("apps/a", strings.Repeat("x", 1<<20)); len(got) != senderLength+digestLength || strings.ContainsAny(got, ",:") {
		t.Errorf("got %q", got)
	}
}

func TestReceiverWithFullRecordOpensNothing(t *testing.T) {
	r := newRemembering(t)
	r.fill("ci", opens)
	r.want("one more", r.take("ci", "one more", opens), errTooMany)
	r.want("a repetition", r.take("ci", fmt.Sprint(opens, 0), opens), errReplayed)
	r.want("another receiver's", r.take("other", "1", opens), nil)
	r.want("another receiver's that closes", r.take("alerts", "1", closes), nil)
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("later", r.take("ci", "one more", opens), nil)
	if got := len(r.recorded()); got != 1 {
		t.Errorf("%d webhooks are still recorded: %q", got, r.annotation())
	}
}

func TestCloseIsAcceptedDespiteFullRecord(t *testing.T) {
	r := newRemembering(t)
	r.fill("ci", opens)
	before := r.recorded()
	for i := range 2 * maxDeliveries {
		r.want("a close without memory", r.take("ci", fmt.Sprint("close", i), closes), nil)
	}
	if after := r.recorded(); !slices.Equal(after[:len(before)], before) {
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
func TestDroppedCloseCannotOpen(t *testing.T) {
	r := newRemembering(t)
	r.want("the first", r.take("ci", "captured", closes), nil)
	r.want("as something that opens", r.take("ci", "captured", opens), errReplayed)
	r.now = testNow.Add(5 * time.Minute)
	r.fill("ci", closes)
	captured := gateRequest{action: opens, repeats: deliveryID("apps/ci", "captured")}
	for _, after := range []time.Duration{5 * time.Minute, replayWindow} {
		r.now = testNow.Add(after)
		r.want("it is forgotten, and opens", r.take("ci", "captured", opens), errTooMany)
		r.want("without being remembered", r.write(captured), errTooMany)
		r.want("another one that opens", r.take("ci", "new", opens), errTooMany)
		r.want("another receiver's", r.take("other", fmt.Sprint(after), opens), nil)
		r.want("one that closes", r.write(gateRequest{action: closes, repeats: captured.repeats}), nil)
	}
	// A webhook that was accepted later is dropped, too. Until its record expires, no webhook of the receiver opens.
	later := newRemembering(t)
	later.gate, later.now = r.gate.DeepCopy(), testNow.Add(replayWindow)
	later.want("one more that closes", later.take("ci", "last", closes), nil)
	later.now = testNow.Add(replayWindow + time.Second)
	later.want("the second one that is forgotten, to open", later.write(gateRequest{action: opens, repeats: deliveryID("apps/ci", fmt.Sprint(closes, 0))}), errTooMany)
	// It is older than any record, but the quota of the receiver is used up.
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("after the window", r.write(captured), nil)
	r.want("with the quota full", r.take("ci", "new", opens), errTooMany)
	r.now = testNow.Add(5*time.Minute + replayWindow + time.Second)
	r.want("with room", r.take("ci", "new", opens), nil)
}

func TestAnnotationIsBoundedForAnyNumberOfReceivers(t *testing.T) {
	r := newRemembering(t)
	var got []int
	for n := 1; n > 0; { // each receiver records as many webhooks as it may
		for n = 0; n < maxDeliveries && r.take(fmt.Sprint("ci-", len(got)), fmt.Sprint(n), opens) == nil; {
			n++
		}
		got = append(got, n)
	}
	if want := []int{256, 256, 173, 86, 43, 21, 10}; len(got) < 8 || !slices.Equal(got[:len(want)], want) {
		t.Errorf("the receivers have taken %v, want %v and some more", got, want)
	}
	before := r.annotation()
	for i := range 2000 {
		r.want("a close of a new receiver", r.take(fmt.Sprint("alerts-", i), "1", closes), nil)
	}
	if !strings.HasPrefix(r.annotation(), before) {
		t.Error("what opened is forgotten")
	}
	r.want("what may be a repetition of them", r.write(gateRequest{action: opens, repeats: deliveryID("apps/alerts-1900", "1")}), errTooMany)
	r.now = testNow.Add(replayWindow + time.Second)
	r.want("later", r.take("ci-0", "1", opens), nil)
}

func TestOtherAnnotationsReduceSpaceForDeliveries(t *testing.T) {
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
	if opened == 0 || opened > 1000/digestLength {
		t.Errorf("%d have room", opened)
	}
	for _, receiver := range []string{"ci", "alerts"} {
		for i := range 100 {
			r.want("a close", r.take(receiver, fmt.Sprint("close", i), closes), nil)
		}
	}
	r.want("a repetition", r.take("ci", "1", opens), errReplayed)
	r.fits()

	r = others(validation.TotalAnnotationSizeLimitB - 1000) // no space is left
	r.want("one that opens", r.take("ci", "2", opens), errTooMany)
	r.want("one that closes", r.take("ci", "3", closes), nil)
	r.want("the one that closed, to open", r.take("ci", "3", opens), errTooMany)
	r.want("a repetition", r.take("ci", "1", opens), errReplayed)
	r.fits()
}

// fits checks that the API server would accept the annotations.
func (r *remembering) fits() {
	r.Helper()
	if err := validation.ValidateAnnotationsSize(r.gate.Annotations); err != nil {
		r.Error(err)
	}
}

// Among many webhooks in random order, none opens twice within the window, and none that closes is refused unless it is recorded.
func TestAcceptedDeliveryDoesNotOpenAgainWithFullRecord(t *testing.T) {
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

// malformedRecords returns annotations that deliveries.String does not write. Most of them contain a webhook of the receiver smoke.
func malformedRecords() map[string]string {
	id, now := deliveryID("apps/smoke", "1"), testNow.Unix()
	by, digest := sender(id), id[senderLength:]
	return map[string]string{
		"garbage": "x,y:,:,:1,:o,o:o,,,", "not a number": fmt.Sprintf("soon,%s:oAA%s", by, digest), "the end of time": fmt.Sprintf("%d,%s:oAA%s", math.MaxInt64, by, digest),
		"the beginning of time": fmt.Sprintf("%d,%s:oAA%s", math.MinInt64, by, digest),
		"long":                  strings.Repeat("a", 200<<10) + fmt.Sprintf(",%s:oAA%s", by, digest),
		"a time alone":          fmt.Sprint(now),
		"no items":              fmt.Sprintf("%d,%s:", now, by),
		"many without a digest": fmt.Sprint(now) + strings.Repeat(","+by+":oAA", 1024),
		"no digits of base64":   fmt.Sprintf("%d,%s:oAA%s", now, by, strings.Repeat("!", digestLength)),
		"no time of base64":     fmt.Sprintf("%d,%s:o!!%s", now, by, digest),
		"of no kind":            fmt.Sprintf("%d,%s:AA%s", now, by, digest),
		"of another kind":       fmt.Sprintf("%d,%s:zAA%s", now, by, digest),
		"of no receiver":        fmt.Sprintf("%d,:oAA%s", now, digest),
		"of half a receiver":    fmt.Sprintf("%d,%s:oAA%s", now, by[1:], digest),
		"a part of a digest":    fmt.Sprintf("%d,%s:oAA%s", now, by, digest[1:]),
		"text at the end":       fmt.Sprintf("%d,%s:oAA%s ", now, by, digest),
		"another version":       fmt.Sprintf("v2;%d,%s:oAA%s", now, by, digest),
	}
}

func TestUnreadableRecordPreventsOpening(t *testing.T) {
	for name, value := range malformedRecords() {
		repeats := deliveryID("apps/ci", "1")
		for request, open := range map[string]gateRequest{
			"that is recorded": {action: opens, delivery: repeats}, "that must not repeat another": {action: opens, repeats: repeats}, "that may be repeated": {action: opens},
		} {
			r := newRemembering(t)
			r.gate.Annotations = map[string]string{v1alpha1.DeliveriesAnnotation: value}
			before := r.gate.DeepCopy()
			if err := write(r.gate, open, r.now); !errors.Is(err, errUnreadable) || !reflect.DeepEqual(r.gate, before) {
				t.Errorf("%s, one %s: error %v, annotations %v", name, request, err, r.gate.Annotations)
			}
			shut := open
			shut.action = closes
			r.want(name+", one that closes", r.write(shut), nil)
			for range 2 {
				r.want(name+", then one that opens", r.take("ci", "2", opens), errTooMany)
				r.now = testNow.Add(replayWindow)
			}
			r.now = testNow.Add(replayWindow + time.Second)
			r.want(name+", later", r.take("ci", "2", opens), nil)
		}
	}
}

// The clock may have been set.
func TestWebhooksOutsideReplayWindowAreNotRecorded(t *testing.T) {
	id := deliveryID("apps/smoke", "1")
	for _, ago := range []time.Duration{replayWindow + time.Second, -replayWindow - time.Second} {
		r := newRemembering(t)
		r.gate.Annotations = map[string]string{v1alpha1.DeliveriesAnnotation: deliveries{{id, opened, testNow.Add(-ago).Unix()}}.String()}
		r.want(fmt.Sprint(ago, " ago"), r.take("smoke", "1", opens), nil)
		if want := (deliveries{{id, opened, testNow.Unix()}}).String(); r.annotation() != want {
			t.Errorf("%s ago: got %.100q", ago, r.annotation())
		}
	}
}

func TestGateRecords512WebhooksInReplayWindow(t *testing.T) {
	const webhooks = 512
	for _, receivers := range []int{2, 3, 8, 64, webhooks} {
		for _, action := range []v1alpha1.RequestAction{opens, closes} {
			r := newRemembering(t)
			name := func(i int) (receiver, delivery string) { return fmt.Sprint("ci-", i%receivers), fmt.Sprint(i) }
			for i := range webhooks {
				r.now = testNow.Add(time.Duration(i) * replayWindow / webhooks)
				receiver, delivery := name(i)
				r.want(fmt.Sprintf("%d of %d receivers", i, receivers), r.take(receiver, delivery, action), nil)
			}
			for i := range webhooks {
				receiver, delivery := name(i)
				r.want(fmt.Sprintf("a repetition of %d of %d receivers", i, receivers), r.take(receiver, delivery, opens), errReplayed)
			}
			r.want("another receiver", r.take("other", "1", opens), nil)
		}
	}
}

// A clock that is five minutes behind that of the sender accepts a signed time for the longest time.
func TestDeliveryIsRecordedWhileSignedTimeIsAccepted(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, time.Millisecond, 999 * time.Millisecond} {
		r := newRemembering(t)
		signedAt := testNow.Add(fraction)
		r.now = signedAt.Add(-signedTimeTolerance)
		r.want("the first", r.take("ci", "1", opens), nil)
		for r.now = r.now.Add(500 * time.Millisecond); mustBeRecent(signedAt, r.now) == nil; r.now = r.now.Add(500 * time.Millisecond) {
			if err := r.take("ci", "1", opens); !errors.Is(err, errReplayed) {
				t.Fatalf("signed at %s, again at %s: %v", signedAt, r.now, err)
			}
		}
	}
}
