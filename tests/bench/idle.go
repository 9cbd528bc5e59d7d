package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// idleInterval is the resync interval of the measurement, the shortest that the API accepts.
	idleInterval = 10 * time.Second
	// idleRounds is the number of measured reconciliations per Gate.
	idleRounds = 12
	// reconciliations is the metric with the number of reconciliations of all controllers.
	reconciliations = "controller_runtime_reconcile_total"
)

// closedFleet returns many closed Gates. The controller is stopped.
func (b *bench) closedFleet(ctx context.Context) (*fleet, error) {
	if b.closed != nil {
		return b.closed, nil
	}
	f, err := b.manyGates(ctx, *targets/targetsOfEach)
	if err != nil {
		return nil, err
	}
	f.cron = false
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	if _, err := b.transition(ctx, f, true); err != nil {
		return nil, err
	}
	b.closed = f
	return f, b.stopController()
}

// period is the measurement of a time without changes.
type period struct {
	usage
	took time.Duration
}

// rest sets the interval of all Gates and then changes nothing, for a number of reconciliations and a minimum time. It rarely scrapes the
// controller, because with a thousand Gates the metrics cost more than the Gates.
func (b *bench) rest(ctx context.Context, f *fleet, closed bool, interval time.Duration, reconciles float64) (period, error) {
	const shortest = 10 * time.Second
	raw := client.RawPatch(types.MergePatchType, mustMarshal(map[string]any{"spec": map[string]any{"interval": interval.String()}}))
	var generations sync.Map
	if err := inParallel(setUpAtOnce, f.gates, func(key client.ObjectKey) error {
		gate := gateNamed(key)
		err := b.client.Patch(ctx, gate, raw)
		generations.Store(key, gate.Generation)
		return err
	}); err != nil {
		return period{}, err
	}
	// The objects of the watch may be older than the patch, when everything was settled as well.
	if err := b.observer.every(ctx, f.gates, "settled", func(gate *v1alpha1.Gate) bool {
		generation, _ := generations.Load(client.ObjectKeyFromObject(gate))
		return generation == gate.Generation && settled(gate, closed)
	}); err != nil {
		return period{}, err
	}
	if _, err := b.quiet(ctx); err != nil {
		return period{}, err
	}
	// Otherwise, a reconciliation every two minutes would be in one of the periods only.
	if _, err := b.useOfMemory(ctx); err != nil {
		return period{}, err
	}
	begin := time.Now()
	before, err := b.usage(ctx)
	if err != nil {
		return period{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return period{}, ctx.Err()
		case <-time.After(shortest):
		}
		after, err := b.usage(ctx)
		if err != nil {
			return period{}, err
		}
		p := period{after.since(before), time.Since(begin)}
		if p.reconciles >= reconciles {
			return p, nil
		}
		if p.took > patience {
			return period{}, fmt.Errorf("only %s reconciliations in %s", digits(p.reconciles), patience)
		}
	}
}

const mebi = 1 << 20

// memory is the current and the largest memory of the controller.
type memory struct{ heap, resident, peak float64 }

// useOfMemory measures the heap after garbage collection, and all memory of the process.
func (b *bench) useOfMemory(ctx context.Context) (memory, error) {
	m := memory{}
	raw, err := download(ctx, http.DefaultClient, b.gating.metrics+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return m, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); ok {
			if m.heap, err = strconv.ParseFloat(value, 64); err != nil {
				return m, err
			}
		}
	}
	const resident = "process_resident_memory_bytes"
	measured, err := b.gating.measures(ctx, resident)
	if m.resident = measured[resident]; err == nil {
		m.peak, err = b.gating.peak()
	}
	if err == nil && (m.heap == 0 || m.resident == 0) {
		err = fmt.Errorf("the metrics of the controller do not contain its memory")
	}
	return m, err
}
