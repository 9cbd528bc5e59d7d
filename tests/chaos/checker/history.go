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

// History has every version of all objects.
type History struct {
	log *Log

	mu   sync.Mutex
	last map[types.UID]*unstructured.Unstructured
	// since is when the last versions were first observed.
	since   map[types.UID]time.Time
	pending []transition
	// reported has everything that the status of each Gate has ever reported about requests.
	reported map[types.UID]*reportedRequests
	// resumed is when another client than the controller resumed an object that was not held again.
	resumed map[types.UID]time.Time
	broken  []string
	// gates has the versions of each Gate by namespace/name.
	gates map[string][]gateVersion
	// paused is when a replica was last suspended during its work.
	paused time.Time
}

// transition is a change from one version of an object to the next observed one. If that is from a list, versions in between may be
// missing.
type transition struct {
	before, after *unstructured.Unstructured
	// since is when the version before was observed, and at when the one after was.
	since, at time.Time
	listed    bool
}

// NewHistory returns an empty History. The log records which client wrote what.
func NewHistory(log *Log) *History {
	return &History{
		log: log, last: map[types.UID]*unstructured.Unstructured{}, since: map[types.UID]time.Time{}, reported: map[types.UID]*reportedRequests{},
		resumed: map[types.UID]time.Time{}, gates: map[string][]gateVersion{},
	}
}

// Paused records that a replica is, or was, suspended during its work. It continues with what it had decided until it observes that it has
// lost the lease.
func (h *History) Paused(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = at
}

// Saw records a version of an object from a watch or a list. It ignores repeated and outdated versions.
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
	// The writes of a resumed replica arrive soon.
	if at.Sub(h.paused) > pauseCounts {
		h.pending = append(h.pending, transition{before, obj, since, at, listed})
	} else {
		h.pending = append(h.pending, transition{before, obj, since, at, true})
	}
	h.requests(before, obj, listed, at)
}

// Version returns the last observed version of an object.
func (h *History) Version(uid types.UID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if obj := h.last[uid]; obj != nil {
		return obj.GetResourceVersion()
	}
	return ""
}

// Handled returns whether the status of a Gate has ever named a request.
func (h *History) Handled(gate types.UID, r Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported[gate] != nil && h.reported[gate].handled[fmt.Sprint(r.Action, " ", r.Value)]
}

func (h *History) resumedAt(uid types.UID) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.resumed[uid]
	return at, ok
}

// Review returns the violations in the versions that were observed since the last call. The log must have all writes up to now.
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
		at, byOthers := h.log.wrote(uid, t.after.GetResourceVersion())
		resumed, known := h.resumed[uid]
		switch {
		case isHeld && known && !suspended(t.before) && !byOthers && !t.listed:
			h.broken = append(h.broken, h.heldAgain(t, resumed)...)
			delete(h.resumed, uid)
		case isHeld:
			delete(h.resumed, uid)
		case byOthers && wasHeld && !suspended(t.after):
			h.resumed[uid] = at
		}
		if !byOthers && !h.log.between(uid, versionOf(t.before), versionOf(t.after)) {
			h.broken = append(h.broken, judge(t)...)
			h.broken = append(h.broken, h.inOrder(t)...)
			h.broken = append(h.broken, h.releasedDespiteGate(t)...)
		}
	}
	for uid, obj := range h.last {
		for _, wrong := range h.overdue(obj, h.since[uid], now) {
			if !slices.Contains(h.broken, wrong) {
				h.broken = append(h.broken, wrong) // the later release does not make up for that
			}
		}
	}
	return slices.Clone(h.broken)
}

// between returns whether another client wrote an object between two consecutive observed versions.
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

// judge returns the violations in a write by the controller.
func judge(t transition) []string {
	var wrong []string
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s, version %s to %s: ", name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion())+
			fmt.Sprintf(format, args...))
	}
	claimed := claims(t.before)
	switch {
	case len(claimed) > 0 && !suspended(t.after):
		fail("the controller resumed what is suspended by %q", claimed)
	case len(claimed) > 0 && !slices.Equal(claimed, claims(t.after)):
		fail("the controller made the owners of spec.suspend %q of %q", claims(t.after), claimed)
	case len(claimed) > 0 && !ours(t.before) && ours(t.after):
		fail("the controller held what is suspended by %q", claimed)
	}
	b, a := others(t.before), others(t.after)
	if owns(t.before, "renewal") { // a shared field stays after the release
		unstructured.RemoveNestedField(a, "spec", "renewal")
	}
	if !reflect.DeepEqual(b, a) {
		fail("the controller changed fields that are not its own:\n%v\n%v", b, a)
	}
	return wrong
}

// others returns an object without the fields that the controller may change.
func others(obj *unstructured.Unstructured) map[string]any {
	rest := obj.DeepCopy()
	annotations := rest.GetAnnotations()
	delete(annotations, heldByAnnotation)
	if by := annotations[suspendedByAnnotation]; strings.HasPrefix(by, "gate ") || strings.HasPrefix(by, "gates ") {
		delete(annotations, suspendedByAnnotation)
	}
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

// ourConditions are the types of the controller's conditions on targets.
var ourConditions = []string{
	v1alpha1.ApprovedCondition, v1alpha1.ActivatedCondition, v1alpha1.RenewalDeferredCondition, v1alpha1.RenewalDisabledCondition,
	v1alpha1.RenewalWindowBypassedCondition, v1alpha1.RenewalConfigInvalidCondition,
}

func typeOf(item any) string {
	c, _ := item.(map[string]any)
	kind, _ := c["type"].(string)
	return kind
}

// removeConditions removes our conditions from a status, and fields that are empty then.
func removeConditions(obj *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(item any) bool { return slices.Contains(ourConditions, typeOf(item)) })
	if len(conditions) > 0 {
		// Conditions are identified by type, and Flux reorders them.
		slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
		return
	}
	unstructured.RemoveNestedField(obj.Object, "status", "conditions")
	if status, _, _ := unstructured.NestedMap(obj.Object, "status"); len(status) == 0 {
		delete(obj.Object, "status")
	}
}
