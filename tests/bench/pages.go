package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// viewers look at the pages at once.
	viewers = 50
	// maxFirstByte is in milliseconds, maxPage in KiB, and maxViewers in MiB of memory.
	maxFirstByte, maxPage, maxViewers = 150, 300, 30
	// maxDelay is how much later the last target may be with viewers than without, as a ratio.
	maxDelay = 1.25
)

var pages = scenario{
	name: "ui", title: "Pages", run: runPages,
	about: `
The controller serves pages with --ui-addr and --ui-anonymous. There are a thousand Gates with ten periods each beside one that governs a tenth of the
usual targets. "First byte" is from a request for the first page to the first byte of its answer, in a connection that is open: after a
Gate has changed, and of the same page once more, with nobody else there. The size is that of the page as it is sent, compressed.

Then 50 viewers have a page that is live: each loads it again when it is told of a change, as the script of the page does, and once a second
besides. The Gate closes and opens as scheduled without viewers and with them, in turn: how long after the instant the first and the last
target were held or released is what may not differ. Memory is that of the process right after the Gate has closed and opened: the first time
without viewers, and the most of all times with them.`,
}

func runPages(ctx context.Context, b *bench) (*result, error) {
	targets, err := b.targets(ctx, "ui", 1, b.many()/10)
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf("ui", 0), Name: "production"}}, targets: targets, brisk: true}
	if err := b.newGate(ctx, f.gates[0], v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: v1alpha1.AnyName}}}); err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.startController(ctx, "--ui-addr="+address, "--ui-anonymous"); err != nil {
		return nil, err
	}
	others, err := b.busyGates(ctx)
	if err != nil {
		return nil, err
	}
	r, url := &result{}, "http://"+address+"/"
	if err := b.firstBytes(ctx, r, url, others); err != nil {
		return nil, err
	}
	if err := b.viewed(ctx, r, url, f); err != nil {
		return nil, err
	}
	for _, closed := range []bool{true, false} {
		if _, err := b.transition(ctx, f, closed); err != nil {
			return nil, err
		}
		if err := b.verify(ctx, f, closed); err != nil {
			return nil, err
		}
	}
	if err := b.removeGates(ctx, append(others, f.gates...)); err != nil {
		return nil, err
	}
	return r, b.stopController()
}

// busyGates makes Gates with ten periods each.
func (b *bench) busyGates(ctx context.Context) (gates []client.ObjectKey, err error) {
	n := 1000
	if b.quick {
		n = 20
	}
	for i := range n {
		gates = append(gates, client.ObjectKey{Namespace: namespaceOf("ui", 0), Name: fmt.Sprintf("busy-%04d", i)})
	}
	clock := func(hour int) *string { text := fmt.Sprintf("%02d:00", hour); return &text }
	spec := v1alpha1.GateSpec{}
	for i := range 7 {
		spec.ClosePeriods = append(spec.ClosePeriods, v1alpha1.ClosePeriod{Period: v1alpha1.Period{
			Name: fmt.Sprintf("evening-%d", i), Start: clock(15 + i), End: clock(16 + i), DaysOfWeek: []v1alpha1.DayOfWeek{v1alpha1.DayOfWeek(time.Weekday(i).String())},
		}})
	}
	for i := range 3 {
		from, until := metav1.NewTime(time.Now().AddDate(0, 0, 3+9*i).Truncate(time.Second)), metav1.NewTime(time.Now().AddDate(0, 0, 5+9*i).Truncate(time.Second))
		spec.ClosePeriods = append(spec.ClosePeriods, v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: fmt.Sprintf("freeze-%d", i), From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}})
	}
	if err := inParallel(setUpAtOnce, gates, func(key client.ObjectKey) error { return b.newGate(ctx, key, *spec.DeepCopy()) }); err != nil {
		return nil, err
	}
	return gates, b.observer.every(ctx, gates, "decided", func(gate *v1alpha1.Gate) bool { return gate.Status.ObservedGeneration == gate.Generation })
}

// firstBytes measures how long the first page takes, with nobody else there.
func (b *bench) firstBytes(ctx context.Context, r *result, url string, gates []client.ObjectKey) error {
	changed, same := []float64{}, []float64{}
	size := 0
	for i := range 4 * b.repeat(10) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
		if err := b.client.Patch(ctx, gateNamed(gates[i%len(gates)]), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("bench")); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond) // until the controller has seen it
		for _, into := range []*[]float64{&changed, &same} {
			took, length, err := load(ctx, http.DefaultClient, url)
			if err != nil {
				return err
			}
			*into, size = append(*into, took.Seconds()*1000), length
		}
	}
	r.figure("First byte after a change, p50", quantile(changed, .5), "ms", fmt.Sprintf("of %d pages with %d gates", len(changed), len(gates)))
	r.figure("First byte after a change, p99", quantile(changed, .99), "ms", "the same")
	r.figure("First byte of the same page, p50", quantile(same, .5), "ms", "right after that")
	r.figure("Size of the page", float64(size)/1024, "KiB", "compressed")
	if p50 := quantile(changed, .5); p50 >= maxFirstByte {
		r.miss(false, "First byte after a change: %s ms, the limit is less than %d ms.", digits(p50), maxFirstByte)
	}
	if float64(size)/1024 >= maxPage {
		r.miss(false, "Size of the page: %s KiB, the limit is less than %d KiB.", digits(float64(size)/1024), maxPage)
	}
	return nil
}

