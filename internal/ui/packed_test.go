package ui

import "testing"

func TestOnlySoManyLargePagesAreSentAtOnceAndReadersOfTheSameShareIt(t *testing.T) {
	t.Parallel()
	h := &handler{}
	large := func() *packed { return &packed{body: make([]byte, small+1)} }
	first := large()
	if !h.lend(first) {
		t.Fatal("the first page is not sent")
	}
	for i := range maxSending - 1 {
		if !h.lend(large()) {
			t.Fatalf("page %d is not sent", i+2)
		}
	}
	if h.lend(large()) {
		t.Error("one page too many is sent")
	}
	for range 1000 {
		if !h.lend(first) || !h.lend(&packed{body: make([]byte, small)}) {
			t.Fatal("a page that takes no more memory is not sent")
		}
	}
	for range 1001 {
		h.back(first)
	}
	if h.lent != maxSending-1 || !h.lend(large()) {
		t.Errorf("%d pages are sent, and there is no room for another one", h.lent)
	}
}
