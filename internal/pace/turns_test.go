package pace_test

import (
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/pace"
)

// call gives the next ones their turn. All may have it.
func call(turns *pace.Turns[string, string], queue string, n int) []string {
	called, _ := turns.Call(queue, n, "", func(string) bool { return true })
	return called
}

func TestWhoeverAsksWaitsForItsTurn(t *testing.T) {
	var turns pace.Turns[string, string]
	ask := func(name string) bool { return turns.Ask("gate", name, pace.Item{Namespace: "shop", Name: name}) }
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
	turns.Noted("gate", 1)
	if waiting, released := turns.Counts("gate"); waiting != 1 || released != 0 {
		t.Errorf("noted: %d wait, %d were released", waiting, released)
	}
	if ask("a") {
		t.Error("who was released has to ask again")
	}
	if got := call(&turns, "another", 2); len(got) > 0 {
		t.Errorf("another queue has %v", got)
	}
	turns.Close("gate")
	if waiting, released := turns.Counts("gate"); waiting != 0 || released != 0 || ask("b") {
		t.Errorf("closed, but %d wait, %d were released", waiting, released)
	}
}

func TestWhoIsRecalledWaitsAgain(t *testing.T) {
	var turns pace.Turns[string, string]
	turns.Ask("gate", "a", pace.Item{Name: "a"})
	turns.Ask("gate", "b", pace.Item{Name: "b"})
	turns.Recall("gate", append(call(&turns, "gate", 1), "unknown"))
	if waiting, _ := turns.Counts("gate"); waiting != 2 || turns.Ask("gate", "a", pace.Item{Name: "a"}) {
		t.Errorf("%d wait", waiting)
	}
	if got := call(&turns, "gate", 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("called are %v", got)
	}
}

func TestWhoLeavesWithoutATurnIsNotCounted(t *testing.T) {
	var turns pace.Turns[string, string]
	turns.Leave("gate", "a", true)
	turns.Ask("gate", "a", pace.Item{})
	turns.Leave("gate", "a", true)
	if waiting, released := turns.Counts("gate"); waiting != 0 || released != 0 {
		t.Errorf("%d wait, %d were released", waiting, released)
	}
}

func TestWhatIsGoneWaitsNoMore(t *testing.T) {
	var turns pace.Turns[string, string]
	for _, queue := range []string{"one", "two"} {
		turns.Ask(queue, "a", pace.Item{Name: "a"})
		turns.Ask(queue, "b", pace.Item{Name: "b"})
	}
	call(&turns, "one", 1)
	turns.Forget("a")
	for _, queue := range []string{"one", "two"} {
		if waiting, released := turns.Counts(queue); waiting != 1 || released != 0 {
			t.Errorf("in queue %s %d wait, %d were released", queue, waiting, released)
		}
	}
	if turns.Ask("one", "a", pace.Item{Name: "a"}) {
		t.Error("another one of its name has its turn")
	}
}

func TestOnlyThoseThatMayHaveTheirTurnGetIt(t *testing.T) {
	var turns pace.Turns[string, string]
	for _, name := range []string{"a", "b", "c", "d"} {
		turns.Ask("gate", name, pace.Item{Name: name})
	}
	called, left := turns.Call("gate", 2, "", func(name string) bool { return name != "b" })
	if !slices.Equal(called, []string{"a", "c"}) || left != 1 {
		t.Errorf("called are %v, and %d may be next", called, left)
	}
	called, left = turns.Call("gate", 2, "", func(name string) bool { return name != "b" })
	if !slices.Equal(called, []string{"d"}) || left != 0 {
		t.Errorf("called are %v, and %d may be next", called, left)
	}
}
