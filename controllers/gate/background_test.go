package gate

import (
	"context"
	"errors"
	"testing"
)

// The status counts an announcement as made when it is queued.
func TestQueuedWorkIsDoneBeforeShutdown(t *testing.T) {
	t.Parallel()
	b := NewBackground()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var done []string
	work := func(name string) func(context.Context) {
		return func(ctx context.Context) {
			if ctx.Err() != nil {
				name += " with a canceled context"
			}
			done = append(done, name)
		}
	}
	b.do(ctx, work("queued"))
	b.do(ctx, work("queued later"))
	if err := b.Start(ctx); err != nil || len(done) != 2 {
		t.Errorf("done %q, %v; want both", done, err)
	}
	b.do(ctx, work("after shutdown"))
	if want := []string{"queued", "queued later", "after shutdown"}; len(done) != 3 || done[2] != want[2] || done[0] != want[0] {
		t.Errorf("done %q, want %q", done, want)
	}
}

func TestWorkBeyondQueueRunsImmediately(t *testing.T) {
	t.Parallel()
	b, err := NewBackground(), errors.New("not done")
	for range maxBackground {
		b.do(t.Context(), func(context.Context) { t.Error("queued work was done without Start") })
	}
	b.do(t.Context(), func(context.Context) { err = nil })
	if err != nil {
		t.Error(err)
	}
}
