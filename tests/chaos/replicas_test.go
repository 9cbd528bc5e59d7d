package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// lease is that of the leader. One that is paused for longer has lost it.
	lease = 4 * time.Second
	// weather is the rate of faults when nothing special happens.
	weather = 0.02
	// storm is the rate of faults in a burst.
	storm = 0.4
)

// replica is a gating-controller behind a proxy of its own. It is started again when it
// has ended, as a Deployment does.
type replica struct {
	proxy   *harness.FaultProxy
	process *harness.Process
	// downUntil is the step before which it is not started again.
	downUntil int
	// pausedUntil is the step and pausedAt the time of a pause, zero if there is none.
	pausedUntil int
	pausedAt    time.Time
	logs        []string
	// read is how many of the logs were read for panics.
	read int
}

func (w *walk) startReplicas() {
	w.Helper()
	for i := range uint64(2) {
		proxy, err := w.StartControllerProxy(w.Context(), fmt.Sprintf("replica-%d-%d", w.seed, i), w.seed+i)
		w.Must(err)
		r := &replica{proxy: proxy}
		w.replicas = append(w.replicas, r)
		w.Cleanup(func() {
			if err := errors.Join(r.process.Kill(), proxy.Stop()); err != nil {
				w.Error(err)
			}
		})
	}
	w.look()
}

func (w *walk) setWeather(rate float64) {
	for _, r := range w.replicas {
		r.proxy.SetRate(rate)
		r.proxy.Cut(false)
	}
}

func (r *replica) runs() bool {
	if r.process == nil {
		return false
	}
	select {
	case <-r.process.Exited():
		return false
	default:
		return true
	}
}

// leads returns whether it was ever the leader: one that loses the lease ends.
func (r *replica) leads() bool {
	if !r.runs() {
		return false
	}
	content, err := os.ReadFile(r.process.Log)
	return err == nil && strings.Contains(string(content), "Starting workers")
}

// leader returns a replica that leads, the first if none does.
func (w *walk) leader() *replica {
	for _, r := range w.replicas {
		if r.leads() && r.pausedAt.IsZero() {
			return r
		}
	}
	return w.replicas[0]
}

// look starts what is to run and ends the pauses that are over.
func (w *walk) look() {
	w.Helper()
	w.noteDisturbance()
	for _, r := range w.replicas {
		if !r.pausedAt.IsZero() && r.pausedUntil <= w.at {
			w.pass(time.Until(r.pausedAt.Add(lease * 5 / 4)))
			if r.runs() {
				w.history.Paused(time.Now())
				w.Must(r.process.Signal(syscall.SIGCONT))
			}
			r.pausedAt = time.Time{}
		}
		if r.runs() || r.downUntil > w.at {
			continue
		}
		process, err := w.StartGatingControllerThrough(w.Context(), r.proxy, "--enable-leader-election", "--no-cross-namespace-refs=false",
			"--leader-election-lease-duration="+lease.String(), "--leader-election-renew-deadline="+(lease*3/4).String(),
			"--leader-election-retry-period=500ms", "--min-retry-delay=200ms", "--max-retry-delay=2s")
		w.Must(err)
		r.process = process
		r.logs = append(r.logs, process.Log)
	}
}

// noteDisturbance has the log know when a replica, or its line, is not as it should be.
func (w *walk) noteDisturbance() {
	for _, r := range w.replicas {
		if !r.runs() || !r.pausedAt.IsZero() || w.at < w.stormUntil {
			w.log.Disturbed(time.Now())
		}
		w.log.Disturbed(r.proxy.LastHang())
	}
}

// pause stops a replica in the middle of what it does.
func (w *walk) pause(r *replica, steps int) {
	w.Helper()
	if r.runs() && r.pausedAt.IsZero() {
		w.Must(r.process.Signal(syscall.SIGSTOP))
		r.pausedAt, r.pausedUntil = time.Now(), w.at+steps
		w.history.Paused(r.pausedAt)
	}
}

// unpause lets a paused replica go on, so that it can end in order.
func (w *walk) unpause(r *replica) {
	w.Helper()
	if !r.pausedAt.IsZero() {
		w.history.Paused(time.Now())
		w.Must(r.process.Signal(syscall.SIGCONT))
		r.pausedAt = time.Time{}
	}
}

// noPanics fails if a process has panicked since the last call: what became of it was
// started again, or went on.
func (w *walk) noPanics() {
	w.Helper()
	for i, r := range w.replicas {
		for _, path := range r.logs[r.read:] {
			content, err := os.ReadFile(path)
			w.Must(err)
			if at := bytes.Index(content, []byte("panic")); at >= 0 {
				w.Fatalf("replica %d has panicked:\n%s", i, content[max(0, at-3000):min(len(content), at+3000)])
			}
		}
		r.read = max(0, len(r.logs)-1) // the last one still writes
	}
}
