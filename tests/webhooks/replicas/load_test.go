package replicas

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// ofReplicas are flags of a replica. A leader keeps its lease during the pause of the API server, and only the machine limits the rate of
// requests.
var ofReplicas = []string{
	"--enable-leader-election", "--leader-election-lease-duration=15s", "--leader-election-renew-deadline=13s", "--leader-election-retry-period=1s",
	"--kube-api-qps=1000", "--kube-api-burst=2000",
}

// pause exceeds the time limit for responses to webhooks.
const pause = 9500 * time.Millisecond

// phases are the phases of a load, with their start times.
type phases struct {
	names []string
	began []time.Time
}

func (p *phases) begin(name string) time.Time {
	now := time.Now()
	p.names, p.began = append(p.names, name), append(p.began, now)
	return now
}

// log logs how many requests of each phase were accepted, and how fast.
func (p *phases) log(t *testing.T, senders []*sender, end time.Time) {
	t.Helper()
	for i, name := range p.names {
		until := end
		if i+1 < len(p.began) {
			until = p.began[i+1]
		}
		var took []time.Duration
		refused, failed := map[int]int{}, 0
		for _, a := range attempts(senders) {
			switch {
			case a.began.Before(p.began[i]) || !a.began.Before(until):
			case a.code == http.StatusOK:
				took = append(took, a.ended.Sub(a.began))
			case a.code == 0:
				failed++
			default:
				refused[a.code]++
			}
		}
		slices.Sort(took)
		t.Logf("%-28s %5.1fs: %4d taken, %5.1f/s, p50 %v, p99 %v; refused %v, %d without an answer", name, until.Sub(p.began[i]).Seconds(), len(took),
			float64(len(took))/until.Sub(p.began[i]).Seconds(), percentile(took, 50), percentile(took, 99), refused, failed)
	}
}

func percentile(sorted []time.Duration, n int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*n/100].Round(100 * time.Microsecond)
}

func attempts(senders []*sender) (all []attempt) {
	for _, s := range senders {
		for _, d := range s.sent {
			all = append(all, d.attempts...)
		}
	}
	return all
}

// senders returns eight senders with a Gate each, and four that share one. Those of type generic only close.
func (w *world) senders(to *service) []*sender {
	w.Helper()
	var all []*sender
	add := func(name, kind, gate string) *sender {
		all = append(all, newSender(name, kind, gate, w.receiver(name, kind, gate), to))
		return all[len(all)-1]
	}
	for i := range 4 {
		add(fmt.Sprintf("plain-%d", i), v1alpha1.GenericReceiver, fmt.Sprintf("plain-%d", i))
		add(fmt.Sprintf("signed-%d", i), v1alpha1.GenericHMACReceiver, fmt.Sprintf("signed-%d", i))
		add(fmt.Sprintf("sharing-%d", i), v1alpha1.GenericHMACReceiver, "shared").repeats = true
	}
	return all
}

func TestNoAcknowledgedWebhookIsLost(t *testing.T) {
	w := newWorld(t)
	to := &service{}
	senders := w.senders(to)
	alone := newSender("alone", v1alpha1.GenericHMACReceiver, "alone", w.receiver("alone", v1alpha1.GenericHMACReceiver, "alone"), to)
	first := w.start(ofReplicas...)
	w.ready()
	second := w.start(ofReplicas...)
	to.set(first, second)
	dead := w.leader()
	seen := w.record()

	stop, finish := context.WithCancel(w.Context())
	defer finish()
	var running sync.WaitGroup
	for _, s := range senders {
		running.Go(func() { s.run(w.Context(), stop.Done()) })
	}
	load := &phases{}
	load.begin("two replicas")
	passed(t, 5*time.Second)

	load.begin("the leader is killed")
	w.Must(first.Kill())
	w.servesWithoutALeader(alone, second, seen, dead)
	to.set(w.start(ofReplicas...), second)
	w.Eventually("another replica is the leader", func() error {
		if l := w.leader(); l == dead {
			return fmt.Errorf("the leader is still %s", l)
		}
		return nil
	})
	load.begin("there is another leader")
	passed(t, 3*time.Second)

	resume, err := cluster.PauseAPIServer()
	w.Must(err)
	away := load.begin("the API server is paused")
	passed(t, pause)
	back := load.begin("the API server responds again")
	w.Must(resume())
	passed(t, 4*time.Second)
	finish()
	load.begin("the rest")
	running.Wait()
	load.log(t, senders, time.Now())

	w.nothingWasLost(append(senders, alone), seen)
	w.onlyRetriesWereRequested(senders, away, back)
	w.handled(append(senders, alone), seen)
}

