package ui

import (
	"fmt"
	"testing"
)

func TestWhatIsAskedForStaysAndTheRestGoes(t *testing.T) {
	t.Parallel()
	k := newKeeper[int](1000)
	k.put("asked", 1, 10)
	for i := range 1000 {
		k.put(fmt.Sprintf("key-%04d", i), i, 12)
		if value, ok := k.get("asked"); !ok || value != 1 {
			t.Fatalf("what is asked for is gone after %d others: %d", i, value)
		}
		if n := len(k.young) + len(k.old); n > 60 || k.size > 500 {
			t.Fatalf("%d are kept, the young ones have %d bytes", n, k.size)
		}
	}
	if _, ok := k.get("key-0000"); ok {
		t.Error("the first one is kept")
	}
	for range 3 {
		if k.put("large", 1, 501); k.young["large"].value == 1 {
			t.Error("what is larger than half of all is kept")
		}
	}
	if _, ok := k.get("asked"); !ok {
		t.Error("what is too large pushes out the others")
	}
}

func TestOnePutTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	k := newKeeper[string](1000)
	for range 100 {
		k.put("key", "value", 97)
	}
	if value, ok := k.get("key"); !ok || value != "value" || k.size != 100 || len(k.old) > 0 {
		t.Errorf("%q, %d bytes, %d old ones", value, k.size, len(k.old))
	}
}
