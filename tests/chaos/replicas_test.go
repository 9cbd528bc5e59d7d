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
	// lease is the lease of the leader. A replica that is paused for longer loses it.
	lease = 4 * time.Second
	// weather is the usual rate of faults.
	weather = 0.02
	// storm is the rate of faults in a burst.
	storm = 0.4
)

// replica is a gating-controller behind its own proxy. After it has ended, it is started again, as by a Deployment.
type replica struct {
	proxy   *harness.FaultProxy
	process *harness.Process
	// downUntil is the step before which it is not started again.
	downUntil int
	// pausedUntil is the last step of a pause and pausedAt its start, zero if there is none.
	pausedUntil int
	pausedAt    time.Time
	logs        []string
	// read is the length of the logs that were searched for panics.
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
	w.updateReplicas()
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

// leads returns whether the replica was ever the leader: it exits when it loses the lease.
func (r *replica) leads() bool {
	if !r.runs() {
		return false
	}
	content, err := os.ReadFile(r.process.Log)
	return err == nil && strings.Contains(string(content), "Starting workers")
}

// leader returns the leader, or the first replica if there is none.
func (w *walk) leader() *replica {
	for _, r := range w.replicas {
		if r.leads() && r.pausedAt.IsZero() {
			return r
		}
	}
	return w.replicas[0]
}

// updateReplicas starts the replicas that are due to run, and ends pauses that are over.
func (w *walk) updateReplicas() {
	w.Helper()
	w.recordDisturbance()
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

// recordDisturbance records in the log that a replica or its connection is disturbed.
func (w *walk) recordDisturbance() {
	for _, r := range w.replicas {
		if !r.runs() || !r.pausedAt.IsZero() || w.at < w.stormUntil {
			w.log.Disturbed(time.Now())
		}
		w.log.Disturbed(r.proxy.LastHang())
	}
}

// pause suspends a replica during its work.
func (w *walk) pause(r *replica, steps int) {
	w.Helper()
	if r.runs() && r.pausedAt.IsZero() {
		w.Must(r.process.Signal(syscall.SIGSTOP))
		r.pausedAt, r.pausedUntil = time.Now(), w.at+steps
		w.history.Paused(r.pausedAt)
	}
}

// unpause resumes a paused replica, so that it can shut down gracefully.
func (w *walk) unpause(r *replica) {
	w.Helper()
	if !r.pausedAt.IsZero() {
		w.history.Paused(time.Now())
		w.Must(r.process.Signal(syscall.SIGCONT))
		r.pausedAt = time.Time{}
	}
}

// noPanics fails if a process has panicked since the last call, even if a new process continued its work.
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
		r.read = max(0, len(r.logs)-1) // the last line may be incomplete
	}
}