// passed lets the load continue for a while.
func passed(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// servesWithoutALeader posts once to a standby while there is no leader.
func (w *world) servesWithoutALeader(s *sender, follower *harness.Process, seen *history, dead string) {
	w.Helper()
	d := &delivery{gate: s.gate, action: v1alpha1.RequestOpen, reason: "there is no leader"}
	d.attempts = []attempt{s.post(w.Context(), follower.Webhooks, d)}
	if got := d.attempts[0]; got.code != http.StatusOK || dead == "" || w.leader() != dead {
		w.Fatalf("got %+v, the leader is %q", got, w.leader())
	}
	s.sent = append(s.sent, d)
	w.Eventually("the request is stored", func() error {
		if seen.has(d.gate, d.action, d.reason) < 0 {
			return fmt.Errorf("got requests %v", seen.of(d.gate))
		}
		return nil
	})
}

// nothingWasLost checks that each acknowledged request is stored. A watch delivers every version, so each request must be in the history,
// even if another one followed immediately.
func (w *world) nothingWasLost(senders []*sender, seen *history) {
	w.Helper()
	acknowledged := 0
	for _, s := range senders {
		if len(s.sent) < 2 && s.name != "alone" {
			w.Errorf("%s has sent only %d", s.name, len(s.sent))
		}
		for _, d := range s.sent {
			if !d.acknowledged() {
				w.Errorf("%s was never acknowledged", d.reason)
				continue
			}
			acknowledged++
			if err := harness.Eventually(w.Context(), harness.Patience, "stored", func() error {
				if seen.has(d.gate, d.action, d.reason) < 0 {
					return fmt.Errorf("%s was acknowledged, but is not stored", d.reason)
				}
				return nil
			}); err != nil {
				w.Error(err)
				return
			}
		}
	}
	w.Logf("%d requests were acknowledged, and all of them stored", acknowledged)
}

// onlyRetriesWereRequested checks that senders were asked to retry while they could not be served, and that no request was acknowledged
// then.
func (w *world) onlyRetriesWereRequested(senders []*sender, away, back time.Time) {
	w.Helper()
	retried := 0
	for _, a := range attempts(senders) {
		switch {
		case a.code != 0 && !slices.Contains([]int{http.StatusOK, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable}, a.code):
			w.Errorf("a sender got %d", a.code)
		case a.ended.Before(away) || !a.ended.Before(back):
		case a.code == http.StatusServiceUnavailable:
			retried++
		case !a.began.Before(away) && a.code != http.StatusTooManyRequests:
			w.Errorf("a sender got %d (%v) while the API server was paused", a.code, a.err)
		}
	}
	if retried == 0 {
		w.Error("no sender got 503 while the API server was paused")
	}
}

// handled checks that the controller has handled the last request of each Gate. For a Gate with one sender, that is also the last
// acknowledged request.
func (w *world) handled(senders []*sender, seen *history) {
	w.Helper()
	for _, s := range senders {
		all := seen.of(s.gate)
		last := all[len(all)-1]
		if sent := s.sent[len(s.sent)-1]; s.gate != "shared" && (last.reason != sent.reason || last.action != sent.action) {
			w.Errorf("%s: the last stored request is %v, the last acknowledged one is %s %s", s.gate, last, sent.action, sent.reason)
		}
		w.Eventually("the last request of "+s.gate+" is handled", func() error {
			g := &v1alpha1.Gate{}
			if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: s.gate}, g); err != nil {
				return err
			}
			if r := g.LatestRequest(); r == nil || r.Action != last.action || r.Message != last.reason {
				return fmt.Errorf("got %+v, want %v", r, last)
			}
			return nil
		})
	}
}
