package slots_test

import (
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/slots"
)

// call gives the next ones their turn. All may have it.
func call(turns *slots.Slots[string, string], queue string, n int) []string {
	called, _ := turns.Call(queue, n, "", slots.Eligible[string]{All: true})
	return called
}

func TestCallersAreSerialized(t *testing.T) {
	var turns slots.Slots[string, string]
	ask := func(name string) bool { return turns.Wait("gate", name, slots.Item{Namespace: "shop", Name: name}) }
	for _, name := range []string{"c", "a", "b"} {
		if ask(name) {
			t.Errorf("it is the turn of %s", name)
		}
	}
	if got := call(&turns, "gate", 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("called are %v", got)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := ask(name); got != want {
			t.Errorf("the turn of %s: %t", name, got)
		}
	}
	turns.Leave("gate", "a", true)
	turns.Leave("gate", "b", false)
	if waiting, released := turns.Counts("gate"); waiting != 1 || released != 1 {
		t.Errorf("%d wait, %d were released", waiting, released)
	}
	turns.Recorded("gate", 1)
	if waiting, released := turns.Counts("gate"); waiting != 1 || released != 0 {
		t.Errorf("noted: %d wait, %d were released", waiting, released)
	}
	if ask("a") {
		t.Error("who was released has to ask again")
	}
	if got := call(&turns, "another", 2); len(got) > 0 {
		t.Errorf("another queue has %v", got)
	}
	turns.Forget("gate")
	if waiting, released := turns.Counts("gate"); waiting != 0 || released != 0 || ask("b") {
		t.Errorf("closed, but %d wait, %d were released", waiting, released)
	}
}

func TestRecalledKeyWaitsAgain(t *testing.T) {
	var turns slots.Slots[string, string]
	turns.Wait("gate", "a", slots.Item{Name: "a"})
	turns.Wait("gate", "b", slots.Item{Name: "b"})
	turns.Recall("gate", append(call(&turns, "gate", 1), "unknown"))
	if waiting, _ := turns.Counts("gate"); waiting != 2 || turns.Wait("gate", "a", slots.Item{Name: "a"}) {
		t.Errorf("%d wait", waiting)
	}
	if got := call(&turns, "gate", 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("called are %v", got)
	}
}

func TestKeyWithoutSlotIsNotCounted(t *testing.T) {
	var turns slots.Slots[string, string]
	turns.Leave("gate", "a", true)
	turns.Wait("gate", "a", slots.Item{})
	turns.Leave("gate", "a", true)
	if waiting, released := turns.Counts("gate"); waiting != 0 || released != 0 {
		t.Errorf("%d wait, %d were released", waiting, released)
	}
}

func TestEvictedKeyDoesNotWait(t *testing.T) {
	var turns slots.Slots[string, string]
	for _, queue := range []string{"one", "two"} {
		turns.Wait(queue, "a", slots.Item{Name: "a"})
		turns.Wait(queue, "b", slots.Item{Name: "b"})
	}
	call(&turns, "one", 1)
	turns.Evict("a")
	for _, queue := range []string{"one", "two"} {
		if waiting, released := turns.Counts(queue); waiting != 1 || released != 0 {
			t.Errorf("in queue %s %d wait, %d were released", queue, waiting, released)
		}
	}
	if turns.Wait("one", "a", slots.Item{Name: "a"}) {
		t.Error("another one of its name has its turn")
	}
}

func TestOnlyPermittedKeysGetSlots(t *testing.T) {
	var turns slots.Slots[string, string]
	for _, name := range []string{"a", "b", "c", "d"} {
		turns.Wait("gate", name, slots.Item{Name: name})
	}
	may := slots.Eligible[string]{Some: map[string]bool{"a": true, "c": true, "d": true}}
	called, left := turns.Call("gate", 2, "", may)
	if !slices.Equal(called, []string{"a", "c"}) || left != 1 {
		t.Errorf("called are %v, and %d may be next", called, left)
	}
	called, left = turns.Call("gate", 2, "", may)
	if !slices.Equal(called, []string{"d"}) || left != 0 {
		t.Errorf("called are %v, and %d may be next", called, left)
	}
	if called, left = turns.Call("gate", 2, "", slots.Eligible[string]{}); len(called) > 0 || left != 0 {
		t.Errorf("called are %v, and %d may be next", called, left)
	}
}

func TestSlotIsTakenWithWrite(t *testing.T) {
	var turns slots.Slots[string, string]
	looks := func(queues ...string) (has []bool) {
		for _, queue := range queues {
			has = append(has, turns.HasSlot(queue, "a"))
		}
		return has
	}
	if turns.HasSlot("one", "a") || turns.Take("a", "one") || !turns.Take("a") {
		t.Error("a slot in a queue that does not exist")
	}
	for _, queue := range []string{"one", "two"} {
		turns.Wait(queue, "a", slots.Item{Name: "a"})
	}
	call(&turns, "one", 1)
	if got := looks("one", "two"); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("slots: %v", got)
	}
	if waiting, _ := turns.Counts("one"); waiting != 1 {
		t.Errorf("%d wait", waiting)
	}
	if turns.Take("a", "one", "two") {
		t.Error("took a slot that is not there")
	}
	turns.Recall("one", []string{"a"})
	turns.Leave("one", "a", true) // it was not taken
	if waiting, released := turns.Counts("one"); waiting != 0 || released != 0 {
		t.Errorf("%d wait, %d were released", waiting, released)
	}

	call(&turns, "two", 1)
	if !turns.Take("a", "two") || !turns.HasSlot("two", "a") {
		t.Error("the slot is gone before the write")
	}
	turns.Recall("two", []string{"a"})
	if turns.Take("a", "two") {
		t.Error("took a slot that was recalled")
	}
	turns.Leave("two", "a", true)
	if waiting, released := turns.Counts("two"); waiting != 0 || released != 1 {
		t.Errorf("%d wait, %d were released", waiting, released)
	}
	turns.Wait("two", "a", slots.Item{Name: "a"})
	turns.Leave("two", "a", true)
	if _, released := turns.Counts("two"); released != 1 {
		t.Errorf("%d were released, one of them without a slot", released)
	}
}
