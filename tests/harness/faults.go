package harness

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// FaultProxy is a proxy between one client and the API server. It injects faults at random: wrong, late and missing responses. It has the
// credentials, so that the API server authenticates the user of the client.
type FaultProxy struct {
	// Kubeconfig is the path of the kubeconfig for the client.
	Kubeconfig string

	server *http.Server
	proxy  *httputil.ReverseProxy

	mu     sync.Mutex
	random *rand.Rand
	rate   float64
	cut    bool
	// held is the delay of writes.
	held time.Duration
	// refused is the resource whose writes are refused, empty for none.
	refused string
	// onWrite is called before and after each write, nil for none.
	onWrite func(path string, made bool) bool
	// hanging counts the hanging requests. lastHang is when the last one ended.
	hanging  int
	lastHang time.Time
	counts   map[string]int
	// watches are the open watches.
	watches map[*http.Request]context.CancelFunc
}

// StartFaultProxy starts a proxy for a user. It injects no faults before SetRate.
func (c *ControlPlane) StartFaultProxy(ctx context.Context, name string, seed uint64, user string, groups ...string) (*FaultProxy, error) {
	kubeconfig, err := c.KubeconfigFor(user, groups...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &FaultProxy{
		counts: map[string]int{}, watches: map[*http.Request]context.CancelFunc{},
		random: rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // dice that can be thrown again
	}
	p.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(discard{}, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		ModifyResponse: func(r *http.Response) error {
			if loses(r.Request.Context()) || r.Request.Method != http.MethodGet && !p.lets(r.Request.URL.Path, true) {
				return errLost
			}
			return nil
		},
		// If the API server does not respond, the client must not get a response from the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: readyTimeout, ErrorLog: log.New(discard{}, "", 0)}
	go func() { _ = p.server.Serve(listener) }()
	p.Kubeconfig, err = c.writeKubeconfig(name+".kubeconfig", &rest.Config{Host: "http://" + listener.Addr().String()})
	return p, err
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

var errLost = errors.New("the answer is lost")

type losesKey struct{}

func loses(ctx context.Context) bool { return ctx.Value(losesKey{}) != nil }

// SetRate sets the fraction of requests with a fault, from 0 to 1.
func (p *FaultProxy) SetRate(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// Cut breaks all requests until it is called with false.
func (p *FaultProxy) Cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// HoldWrites delays every write, to open a window for conflicting writers. Zero disables the delay.
func (p *FaultProxy) HoldWrites(length time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = length
}

// RefuseWrites fails all writes of a resource, as an unavailable admission webhook does. An empty resource disables that.
func (p *FaultProxy) RefuseWrites(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = resource
}

// OnWrite calls lets with the path of each write: before the write is forwarded, and after the API server has responded. If lets returns
// false, the write is dropped, or its response is lost. Nil disables that.
func (p *FaultProxy) OnWrite(lets func(path string, made bool) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onWrite = lets
}

func (p *FaultProxy) lets(path string, made bool) bool {
	p.mu.Lock()
	lets := p.onWrite
	p.mu.Unlock()
	return lets == nil || lets(path, made)
}

func (p *FaultProxy) refuses(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused != "" && strings.Contains(r.URL.Path+"/", "/"+p.refused+"/")
}

func (p *FaultProxy) holdsWrites() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// CutWatches ends all open watches. Until the client watches again, it misses all changes.
func (p *FaultProxy) CutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.watches {
		cancel()
		p.counts["watch-cut"]++
	}
}

// watch returns the context of a watch, and a function to call at its end. The context ends after length, or after a day if length is zero.
func (p *FaultProxy) watch(r *http.Request, length time.Duration) (context.Context, func()) {
	if length == 0 {
		length = 24 * time.Hour
	}
	ctx, cancel := context.WithTimeout(r.Context(), length)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[r] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, r)
	}
}

// hangs counts a hanging request until the returned function is called.
func (p *FaultProxy) hangs() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hanging--
		p.lastHang = time.Now()
	}
}

// LastHang returns when the last hanging request ended: now if one is hanging, zero if none ever hung.
func (p *FaultProxy) LastHang() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hanging > 0 {
		return time.Now()
	}
	return p.lastHang
}

// Counts returns the number of injected faults by kind.
func (p *FaultProxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[string]int{}
	for fault, n := range p.counts {
		counts[fault] = n
	}
	return counts
}

// Stop stops the proxy and closes all connections.
func (p *FaultProxy) Stop() error { return p.server.Close() }

// faults are the kinds of faults. Those that affect only writes come first.
var faults = []string{"conflict", "answer-lost", "answer-late", "too-many", "internal", "unavailable", "timeout", "no-answer", "broken"}

// writeFaults is the number of faults that affect only writes.
const writeFaults = 3

// One in oneHangs requests without a response hangs for longer than clients wait.
const (
	oneHangs     = 4
	shortestHang = 3 * time.Second
	longestHang  = 15 * time.Second
)

// throw selects the fault of a request at random, empty for none, and its duration.
func (p *FaultProxy) throw(watch, write bool) (string, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dice, sort, length := p.random.Float64(), p.random.IntN(len(faults)), time.Duration(50+p.random.IntN(1500))*time.Millisecond
	fault := ""
	switch {
	case p.cut:
		return "broken", 0
	case dice < p.rate && write:
		fault = faults[sort]
	case dice < p.rate:
		fault = faults[writeFaults+sort%(len(faults)-writeFaults)]
	case watch && dice < 3*p.rate:
		fault = "watch-cut"
	}
	if fault == "no-answer" && p.random.IntN(oneHangs) == 0 {
		fault, length = "hang", shortestHang+time.Duration(p.random.Int64N(int64(longestHang-shortestHang)))
	}
	if fault != "" {
		p.counts[fault]++
	}
	return fault, length
}

// ServeHTTP implements http.Handler.
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watch, write := r.URL.Query().Get("watch") != "", r.Method != http.MethodGet
	fault, length := p.throw(watch, write)
	ctx := r.Context()
	if write && fault == "" && p.refuses(r) {
		fault = "internal"
	}
	switch fault {
	case "conflict":
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	case "too-many":
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		return
	case "internal":
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		return
	case "unavailable":
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	case "timeout":
		refuse(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
		return
	case "hang":
		defer p.hangs()()
		wait(ctx, length)
		panic(http.ErrAbortHandler)
	case "no-answer":
		wait(ctx, length)
		panic(http.ErrAbortHandler)
	case "broken":
		panic(http.ErrAbortHandler)
	case "answer-lost", "answer-late":
		ctx = context.WithValue(ctx, losesKey{}, true)
	case "":
		length = 0
	}
	if write {
		wait(ctx, p.holdsWrites())
		if !p.lets(r.URL.Path, false) {
			panic(http.ErrAbortHandler)
		}
	}
	if watch {
		var end func()
		ctx, end = p.watch(r, length)
		defer end()
	}
	defer func() {
		if fault == "answer-late" {
			wait(r.Context(), length)
		}
	}()
	p.proxy.ServeHTTP(w, r.WithContext(ctx))
}

func wait(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// refuse responds with an error in the format of the API server.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "chaos: " + strings.ToLower(http.StatusText(code)),
	})
	if err != nil {
		panic(err) // a struct of strings always marshals
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
