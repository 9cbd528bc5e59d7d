package endpoint

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// thing is an object with paths.
type thing struct {
	key     types.NamespacedName
	created time.Time
	paths   []string
	kept    string
}

func (t *thing) Key() types.NamespacedName { return t.key }
func (t *thing) Created() time.Time        { return t.created }
func (t *thing) Paths() []string           { return t.paths }
func (t *thing) Inherit(before *thing)     { t.kept = before.kept }

func thingOf(name string, age int, paths ...string) *thing {
	return &thing{types.NamespacedName{Namespace: "apps", Name: name}, time.Unix(int64(age), 0), paths, ""}
}

func TestAPathBelongsToTheOlderObjectInWhateverOrderTheyCome(t *testing.T) {
	older, younger := thingOf("z", 1, "/a"), thingOf("a", 2, "/b", "/a")
	for _, order := range [][]*thing{{older, younger}, {younger, older, younger}} {
		table := NewTable[*thing]()
		taken := ""
		for _, e := range order {
			taken = table.Put(e.key, e, false)
		}
		if e, _ := table.Find("/a"); e != older || taken != "apps/z" {
			t.Errorf("it is %v, the younger one was told %q", e, taken)
		}
		if e, _ := table.Find("/b"); e != nil {
			t.Error("an object that lacks one of its paths is served at another one")
		}
	}
}

func TestAnObjectInheritsAndEverythingThatComesGoes(t *testing.T) {
	table := NewTable[*thing]()
	var log []string
	table.Added = func(e *thing) { log = append(log, "+"+e.paths[0]) }
	table.Dropped = func(e *thing) { log = append(log, "-"+e.paths[0]) }
	first, second := thingOf("a", 1, "/a"), thingOf("a", 1, "/b")
	first.kept = "state"
	table.Put(first.key, first, false)
	table.Put(second.key, second, false)
	if second.kept != "state" || table.Get(second.key) != second {
		t.Errorf("%+v", second)
	}
	if e, certain := table.Find("/a"); e != nil || !certain {
		t.Error("the old path is good still")
	}
	table.Forget(second.key)
	if got := strings.Join(log, " "); got != "+/a -/a +/b -/b" || table.Len() != 0 {
		t.Errorf("%s, %d left", got, table.Len())
	}
}
