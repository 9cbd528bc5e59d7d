package ui

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The test measures, so it is not parallel. The process that serves the clients is the one that opens Gates.
func TestThousandStalledReadersAreDisconnected(t *testing.T) {
	w := newWorld(t)
	clock := func(hour int) *string { text := fmt.Sprintf("%02d:00", hour); return &text }
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateClosed}
	for i := range 6 {
		spec.OpenPeriods = append(spec.OpenPeriods, v1alpha1.Period{Name: fmt.Sprintf("window-%d", i), Start: clock(4 * i), End: clock(4*i + 1)})
	}
	for i := range 60 {
		w.Gate(fmt.Sprintf("g-%02d", i), spec)
	}
	page := leading + "?days=31&namespace=" + w.Namespace
	w.Eventually("the page shows all gates", func() error { return w.tryReturns(page, "", 200, ">g-59<") })
	usual := w.opens("g-00", "g-01", "g-02")
	before := w.memory(gating, "VmRSS")
	var ends sync.WaitGroup
	var cut atomic.Int32
	for i := range 1000 {
		conn, err := narrow.DialContext(w.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(leading, "http://"), "/"))
		w.Must(err)
		w.Cleanup(func() { _ = conn.Close() })
		// Without compression, a page does not fit into the buffers. There are several hundred different pages.
		_, err = fmt.Fprintf(conn, "GET /?days=31&namespace=%s&from=%s HTTP/1.1\r\nHost: a\r\n\r\n", w.Namespace, time.Now().AddDate(0, 0, i%300).Format(time.DateOnly))
		w.Must(err)
		ends.Go(func() {
			time.Sleep(30 * time.Second) // longer than the time limit for sending a page
			_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
			if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
				cut.Add(1)
			}
		})
	}
	loaded := w.opens("g-03", "g-04", "g-05")
	t.Logf("a gate opens after %s, and after %s among slow readers", usual, loaded)
	if loaded > usual+3*time.Second {
		t.Errorf("a gate opens after %s, without slow readers after %s", loaded, usual)
	}
	ends.Wait()
	grown := w.memory(gating, "VmHWM") - before
	t.Logf("slow readers use at most %d MiB", grown>>20)
	if grown > 128<<20 {
		t.Errorf("slow readers use %d MiB", grown>>20)
	}
	if n := cut.Load(); n != 1000 {
		t.Errorf("%d of 1000 connections were answered or closed", n)
	}
	w.Eventually("pages are served", func() error { return w.tryReturns(page, "", 200, ">g-59<") })
}

// opens opens some Gates, and returns the longest time that one of them takes.
func (w *world) opens(names ...string) (longest time.Duration) {
	w.Helper()
	for _, name := range names {
		start := time.Now()
		w.requests(name, "1h", "now")
		w.Opened(name, metav1.ConditionTrue)
		longest = max(longest, time.Since(start))
	}
	return longest
}

// narrow dials connections with a small receive buffer.
var narrow = &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) }), err)
}}

// memory returns a field with the resident memory of a process, in bytes: VmRSS for the current value, VmHWM for the peak.
func (w *world) memory(p *harness.Process, field string) int {
	w.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID()))
	w.Must(err)
	_, rest, _ := strings.Cut(string(status), field+":")
	kib := 0
	_, err = fmt.Sscan(rest, &kib)
	w.Must(err)
	return kib << 10
}
