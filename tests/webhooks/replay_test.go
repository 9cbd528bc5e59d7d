package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// sign returns the signature of a body with the token of the receivers.
func sign(body string) string { return signWith(token, body) }

func signWith(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return fmt.Sprintf("sha256=%x", mac.Sum(nil))
}

// signed sends a signed webhook with a delivery ID, or without one if it is empty.
func (w *world) signed(path, body, delivery string) int {
	w.Helper()
	headers := []string{"X-Signature", sign(body)}
	if delivery != "" {
		headers = append(headers, "X-Delivery-Id", delivery)
	}
	return w.post(path, body, headers...).code
}

func TestSignedWebhookIsAcceptedOnce(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	if got := w.signed(path, `{"n":1}`, "1"); got != http.StatusOK {
		t.Fatal(got)
	}
	before, _, _ := w.request("production", v1alpha1.RequestOpen)
	again := func(name string, w *world, delivery string) {
		t.Helper()
		w.clock.Step(time.Second)
		if got := w.signed(path, `{"n":1}`, delivery); got != http.StatusConflict {
			t.Errorf("%s: %d", name, got)
		}
		if at, _, _ := w.request("production", v1alpha1.RequestOpen); at != before {
			t.Errorf("%s: requested again at %s", name, at)
		}
	}
	again("the same webhook", w, "1")
	again("with another delivery id", w, "2")
	again("without a delivery id", w, "")
	other := w.replica(cluster.Client)
	other.load("ci")
	again("on another replica", other, "1")

	if got := w.signed(path, `{"n":2}`, "1"); got != http.StatusOK {
		t.Errorf("another body: %d", got)
	}
	w.clock.Step(10*time.Minute + time.Second)
	if got := w.signed(path, `{"n":1}`, "1"); got != http.StatusOK {
		t.Errorf("after the window: %d", got)
	}
	obj := w.ReadGate("production")
	if got := obj.Annotations[v1alpha1.DeliveriesAnnotation]; len(got) > 50 { // the record of one webhook
		t.Errorf("old records are still there: %s", got)
	}
}

func TestOldSignedTimeIsRefusedAfterWindow(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	body := fmt.Sprintf(`{"timestamp":%q}`, w.clock.Now().Add(4*time.Minute).Format(time.RFC3339))
	for after, want := range map[time.Duration]int{0: http.StatusOK} {
		w.clock.Step(after)
		if got := w.signed(path, body, ""); got != want {
			t.Fatalf("after %s: %d", after, got)
		}
	}
	for range 15 {
		w.clock.Step(time.Minute)
		if got := w.signed(path, body, ""); got != http.StatusConflict && got != http.StatusBadRequest {
			t.Errorf("at %s: %d", w.clock.Now(), got)
		}
	}
}

func TestOneOfTwoConcurrentWebhooksIsAccepted(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	other := w.replica(cluster.Client)
	other.load("ci")
	for i := range 10 {
		codes := make([]int, 6)
		var group sync.WaitGroup
		for j := range codes {
			server := []*world{w, other}[j%2]
			group.Go(func() { codes[j] = server.signed(path, fmt.Sprintf(`{"n":%d}`, i), "x") })
		}
		group.Wait()
		taken := 0
		for _, code := range codes {
			switch code {
			case http.StatusOK:
				taken++
			case http.StatusConflict:
			default:
				t.Errorf("got %d", code)
			}
		}
		if taken != 1 {
			t.Errorf("%d of %v were accepted", taken, codes)
		}
	}
}

func TestRetryCompletesPartialWebhook(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("a")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.GateRefs = []v1alpha1.GateReference{{Name: "a"}, {Name: "missing"}, {Name: "z"}}
	})
	w.ClosedGate("z")
	if got := w.signed(path, "{}", "1"); got != http.StatusInternalServerError {
		t.Fatal(got)
	}
	first, _, _ := w.request("a", v1alpha1.RequestOpen)
	if z, _, _ := w.request("z", v1alpha1.RequestOpen); first == "" || z == "" {
		t.Errorf("requested at %q and %q: a missing Gate delays the others", first, z)
	}
	w.ClosedGate("missing")
	w.clock.Step(time.Second)
	if got := w.signed(path, "{}", "1"); got != http.StatusOK {
		t.Errorf("the next try: %d", got)
	}
	if at, _, _ := w.request("missing", v1alpha1.RequestOpen); at == "" {
		t.Error("not requested")
	}
	if at, _, _ := w.request("a", v1alpha1.RequestOpen); at != first {
		t.Error("requested twice")
	}
	if got := w.signed(path, "{}", "1"); got != http.StatusConflict {
		t.Errorf("one more try: %d", got)
	}
}

