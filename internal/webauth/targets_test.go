package webauth

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const noTurn = "the targets cannot be read now, because the targets of many other gates are being read"

func TestPageWithoutSlotOmitsTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPages(t, nil, shopAndBank()...)
		end, err := p.viewers.snapshots.limiter.Begin(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		p.answers("/gate/shop/g-shop", "token-of-ada", http.StatusOK, noTurn, "m-g-shop", "!k-shop")
		end(0)
		p.answers("/gate/shop/g-shop?days=7", "token-of-ada", http.StatusOK, "k-shop")
	})
}

func TestTargetsAreReadOnceForAllViewers(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	p.answers("/gate/shop/g-shop", "token-of-ada", 200, "k-shop")
	later, source := held("shop", "later", "g-shop")
	for _, obj := range []client.Object{later, source} {
		if err := p.objects.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	p.answers("/gate/shop/g-shop", "token-of-ben", 200, "k-shop", "!>Kustomization shop/later<")
	p.clock.SetTime(testNow.Add(snapshotAge + 1))
	p.answers("/gate/shop/g-shop", "token-of-ben", 200, "k-shop", "Kustomization shop/later")
	p.server.change(func() { p.server.allowed["ben"] = []string{"* gates shop *"} })
	p.clock.SetTime(testNow.Add(2 * reviewAge))
	p.answers("/gate/shop/g-shop", "token-of-ben", 200, "!k-shop", "you may not list kustomizations.kustomize.toolkit.fluxcd.io", "exceptions do not count here")
}

func TestReaderOfManyTargetsLeavesTimeToOthers(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	ada, err := p.viewers.Reviews.Identify(t.Context(), "token-of-ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.viewers.snapshots.get(t.Context(), "other", ada.name(), func(context.Context, *snapshot) error {
		p.clock.SetTime(testNow.Add(readBurst))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.answers("/gate/shop/g-shop", "token-of-ada", http.StatusOK, noTurn, "!k-shop")
	p.answers("/gate/shop/g-shop", "token-of-ben", http.StatusOK, "k-shop")
}

func TestSlowSnapshotIsKeptLonger(t *testing.T) {
	p := newPages(t, nil)
	read := func(took time.Duration, want int) {
		t.Helper()
		reads := 0
		for range 2 {
			if _, err := p.viewers.snapshots.get(t.Context(), "gate", "", func(context.Context, *snapshot) error {
				reads++
				p.clock.SetTime(p.clock.Now().Add(took))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if reads != want {
			t.Errorf("targets were read %d times, want %d", reads, want)
		}
	}
	read(time.Second, 1)
	p.clock.SetTime(p.clock.Now().Add(agePerCost * time.Second))
	read(time.Second, 0)
	p.clock.SetTime(p.clock.Now().Add(1))
	read(0, 1)
	for i := range maxSnapshots {
		if _, err := p.viewers.snapshots.get(t.Context(), types.UID(fmt.Sprint(i)), "", func(context.Context, *snapshot) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	read(0, 1) // snapshots of other Gates have evicted it
}
