package bench

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
	// cpuTick is the resolution of the start time of a process.
	cpuTick = 10 * time.Millisecond
)

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

// restart is one start of the controller.
type restart struct {
	// ready and verified are the times from the start of the process until it is ready, and until it has observed that all targets are
	// held.
	ready, verified time.Duration
	// peak is the largest resident memory of the process so far, in bytes.
	peak   float64
	writes calls
}

// restart starts the controller of a closed fleet, and stops it once there are no more writes.
func (b *bench) restart(ctx context.Context, f *fleet) (r restart, err error) {
	before, err := b.requests(ctx)
	if err != nil {
		return r, err
	}
	if err := b.startController(ctx); err != nil {
		return r, err
	}
	verified, err := b.verified(ctx, len(f.targets))
	if err != nil {
		return r, err
	}
	start, err := b.gating.started(ctx)
	if err != nil {
		return r, err
	}
	after, err := b.quiet(ctx)
	if err != nil {
		return r, err
	}
	r.ready, r.verified, r.writes = b.gating.ready.Sub(start), verified.Sub(start), after.since(before).writes()
	if r.peak, err = b.gating.peak(); err != nil {
		return r, err
	}
	return r, b.stopController()
}

// peak returns the largest resident memory of the process so far, in bytes.
func (c *controller) peak() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.ID()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value, err := strconv.ParseFloat(kib, 64)
	return value * 1024, err
}

// started returns the start time of the process, to a hundredth of a second.
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
	if start.Before(c.requested.Add(-2*cpuTick)) || start.After(c.ready) {
		return start, fmt.Errorf("the process reports the start time %s, but it was requested at %s and ready at %s", start, c.requested, c.ready)
	}
	return start, nil
}

// cutFromBoot returns the fraction of a second that is cut from the boot time in /proc/stat. The start time in the metrics of a process is
// counted from there.
func cutFromBoot(stat, uptime string, now time.Time) (time.Duration, error) {
	_, boot, _ := strings.Cut("\n"+stat, "\nbtime ")
	boot, _, _ = strings.Cut(boot, "\n")
	whole, err := strconv.ParseInt(boot, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("boot time in /proc/stat: %w", err)
	}
	up, _, _ := strings.Cut(uptime, " ")
	since, err := strconv.ParseFloat(up, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	return now.Add(-seconds(since)).Sub(time.Unix(whole, 0)), nil
}

// verified waits until the controller reports that it holds some targets.
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
