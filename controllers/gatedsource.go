package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const (
	// maxLooks bounds the looks at a GatedSource in a row: a promotion takes four.
	maxLooks = 8

	// shardInterval is how often a GatedSource with something that waits is looked at if there are shards: the events of their Gates
	// do not come here.
	shardInterval = time.Minute
)

// promoter is the part of TargetReconciler that is for GatedSources. They are not held: it asks their Gates before it moves a pin.
type promoter struct {
	kuberecorder.EventRecorder
	clock   clock.PassiveClock
	targets TargetReader
	gates   *GateIndex
	turns   *Turns
	wake    Waker
	writer  *gatedSourceWriter
	metrics *GateMetrics
	// stamped returns whether the API server stamps who approves.
	stamped func(context.Context) (bool, error)
	// shard selects the GatedSources of this process by their labels.
	shard labels.Selector
}

// looked is a look at a GatedSource.
type looked struct {
	// object is what was looked at, before and after are it with its status.
	object           *target.Object
	before, after    *v1alpha1.GatedSource
	original, pinned *unstructured.Unstructured
	gates            []verdict.Gate
	step             promotion.Step
	// rival is an older GatedSource that pins the same, empty if there is none.
	rival string
	// waits says that it is not the turn of the GatedSource.
	waits bool
	now   time.Time
}

// settle makes the pinned source of a GatedSource what it should be. A step that cannot be undone is decided on the object of the API server, and
// noted in the status before it is done.
func (p *promoter) settle(ctx context.Context, obj *target.Object) (targetResult, error) {
	if !p.shard.Matches(labels.Set(obj.GetLabels())) {
		return targetResult{}, nil
	}
	live := false
	for range maxLooks {
		l, err := p.look(ctx, obj, live)
		if errors.Is(err, errNotRead) {
			return targetResult{recheck: recheck{p.clock.Now().Add(cacheDelay)}}, nil
		}
		if err != nil {
			return targetResult{}, err
		}
		if !l.step.Acts() || live {
			if err := p.writer.status(ctx, l); err != nil {
				return p.settled(l).failed(v1alpha1.StatusWriteFailedReason, err)
			}
			p.tell(l)
		}
		switch {
		case !l.step.Acts():
			p.leaveTurns(l)
			return p.settled(l), nil
		case live && l.step.Write != nil:
			if err := p.writer.pin(ctx, l); err != nil && !raced(err) && !apierrors.IsAlreadyExists(err) {
				return p.settled(l).failed(v1alpha1.WriteFailedReason, err)
			}
		}
		live = true
		if obj, err = p.writer.targets.reread(ctx, obj); obj == nil || err != nil {
			return targetResult{}, err // its event is to come
		}
	}
	return targetResult{recheck: recheck{p.clock.Now().Add(cacheDelay)}}, nil
}

// look looks at a GatedSource and its sources, as the cache has them or as the API server has them.
func (p *promoter) look(ctx context.Context, obj *target.Object, live bool) (*looked, error) {
	l := &looked{object: obj, before: &v1alpha1.GatedSource{}, now: p.clock.Now()}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, l.before); err != nil {
		return nil, err
	}
	in := promotion.Input{Now: l.now}
	var err error
	if l.original, in.Original, err = p.source(ctx, l, l.before.Spec.SourceRef.Name, live); err != nil {
		return nil, err
	}
	if l.pinned, in.Pinned, err = p.source(ctx, l, l.before.PinnedName(), live); err != nil {
		return nil, err
	}
	if !in.Pinned.IsOf(l.before) { // one that has its pin keeps it
		if in.Older, err = p.rival(ctx, l.before); err != nil {
			return nil, err
		}
	}
	l.rival = in.Older
	if in.Stamped = true; promotion.HasNewApprovals(l.before) {
		if in.Stamped, err = p.stamped(ctx); err != nil {
			return nil, err
		}
	}
	if l.gates, err = p.gates.Of(ctx, obj, l.now); err != nil {
		return nil, err
	}
	all := l.gates
	if live && p.gates.AllGates != nil { // those of other shards have a say
		if all, err = p.gates.Live(ctx, obj, l.now); err != nil {
			return nil, err
		}
	}
	in.Gates = together(all, l.now)
	l.after = l.before.DeepCopy()
	if l.step = promotion.Decide(l.after, in); (l.step.Again || l.step.Promotes) && !p.hasTurn(l) {
		in.Gates = promotion.Gates{Reason: v1alpha1.GateClosedReason, Message: "It waits for its turn: its gate releases its targets at a pace."}
		l.after, l.waits = l.before.DeepCopy(), true
		l.step = promotion.Decide(l.after, in)
	}
	return l, nil
}

