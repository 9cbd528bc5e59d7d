package endpoint

import (
	"slices"
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
func (t *thing) Bearers() []string         { return t.paths }
func (t *thing) Inherit(before *thing)     { t.kept = before.kept }

func thingOf(name string, age int, paths ...string) *thing {
	return &thing{types.NamespacedName{Namespace: "apps", Name: name}, time.Unix(int64(age), 0), paths, ""}
}

func TestPathBelongsToOlderObjectInAnyOrder(t *testing.T) {
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

func TestTableIsEmptyAfterAllObjectsAreRemoved(t *testing.T) {
	table := NewTable[*thing]()
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
	if found, certain := table.FindBearers("/a"); len(found) > 0 || !certain {
		t.Errorf("the old token is that of %v", found)
	}
	if found, certain := table.FindBearers("/b"); !slices.Equal(found, []*thing{second}) || !certain {
		t.Errorf("the token is that of %v", found)
	}
	table.Forget(second.key)
	if found, _ := table.FindBearers("/b"); len(found) > 0 || table.Len() != 0 {
		t.Errorf("%v, %d left", found, table.Len())
	}
}
