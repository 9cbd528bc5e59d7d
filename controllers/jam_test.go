package controllers_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// jam blocks requests. Each request reports its arrival, and continues once the jam is over.
type jam struct {
	arrived, over chan struct{}
	end           func()
}

func newJam() jam {
	j := jam{arrived: make(chan struct{}, 1000), over: make(chan struct{})}
	j.end = sync.OnceFunc(func() { close(j.over) })
	return j
}

func (j jam) wait(ctx context.Context) {
	j.arrived <- struct{}{}
	select {
	case <-j.over:
	case <-ctx.Done():
	}
}

// on returns a configuration for clients whose requests are blocked if stuck returns true.
func (j jam) on(config *rest.Config, stuck func(*http.Request) bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return jammed{rt, j, stuck} })
	return config
}

type jammed struct {
	http.RoundTripper
	jam
	stuck func(*http.Request) bool
}

func (j jammed) RoundTrip(r *http.Request) (*http.Response, error) {
	if j.stuck(r) {
		j.wait(r.Context())
	}
	return j.RoundTripper.RoundTrip(r)
}

// goesOn calls run, which must not wait for blocked requests. It fails the test if run does not return in time.
func goesOn(t testing.TB, what string, run func()) {
	t.Helper()
	finished := false
	awaitEnd(t, what, beside(t, func() {
		run()
		finished = true
	}))
	if !finished {
		t.FailNow() // run has failed the test
	}
}

// beside calls run in the background, and returns a channel that is closed when run returns. The test does not end before that, because a
// later failure of run would be a panic. A test that fails ends the jam.
func beside(t testing.TB, run func()) <-chan struct{} {
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		run()
	}()
	return done
}

func awaitEnd(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s waits for what is stuck", what)
	}
}