// together returns what Gates say together. One that has not decided, or that nobody can read, keeps the pin where it is.
func together(gates []verdict.Gate, now time.Time) promotion.Gates {
	v := verdict.Judge(verdict.Observed{}, gates)
	reason, message := verdict.Refusal(v.Holders)
	switch {
	case !slices.ContainsFunc(gates, func(g verdict.Gate) bool { return !g.LetsActivate() }):
		return promotion.Gates{Open: true, Reason: v1alpha1.GateOpenedReason, Message: v.Released()}
	case len(v.Holders) == 0:
		return promotion.Gates{}
	case reason == "":
		reason, message = v1alpha1.GateClosedReason, verdict.Explain(v.Holders, now)
	}
	return promotion.Gates{Reason: reason, Message: message}
}

// hasTurn returns whether a GatedSource may be promoted now, by those of its Gates that release at a pace.
func (p *promoter) hasTurn(l *looked) bool {
	has := true
	for _, g := range l.gates {
		if g.HasPace() && !p.turns.Wait(tallied(g.Object), target.KeyOf(l.object), turnOf(g.Object, l.object)) {
			p.wake.Gate(tallied(g.Object).NamespacedName)
			has = false
		}
	}
	return has
}

// source returns a source in the namespace of a GatedSource, nil if it does not exist.
func (p *promoter) source(ctx context.Context, l *looked, name string, live bool) (*unstructured.Unstructured, *promotion.Source, error) {
	kind := schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: l.before.Spec.SourceRef.Kind}
	key := types.NamespacedName{Namespace: l.before.Namespace, Name: name}
	adapter, err := target.For(kind.Group+"/v1", kind.Kind)
	if err != nil {
		return nil, nil, err
	}
	var obj *unstructured.Unstructured
	if live {
		if obj, err = p.targets.Read(ctx, adapter, key); errors.Is(err, ErrNotInstalled) {
			err = nil
		}
	} else {
		var cached *target.Object
		if cached, err = p.targets.Get(ctx, target.Key{GroupKind: kind, NamespacedName: key}); cached != nil {
			obj = &cached.Unstructured
		}
	}
	if obj == nil || err != nil {
		return nil, nil, err
	}
	return obj, sourceOf(obj, l.before.UID), nil
}

// leaveTurns gives up the slots of a GatedSource that does not wait for them. Call it only after all writes have succeeded: a
// GatedSource whose write failed keeps its slots for the next try.
func (p *promoter) leaveTurns(l *looked) {
	if l.waits {
		return
	}
	for _, g := range l.gates {
		if g.Object != nil && g.Object.Spec.Release != nil {
			p.turns.Leave(tallied(g.Object), target.KeyOf(l.object), l.step.Promoted != nil)
		}
	}
}

// settled returns what is to be counted of a look, and when the next one is.
func (p *promoter) settled(l *looked) targetResult {
	p.metrics.waits(target.KeyOf(l.object).NamespacedName, l.after.Status)
	is := &target.Object{Unstructured: *l.object.DeepCopy()}
	if status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&l.after.Status); err == nil {
		is.Object["status"] = status
	}
	s := targetResult{Result: tally.Result{Gates: l.gates, Ruling: verdict.Rule(verdict.Situation{Object: is, Gates: l.gates, Now: l.now})}}
	if l.waits {
		s.Ruling.Wait = verdict.ForSlot
	}
	if slices.ContainsFunc(l.gates, func(g verdict.Gate) bool { return g.Stand == verdict.Elsewhere }) {
		s.again(l.now.Add(cacheDelay))
	}
	if l.after.Status.Pending != nil && p.gates.AllGates != nil || l.rival != "" { // the rival may go
		s.again(l.now.Add(shardInterval))
	}
	return s
}

