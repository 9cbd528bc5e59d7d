package checker

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// History is every version that objects had.
type History struct {
	log *Log

	mu   sync.Mutex
	last map[types.UID]*unstructured.Unstructured
	// since is when the last versions were seen first.
	since   map[types.UID]time.Time
	pending []transition
	// memories are what the status of each Gate ever said of requests.
	memories map[types.UID]*memory
	// resumed is when somebody else than the controller resumed an object that is not
	// held since.
	resumed map[types.UID]time.Time
	broken  []string
	// gates are the versions of each Gate, by its namespace and name.
	gates map[string][]gateVersion
	// paused is when a replica was last stopped in the middle of what it does.
	paused time.Time
}

// transition is from one version of an object to the next that was seen at a time.
// Others may be between them if they come from a list.
type transition struct {
	before, after *unstructured.Unstructured
	// since is when the version before was seen, and at that after it.
	since, at time.Time
	listed    bool
}

// NewHistory returns an empty one. The log says who wrote what.
func NewHistory(log *Log) *History {
	return &History{
		log: log, last: map[types.UID]*unstructured.Unstructured{}, since: map[types.UID]time.Time{}, memories: map[types.UID]*memory{},
		resumed: map[types.UID]time.Time{}, gates: map[string][]gateVersion{},
	}
}

// Paused takes note that a replica is, or was, stopped in the middle of what it does: it
// goes on with what it had decided, until it sees that it does not lead any more.
func (h *History) Paused(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = at
}

// Saw takes note of a version of an object, from a watch or from a list. Versions that
// come twice, or too late, do not matter.
func (h *History) Saw(obj *unstructured.Unstructured, listed bool, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid := obj.GetUID()
	before := h.last[uid]
	if before != nil && versionOf(obj) <= versionOf(before) {
		return
	}
	since := h.since[uid]
	h.last[uid], h.since[uid] = obj, at
	if obj.GetKind() == "Gate" {
		key := obj.GetNamespace() + "/" + obj.GetName()
		h.gates[key] = append(h.gates[key], gateVersion{obj: obj, listed: listed, at: at})
	}
	// The work of a replica after a pause is seen soon.
	if at.Sub(h.paused) > pauseCounts {
		h.pending = append(h.pending, transition{before, obj, since, at, listed})
	} else {
		h.pending = append(h.pending, transition{before, obj, since, at, true})
	}
	h.requests(before, obj, listed, at)
}

// Version returns the last version of an object that was seen.
func (h *History) Version(uid types.UID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if obj := h.last[uid]; obj != nil {
		return obj.GetResourceVersion()
	}
	return ""
}

// Handled returns whether the status of a Gate ever named a request.
func (h *History) Handled(gate types.UID, r Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.memories[gate] != nil && h.memories[gate].handled[fmt.Sprint(r.Action, " ", r.Value)]
}

func (h *History) resumedAt(uid types.UID) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.resumed[uid]
	return at, ok
}

// Review returns what was wrong with the versions that were seen since the last time, and
// until now. The log has to have caught up with them.
func (h *History) Review(now time.Time) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	pending := h.pending
	h.pending = nil
	for _, t := range pending {
		if t.before == nil {
			continue
		}
		uid := t.after.GetUID()
		h.broken = append(h.broken, h.overdue(t.before, t.since, t.at)...)
		wasHeld, isHeld := ours(t.before), ours(t.after)
		at, theirs := h.log.wrote(uid, t.after.GetResourceVersion())
		resumed, known := h.resumed[uid]
		switch {
		case isHeld && known && !suspended(t.before) && !theirs && !t.listed:
			h.broken = append(h.broken, h.heldAgain(t, resumed)...)
			delete(h.resumed, uid)
		case isHeld:
			delete(h.resumed, uid)
		case theirs && wasHeld && !suspended(t.after):
			h.resumed[uid] = at
		}
		if !theirs && !h.log.between(uid, versionOf(t.before), versionOf(t.after)) {
			h.broken = append(h.broken, judge(t)...)
			h.broken = append(h.broken, h.inOrder(t)...)
			h.broken = append(h.broken, h.letGo(t)...)
		}
	}
	for uid, obj := range h.last {
		for _, wrong := range h.overdue(obj, h.since[uid], now) {
			if !slices.Contains(h.broken, wrong) {
				h.broken = append(h.broken, wrong) // that it is let go then does not mend it
			}
		}
	}
	return slices.Clone(h.broken)
}

