package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// When the replica is stopped, it has not written any of these requests yet.
func TestStoppingReplicaRespondsToAcceptedWebhooks(t *testing.T) {
	w := newWorld(t)
	var senders []*sender
	for i := range 6 {
		name := fmt.Sprintf("sender-%d", i)
		s := newSender(name, v1alpha1.GenericHMACReceiver, name, w.receiver(name, v1alpha1.GenericHMACReceiver, name), nil)
		s.expects, s.client.Transport = true, &http.Transport{ExpectContinueTimeout: harness.Patience}
		senders = append(senders, s)
	}
	p := w.start()
	w.ready()
	seen := w.record()
	resume, err := cluster.PauseAPIServer()
	w.Must(err)
	defer resume() //nolint:errcheck // it may have been resumed before

	taken := make(chan struct{}, len(senders))
	ctx := httptrace.WithClientTrace(w.Context(), &httptrace.ClientTrace{Got100Continue: func() { taken <- struct{}{} }})
	var responses sync.WaitGroup
	for _, s := range senders {
		responses.Go(func() {
			d := &delivery{gate: s.gate, action: v1alpha1.RequestOpen, reason: "taken by " + s.name}
			d.attempts = []attempt{s.post(ctx, p.Webhooks, d)}
			s.sent = append(s.sent, d)
		})
	}
	for range senders {
		select {
		case <-taken:
		case <-time.After(harness.Patience):
			t.Fatal("not all requests were taken")
		}
	}
	w.Must(p.Signal(syscall.SIGTERM))
	w.Eventually("new requests are not accepted", func() error {
		if a := senders[0].probe(w.Context(), p); !errors.Is(a.err, syscall.ECONNREFUSED) {
			return fmt.Errorf("got %+v", a)
		}
		return nil
	})
	select {
	case <-p.Exited():
		t.Fatal("the replica did not wait for accepted requests")
	default:
	}
	w.Must(resume())
	responses.Wait()
	for _, s := range senders {
		d := s.sent[0]
		if got := d.attempts[0]; got.code != http.StatusOK || got.err != nil {
			t.Errorf("%s: got %+v", d.reason, got)
		}
		w.Eventually(d.reason+" is stored", func() error {
			if seen.has(d.gate, d.action, d.reason) < 0 {
				return errors.New("it is not stored")
			}
			return nil
		})
	}
	select {
	case <-p.Exited():
	case <-time.After(harness.Patience):
		t.Error("the replica does not end")
	}
}

// probe requests an unknown path on a new connection.
func (s *sender) probe(ctx context.Context, p *harness.Process) attempt {
	other := newSender("probe", v1alpha1.GenericReceiver, "", "/", nil)
	defer other.client.CloseIdleConnections()
	return other.post(ctx, p.Webhooks, &delivery{})
}

func TestRolloutIsInvisibleToSenders(t *testing.T) {
	w := newWorld(t)
	to := &service{}
	senders := w.senders(to)
	old := w.start("--kube-api-qps=1000", "--kube-api-burst=2000")
	w.ready()
	to.set(old)
	seen := w.record()
	stop, finish := context.WithCancel(w.Context())
	defer finish()
	var running sync.WaitGroup
	for _, s := range senders {
		running.Go(func() { s.run(w.Context(), stop.Done()) })
	}
	passed(t, 2*time.Second)
	fresh := w.start("--kube-api-qps=1000", "--kube-api-burst=2000") // returns once it is ready
	to.set(old, fresh)
	passed(t, time.Second)
	to.set(fresh)
	passed(t, 3*time.Second) // preStop of config/manager
	w.Must(old.Stop())
	passed(t, time.Second)
	finish()
	running.Wait()
	for _, s := range senders {
		for _, d := range s.sent {
			for _, a := range d.attempts {
				if a.code != http.StatusOK && a.code != http.StatusTooManyRequests {
					t.Errorf("%s: got %+v", d.reason, a)
				}
			}
		}
	}
	w.nothingWasLost(senders, seen)
}