// tell records events about what is new.
func (p *promoter) tell(l *looked) {
	say := func(kind, reason, revision, format string, args ...any) {
		said := news{reasonNews: reason, eventv1.MetaRevisionKey: revision, eventv1.MetaTokenKey: token(l.now)}
		said.tell(p, l.after, notice{kind, reason, fmt.Sprintf(format, args...)})
	}
	for _, a := range l.step.Approved {
		say(eventNormal, v1alpha1.RevisionApprovedReason, a.Revision, "Revision '%s' approved by %s%s", a.Revision, a.ApprovedBy, because(a.Message))
	}
	for _, a := range l.step.Voided {
		say(eventWarning, v1alpha1.ApprovalsVoidedReason, a.Revision, "Approval of '%s' by %s is void: another revision was promoted, or the spec of the source has changed", a.Revision, a.ApprovedBy)
	}
	if w := l.step.Waits; w != nil {
		say(eventNormal, v1alpha1.RevisionWaitsReason, w.Revision, "%s", meta.FindStatusCondition(l.after.Status.Conditions, v1alpha1.ApprovedCondition).Message)
	}
	if done := l.step.Promoted; done != nil {
		by := make([]string, len(done.Approvals))
		for i, a := range done.Approvals {
			by[i] = a.ApprovedBy
		}
		if len(by) > 0 {
			by = []string{", approved by " + strings.Join(by, ", ")}
		}
		say(eventNormal, v1alpha1.RevisionPromotedReason, done.Revision, "Promoted '%s' from '%s' (%s)%s", done.Revision, cmp.Or(done.From, "nothing"), done.Reason, strings.Join(by, ""))
	}
	if was, is := unableOf(l.before), unableOf(l.after); is != nil && !reflect.DeepEqual(was, is) {
		say(eventWarning, is.Reason, "", "%s", is.Message)
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// unableOf returns the reason and message of the condition Ready if it is about a failure, nil if it is not.
func unableOf(g *v1alpha1.GatedSource) *metav1.Condition {
	ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || g.Status.Pinned == nil && !meta.IsStatusConditionTrue(g.Status.Conditions, fluxmeta.StalledCondition) {
		return nil
	}
	return &metav1.Condition{Reason: ready.Reason, Message: ready.Message}
}

// rival returns the oldest GatedSource that is older than another one and pins a source of the same kind and name, empty if there is none.
func (p *promoter) rival(ctx context.Context, g *v1alpha1.GatedSource) (string, error) {
	adapter, err := target.For("", v1alpha1.GatedSourceKind)
	if err != nil {
		return "", err
	}
	found, err := p.targets.Select(ctx, adapter, g.Namespace, &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
	if err != nil {
		return "", err
	}
	oldest := g
	for _, t := range found {
		other := referring(t)
		if other.Name != g.Name && other.Spec.SourceRef.Kind == g.Spec.SourceRef.Kind && other.PinnedName() == g.PinnedName() && byAge(other, oldest) < 0 {
			oldest = other
		}
	}
	if oldest == g {
		return "", nil
	}
	return oldest.Name, nil
}

// byAge compares two GatedSources: the older one comes first, of the same age that whose name does.
func byAge(a, b *v1alpha1.GatedSource) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// followers returns the GatedSources that follow a source, or have pinned it.
func followers(ctx context.Context, targets TargetReader, source *unstructured.Unstructured) (keys []target.Key) {
	adapter, err := target.For("", v1alpha1.GatedSourceKind)
	if err != nil || !target.IsPinnable(source.GroupVersionKind().GroupKind()) {
		return nil
	}
	found, err := targets.Select(ctx, adapter, source.GetNamespace(), &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
	failed(unlessUnread(err))
	for _, t := range found {
		if follows(t, source) {
			keys = append(keys, target.KeyOf(t))
		}
	}
	return keys
}

// follows returns whether a GatedSource follows or has pinned a source.
func follows(t *target.Object, source *unstructured.Unstructured) bool {
	g := referring(t)
	return g.Spec.SourceRef.Kind == source.GetKind() && slices.Contains([]string{g.Spec.SourceRef.Name, g.PinnedName()}, source.GetName())
}

// referring returns what a GatedSource says of its sources, and its age.
func referring(t *target.Object) *v1alpha1.GatedSource {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(t.Object, path...)
		return value
	}
	return &v1alpha1.GatedSource{
		ObjectMeta: metav1.ObjectMeta{Name: t.GetName(), CreationTimestamp: t.GetCreationTimestamp()},
		Spec: v1alpha1.GatedSourceSpec{
			SourceRef: v1alpha1.PinnableReference{Kind: text("spec", "sourceRef", "kind"), Name: text("spec", "sourceRef", "name")}, PinnedName: text("spec", "pinnedName"),
		},
	}
}