// between returns whether somebody wrote an object between two versions of it that were
// seen one after the other.
func (l *Log) between(uid types.UID, before, after uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for version := range l.writes[uid] {
		if n, err := strconv.ParseUint(version, 10, 64); err == nil && n > before && n <= after {
			return true
		}
	}
	return false
}

func versionOf(obj *unstructured.Unstructured) uint64 {
	n, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return n
}

// judge says what the controller must not have done in a write of its own.
func judge(t transition) []string {
	var wrong []string
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s, version %s to %s: ", name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion())+
			fmt.Sprintf(format, args...))
	}
	claimed := claims(t.before)
	switch {
	case len(claimed) > 0 && !suspended(t.after):
		fail("the controller resumed what %q suspend", claimed)
	case len(claimed) > 0 && !slices.Equal(claimed, claims(t.after)):
		fail("the controller made the owners of spec.suspend %q of %q", claims(t.after), claimed)
	case len(claimed) > 0 && !ours(t.before) && ours(t.after):
		fail("the controller held what %q suspend", claimed)
	}
	b, a := others(t.before), others(t.after)
	if owns(t.before, "renewal") { // what is shared stays when we let go of it
		unstructured.RemoveNestedField(a, "spec", "renewal")
	}
	if !reflect.DeepEqual(b, a) {
		fail("the controller changed what is not its own:\n%v\n%v", b, a)
	}
	return wrong
}

// others returns what of an object is not for the controller to change.
func others(obj *unstructured.Unstructured) map[string]any {
	rest := obj.DeepCopy()
	annotations := rest.GetAnnotations()
	delete(annotations, heldByAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	rest.SetAnnotations(annotations)
	for _, field := range []string{"resourceVersion", "generation", "managedFields", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(rest.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(rest.Object, "spec", "suspend")
	if obj.GetKind() == "Gate" {
		_ = unstructured.SetNestedField(rest.Object, suspended(obj), "spec", "suspend")
	}
	if owns(obj, "renewal") || obj.GetKind() == certificateKind && len(owners(obj, "renewal")) == 0 {
		unstructured.RemoveNestedField(rest.Object, "spec", "renewal")
	}
	if obj.GetKind() == "Gate" {
		delete(rest.Object, "status")
	} else {
		removeConditions(rest)
	}
	return rest.Object
}

// ourConditions are the types of the conditions that the controller has on targets.
var ourConditions = []string{
	v1alpha1.ApprovedCondition, v1alpha1.ActivatedCondition, v1alpha1.RenewalDeferredCondition, v1alpha1.RenewalDisabledCondition,
	v1alpha1.RenewalWindowBypassedCondition, v1alpha1.RenewalConfigInvalidCondition,
}

func typeOf(item any) string {
	c, _ := item.(map[string]any)
	kind, _ := c["type"].(string)
	return kind
}

// removeConditions takes our conditions from a status, and what is empty then.
func removeConditions(obj *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(item any) bool { return slices.Contains(ourConditions, typeOf(item)) })
	if len(conditions) > 0 {
		// Each is known by its type, and Flux puts them in order as well.
		slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
		return
	}
	unstructured.RemoveNestedField(obj.Object, "status", "conditions")
	if status, _, _ := unstructured.NestedMap(obj.Object, "status"); len(status) == 0 {
		delete(obj.Object, "status")
	}
}
