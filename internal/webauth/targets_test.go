package webauth

import (
	"net/http"
	"testing"
	"testing/synctest"
)

func TestAPageWhoseGateHasNoTurnIsShownWithoutItsTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPages(t, nil, shopAndBank()...)
		if err := p.wall.looks.turn.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		p.answers("/gate/shop/g-shop", "token-of-ada", http.StatusOK, "others look at so many gates that the targets of this one cannot be read now", "m-g-shop", "!k-shop")
		p.wall.looks.turn.Release(1)
		p.answers("/gate/shop/g-shop?days=7", "token-of-ada", http.StatusOK, "k-shop")
	})
}
