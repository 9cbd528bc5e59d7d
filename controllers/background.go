package controllers

import "context"

// maxBackground is how much may wait to be done in the background. Beyond that, it is done at once.
const maxBackground = 1024

// background does what nobody has to wait for, one thing after the other. The zero value does it at once.
type background struct {
	work chan func(context.Context)
}

func newBackground() *background {
	return &background{work: make(chan func(context.Context), maxBackground)}
}

func (b *background) do(ctx context.Context, work func(context.Context)) {
	select {
	case b.work <- work:
	default:
		work(ctx)
	}
}

// Start implements manager.Runnable.
func (b *background) Start(ctx context.Context) error {
	for {
		select {
		case work := <-b.work:
			work(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}