// load loads a page, and returns how long its first byte took and how large it is.
func load(ctx context.Context, with *http.Client, url string) (first time.Duration, size int, err error) {
	begin := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Since(begin) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Accept-Encoding", "gzip") // so that nobody unpacks it here
	response, err := with.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return first, len(raw), err
}

// viewing is what was measured without viewers and with them.
type viewing struct {
	transitions map[bool]map[bool][]*transition
	// before is the memory after the first turn without viewers, during the most of all turns with them.
	before, during memory
	loaded         int
}

// viewed measures transitions and memory without viewers and with them, in turn.
func (b *bench) viewed(ctx context.Context, r *result, url string, f *fleet) (err error) {
	v := &viewing{transitions: map[bool]map[bool][]*transition{false: {}, true: {}}}
	for round := range b.repeat(8) {
		for _, watched := range []bool{false, true} {
			stop := func() (int, error) { return 0, nil }
			if watched {
				stop = look(ctx, url)
			}
			for _, closed := range []bool{true, false} {
				t, err := b.transition(ctx, f, closed)
				if err != nil {
					return err
				}
				v.transitions[watched][closed] = append(v.transitions[watched][closed], t)
			}
			used, err := b.useOfMemory(ctx)
			if err != nil {
				return err
			}
			if watched {
				v.during = memory{max(v.during.heap, used.heap), max(v.during.resident, used.resident)}
			} else if round == 0 {
				v.before = used
			}
			n, err := stop()
			if err != nil {
				return err
			}
			v.loaded += n
		}
	}
	v.report(r, len(f.targets))
	return nil
}

func (v *viewing) report(r *result, targets int) {
	t := table{title: fmt.Sprintf("From the instant to the targets, in seconds, of %d targets", targets), columns: []string{"viewers", "", "first p50", "first max", "last p50", "last max"}}
	for _, closed := range []bool{true, false} {
		var last [2]float64
		for i, watched := range []bool{false, true} {
			row := lagsOf(v.transitions[watched][closed])
			r.punctual(edgeName(closed), quantile(row.first, 0))
			last[i] = quantile(row.last, .5)
			t.row(i*viewers, edgeName(closed), quantile(row.first, .5), quantile(row.first, 1), last[i], quantile(row.last, 1))
		}
		ratio := last[1] / last[0]
		if r.figure("Last target with viewers to that without, "+edgeName(closed), ratio, "", "medians of the same run"); ratio > maxDelay {
			r.miss(false, "%s: the last target with viewers to that without %s, the limit is %s.", edgeName(closed), beyond(ratio, maxDelay), digits(maxDelay))
		}
	}
	r.tables = append(r.tables, t)
	grown := (v.during.heap - v.before.heap) / mebi
	r.figure("Pages that were loaded meanwhile", float64(v.loaded), "", "by all viewers together")
	r.figure("Heap that viewers add", grown, "MiB", fmt.Sprintf("%d of them; before, it is %s MiB", viewers, digits(v.before.heap/mebi)))
	r.figure("Resident memory that viewers add", (v.during.resident-v.before.resident)/mebi, "MiB", fmt.Sprintf("before, it is %s MiB", digits(v.before.resident/mebi)))
	if grown >= maxViewers {
		r.miss(false, "Heap that viewers add: %s MiB, the limit is less than %d MiB.", digits(grown), maxViewers)
	}
}

// look has viewers look at a page. They end with the returned function, which says how many pages they have loaded.
func look(ctx context.Context, url string) (stop func() (int, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var mu sync.Mutex
	loaded := 0
	var failed error
	for range viewers {
		running.Go(func() {
			n, err := view(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			loaded += n
			if ctx.Err() == nil {
				failed = errors.Join(failed, err)
			}
		})
	}
	return func() (int, error) {
		cancel()
		running.Wait()
		return loaded, failed
	}
}

// view looks at a page that is live.
func view(ctx context.Context, url string) (loaded int, err error) {
	browser := &http.Client{Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"changes", nil)
	if err != nil {
		return 0, err
	}
	changes, err := browser.Do(request) //nolint:bodyclose // it is closed below: the linter loses it in the goroutine
	if err != nil {
		return 0, err
	}
	defer changes.Body.Close() //nolint:errcheck // it is only read
	news := make(chan struct{}, 1)
	go func() {
		for lines := bufio.NewScanner(changes.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	}()
	for ctx.Err() == nil {
		if _, _, err := load(ctx, browser, url); err != nil {
			return loaded, err
		}
		loaded++
		select {
		case <-ctx.Done():
		case <-news:
		case <-time.After(time.Second):
		}
	}
	return loaded, nil
}