// quota is how many webhooks of a receiver a Gate records.
const quota = 256

// byHeader makes a receiver use the action in an unsigned header.
func byHeader(s *v1alpha1.GateReceiverSpec) {
	s.Action, s.ActionExpr = "", "string(headers['x-action'])"
}

// send sends a signed webhook to a receiver that takes its action from the header. It advances the clock, so that no rate limit is
// reached.
func (w *world) send(path, body string, action v1alpha1.RequestAction) int {
	w.Helper()
	w.clock.Step(100 * time.Millisecond)
	return w.post(path, body, "X-Signature", sign(body), "X-Delivery-Id", "1", "X-Action", string(action)).code
}

func TestReplayRecordIsPerReceiver(t *testing.T) {
	const opens, closes = v1alpha1.RequestOpen, v1alpha1.RequestClose
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	busy, other := w.receiver("busy", v1alpha1.GenericHMACReceiver, byHeader), w.receiver("other", v1alpha1.GenericHMACReceiver, byHeader)
	body := func(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }
	for n := range quota {
		if got := w.send(busy, body(n), opens); got != http.StatusOK {
			t.Fatalf("webhook %d: %d", n, got)
		}
	}
	opened, _, _ := w.request("production", opens)
	for _, refused := range []struct {
		name, body string
		action     v1alpha1.RequestAction
		want       int
	}{
		{"an open beyond the quota", "{}", opens, http.StatusTooManyRequests},
		{"the first one again", body(0), opens, http.StatusConflict},
		{"the first one, to close", body(0), closes, http.StatusConflict},
		{"a close beyond the quota", `{"close":1}`, closes, http.StatusOK},
		{"the one that closed, to open", `{"close":1}`, opens, http.StatusTooManyRequests},
		{"another close", `{"close":2}`, closes, http.StatusOK},
		{"the last one again", body(quota - 1), opens, http.StatusConflict},
	} {
		if got := w.send(busy, refused.body, refused.action); got != refused.want {
			t.Errorf("%s: %d, want %d", refused.name, got, refused.want)
		}
	}
	if at, _, _ := w.request("production", opens); at != opened {
		t.Errorf("opened at %s, want %s", at, opened)
	}
	closed, by, _ := w.request("production", closes)
	if !strings.HasSuffix(by, "/busy") {
		t.Errorf("closed by %q", by)
	}
	for _, action := range []v1alpha1.RequestAction{closes, opens} {
		if got := w.send(other, fmt.Sprintf(`{"other":%q}`, action), action); got != http.StatusOK {
			t.Errorf("%s of another receiver: %d", action, got)
		}
	}
	if at, by, _ := w.request("production", closes); at == closed || !strings.HasSuffix(by, "/other") {
		t.Errorf("closed at %s by %s", at, by)
	}
	// After the window, the oldest records expire, so that the quota is available again. The close that was not recorded no longer prevents
	// opens.
	w.clock.Step(10*time.Minute + time.Second)
	if got := w.send(busy, "{}", opens); got != http.StatusOK {
		t.Errorf("after the window: %d", got)
	}
	if got := w.ReadGate("production").Annotations[v1alpha1.DeliveriesAnnotation]; len(got) > 50 { // the record of one webhook
		t.Errorf("old records are still there: %.100s", got)
	}
}

func TestGateWithUnreadableRecordOnlyCloses(t *testing.T) {
	const opens, closes = v1alpha1.RequestOpen, v1alpha1.RequestClose
	w := newWorld(t, cluster.Client)
	obj := w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver, byHeader)
	garbage := strings.Repeat("garbage,", 30_000)
	w.Edit(obj, func() { obj.Annotations = map[string]string{v1alpha1.DeliveriesAnnotation: garbage} })
	got := w.post(path, "{}", "X-Signature", sign("{}"), "X-Delivery-Id", "1", "X-Action", "open")
	if got.code != http.StatusInternalServerError || !strings.Contains(got.body, "/production' stays closed, its annotation gating.toolkit.fluxcd.io/deliveries cannot be read") {
		t.Errorf("an open: %+v", got)
	}
	w.expectNoRequest()
	if w.ReadGate("production").Annotations[v1alpha1.DeliveriesAnnotation] != garbage {
		t.Error("an open has changed the record")
	}
	if got := w.send(path, "{}", closes); got != http.StatusOK {
		t.Errorf("a close: %d", got)
	}
	if got := len(w.ReadGate("production").Annotations[v1alpha1.DeliveriesAnnotation]); got > 50 {
		t.Errorf("%d bytes", got)
	}
	if got := w.send(path, `{"n":1}`, opens); got != http.StatusTooManyRequests {
		t.Errorf("an open with the new record: %d", got)
	}
	w.clock.Step(10*time.Minute + time.Second)
	if got := w.send(path, `{"n":1}`, opens); got != http.StatusOK {
		t.Errorf("after the window: %d", got)
	}
}

