package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	startOfProcess = "process_start_time_seconds"
	gateTargets    = "gating_gate_targets"
)

var startup = scenario{
	name: "startup", title: "Start-up", run: runStartup,
	about: `
The controller is stopped while everything is held, and started again. "Ready" is from the start of the process until it
answers /readyz with 200, which is asked for each 50 ms; it has read nothing by then. Linux counts the start of a process in hundredths
of a second. "Verified" is until the metric gating_gate_targets of all Gates says that they have
looked at all targets and that all are held. The cost of a restart is what the API server counts as written from before the start
until all is quiet.`,
}

func runStartup(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	many, err := b.closedFleet(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.restarts(ctx, r, fmt.Sprintf("%d gates", len(many.gates)), many); err != nil {
		return nil, err
	}
	if err := b.release(ctx, many); err != nil {
		return nil, err
	}
	b.closed = nil
	one, err := b.oneGate(ctx, b.many())
	if err != nil {
		return nil, err
	}
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	if _, err := b.transition(ctx, one, true); err != nil {
		return nil, err
	}
	if err := b.stopController(); err != nil {
		return nil, err
	}
	if err := b.restarts(ctx, r, "One gate", one); err != nil {
		return nil, err
	}
	return r, b.release(ctx, one)
}

// release opens a closed fleet and removes its Gates.
func (b *bench) release(ctx context.Context, f *fleet) error {
	if err := b.startController(ctx); err != nil {
		return err
	}
	if _, err := b.transition(ctx, f, false); err != nil {
		return err
	}
	return errors.Join(b.removeGates(ctx, f.gates), b.stopController())
}

func (b *bench) restarts(ctx context.Context, r *result, name string, f *fleet) error {
	var ready, verified []float64
	writes := calls{}
	for range b.repeat(3) {
		before, err := b.requests(ctx)
		if err != nil {
			return err
		}
		if err := b.startController(ctx); err != nil {
			return err
		}
		verifiedAt, err := b.verified(ctx, len(f.targets))
		if err != nil {
			return err
		}
		start, err := b.gating.started(ctx)
		if err != nil {
			return err
		}
		readyAt := b.gating.ready
		after, err := b.quiet(ctx)
		if err != nil {
			return err
		}
		for call, n := range after.since(before).writes() {
			writes[call] += n
		}
		ready, verified = append(ready, readyAt.Sub(start).Seconds()), append(verified, verifiedAt.Sub(start).Seconds())
		b.say("%s: ready %.2fs, verified %.2fs, written so far: %s", name, readyAt.Sub(start).Seconds(), verifiedAt.Sub(start).Seconds(), writes)
		if err := b.stopController(); err != nil {
			return err
		}
	}
	r.figure(name+": ready", median(ready), "s", fmt.Sprintf("%d starts, up to 60 ms too long", len(ready)))
	r.figure(name+": verified", median(verified), "s", fmt.Sprintf("%d targets", len(f.targets)))
	r.figure(name+": writes", writes.total(), "", fmt.Sprintf("of all %d starts: %s", len(ready), writes))
	r.unwritten(fmt.Sprintf("%s, %d starts", name, len(ready)), writes)
	return nil
}

// started returns when the process was started, to a hundredth of a second.
func (c *controller) started(ctx context.Context) (time.Time, error) {
	measured, err := c.measures(ctx, startOfProcess)
	if err != nil {
		return time.Time{}, err
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	cut, err := cutFromBoot(string(stat), string(uptime), time.Now())
	if err != nil {
		return time.Time{}, err
	}
	start := time.UnixMicro(int64(measured[startOfProcess] * 1e6)).Add(cut)
	if start.Before(c.asked.Add(-2*cpuTick)) || start.After(c.ready) {
		return start, fmt.Errorf("the process was started at %s, it says: asked for at %s, ready at %s", start, c.asked, c.ready)
	}
	return start, nil
}

// cutFromBoot returns what the time of the boot lacks in /proc/stat, which has whole
// seconds. The start of a process in its metrics is counted from there.
func cutFromBoot(stat, uptime string, now time.Time) (time.Duration, error) {
	_, boot, _ := strings.Cut("\n"+stat, "\nbtime ")
	boot, _, _ = strings.Cut(boot, "\n")
	whole, err := strconv.ParseInt(boot, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the boot in /proc/stat: %w", err)
	}
	up, _, _ := strings.Cut(uptime, " ")
	since, err := strconv.ParseFloat(up, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	return now.Add(-seconds(since)).Sub(time.Unix(whole, 0)), nil
}

// verified waits until the controller says of some targets that it holds them.
func (b *bench) verified(ctx context.Context, n int) (time.Time, error) {
	deadline := time.Now().Add(patience)
	for {
		families, err := b.gating.families(ctx, gateTargets)
		if err != nil {
			return time.Time{}, err
		}
		held := 0.0
		for _, metric := range families[gateTargets].GetMetric() {
			if labelsOf(metric)["result"] == "held" {
				held += metric.GetGauge().GetValue()
			}
		}
		now := time.Now()
		if held == float64(n) {
			return now, nil
		}
		if now.After(deadline) {
			return now, fmt.Errorf("%s of %d targets are verified after %s", digits(held), n, patience)
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
