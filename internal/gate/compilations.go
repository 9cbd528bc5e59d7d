package gate

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Compilations caches the compiled spec of each Gate until the spec, its calendars or its exceptions change. It is safe for concurrent use.
type Compilations struct {
	mu    sync.Mutex
	gates map[types.UID]cachedCompilation
}

// cachedCompilation is a compilation with the versions of its inputs.
type cachedCompilation struct {
	*compilation
	generation int64
	calendars  timetable.Calendars
	exceptions []revision
}

// revision is a version of the spec of an exception.
type revision struct {
	uid        types.UID
	generation int64
}

// Snapshot is like NewSnapshot, but compiles the spec only if it is not cached. The cache compares calendars by identity: pass the same
// value as before unless the calendars have changed.
func (c *Compilations) Snapshot(g *v1alpha1.Gate, calendars timetable.Calendars, exceptions ...*v1alpha1.GateException) *Snapshot {
	s := c.Lookup(g, calendars, exceptions...)
	if s.compiled != nil {
		return s
	}
	compiled := s.compile() // not under the lock, so that other Gates do not wait
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gates == nil {
		c.gates = map[types.UID]cachedCompilation{}
	}
	c.gates[g.UID] = cachedCompilation{compiled, g.Generation, calendars, revisionsOf(exceptions)}
	return s
}

// Lookup is like Snapshot, but adds nothing to the cache, because the Gate may have been evicted.
func (c *Compilations) Lookup(g *v1alpha1.Gate, calendars timetable.Calendars, exceptions ...*v1alpha1.GateException) *Snapshot {
	s := NewSnapshot(g, calendars, exceptions...)
	cached, ok := c.get(g.UID)
	if ok && cached.generation == g.Generation && reflect.ValueOf(cached.calendars).Pointer() == reflect.ValueOf(calendars).Pointer() && slices.Equal(cached.exceptions, revisionsOf(exceptions)) {
		s.compiled = cached.compilation
	}
	return s
}

// revisionsOf returns the revisions of exceptions in a fixed order, because informers list in any order.
func revisionsOf(exceptions []*v1alpha1.GateException) (revisions []revision) {
	for _, e := range exceptions {
		revisions = append(revisions, revision{e.UID, e.Generation})
	}
	slices.SortFunc(revisions, func(a, b revision) int { return strings.Compare(string(a.uid), string(b.uid)) })
	return revisions
}

func (c *Compilations) get(uid types.UID) (cachedCompilation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.gates[uid]
	return cached, ok
}

// Forget evicts a Gate.
func (c *Compilations) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gates, uid)
}