// Other clients may have filled the annotations.
func TestGateWithFullRecordOnlyCloses(t *testing.T) {
	w := newWorld(t, cluster.Client)
	obj := w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver, byHeader)
	w.Edit(obj, func() { obj.Annotations = map[string]string{"example.com/full": strings.Repeat("x", 256<<10-1000)} })
	if got := w.send(path, "{}", v1alpha1.RequestOpen); got != http.StatusTooManyRequests {
		t.Errorf("an open: %d", got)
	}
	if got := w.send(path, "{}", v1alpha1.RequestClose); got != http.StatusOK {
		t.Errorf("a close: %d", got)
	}
	if got := w.send(path, "{}", v1alpha1.RequestOpen); got != http.StatusTooManyRequests {
		t.Errorf("the one that closed, to open: %d", got)
	}
	if at, _, _ := w.request("production", v1alpha1.RequestOpen); at != "" {
		t.Errorf("opened at %s", at)
	}
	if at, _, _ := w.request("production", v1alpha1.RequestClose); at == "" {
		t.Error("not closed")
	}
}

func TestFullAnnotationIsNoSuccess(t *testing.T) {
	w := newWorld(t, cluster.Client)
	obj := w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	w.Edit(obj, func() { obj.Annotations = map[string]string{"example.com/full": strings.Repeat("x", 256<<10-30)} })
	if got := w.post(path, "{}"); got.code != http.StatusInternalServerError {
		t.Errorf("got %+v", got)
	}
	w.expectNoRequest()
}

func TestTokenIsValidUntilRemoved(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	secret := &corev1.Secret{}
	secret.Name, secret.Namespace = "ci", w.Namespace
	update := func(data map[string]string) {
		t.Helper()
		w.Read(secret)
		secret.Data, secret.StringData = nil, data
		w.Must(w.Client.Update(t.Context(), secret))
	}
	check := func(name string, path, with string, want int) {
		t.Helper()
		if got := w.post(path, "{}", "X-Signature", signWith(with, "{}")); got.code != want {
			t.Errorf("%s: %d, want %d", name, got.code, want)
		}
	}
	check("at first", path, token, http.StatusOK)
	update(map[string]string{"token": "new", "previousToken": token})
	check("the previous token, not loaded", path, token, http.StatusOK)
	fresh := w.load("ci")
	check("the new token", fresh, "new", http.StatusOK)
	check("the previous token", path, token, http.StatusOK)
	update(map[string]string{"token": "new"})
	check("the old token, not loaded", path, token, http.StatusNotFound)
	check("the new token, not loaded", fresh, "new", http.StatusOK)
	check("the new token at the old path, not loaded", path, "new", http.StatusNotFound)
	w.Must(w.Client.Delete(t.Context(), secret))
	check("without the Secret", fresh, "new", http.StatusNotFound)
}

// The controller may reconcile at any time. Only the order of the responses counts.
func TestLastAcknowledgedSenderWins(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	open := w.receiver("open", v1alpha1.GenericHMACReceiver)
	shut := w.receiver("close", v1alpha1.GenericReceiver)
	other := w.replica(cluster.Client)
	other.load("open")
	other.load("close")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 5 {
				if got := []*world{w, other}[i%2].post([]string{open, shut}[i/2%2], "{}", "X-Signature", sign("{}")); got.code != http.StatusOK {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	group.Wait()
	// The clock does not advance, so only the order is significant.
	for _, path := range []string{open, shut, shut, open} {
		if got := other.post(path, "{}", "X-Signature", sign("{}")); got.code != http.StatusOK {
			t.Fatalf("got %+v", got)
		}
		opened, _, _ := w.request("production", v1alpha1.RequestOpen)
		closed, _, _ := w.request("production", v1alpha1.RequestClose)
		o, err1 := time.Parse(time.RFC3339Nano, opened)
		c, err2 := time.Parse(time.RFC3339Nano, closed)
		if err1 != nil || err2 != nil || o.After(c) != (path == open) {
			t.Errorf("open at %s, close at %s", opened, closed)
		}
	}
}
