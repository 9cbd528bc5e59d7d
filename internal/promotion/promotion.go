package promotion

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Source is what is known of a source.
type Source struct {
	Spec map[string]any
	// Revision of the artifact, empty if there is none.
	Revision string
	// Current says that source-controller has looked at the spec as it is.
	Current bool
	// Unchanged says that its artifact has all the same what the spec asks for at that revision.
	Unchanged bool
	// Failed says that source-controller could not fetch it as its spec is. Revision is that of an earlier artifact then.
	Failed bool
	// GatedBy is the GatedSource that has pinned it, empty if none has.
	GatedBy string
	// Owned says that it goes when its GatedSource is deleted.
	Owned bool
	// Deleted says that it is being deleted.
	Deleted bool
	// Ready is its condition, nil if it has none.
	Ready *metav1.Condition
}

// IsOf returns whether a GatedSource has pinned a source, false if there is no source.
func (s *Source) IsOf(g *v1alpha1.GatedSource) bool { return s != nil && s.GatedBy == g.Name }

// Gates is what all Gates that govern a GatedSource say together.
type Gates struct {
	// Open says that all of them are open.
	Open bool
	// Reason in CamelCase, and a sentence. Both are empty while a Gate has not decided.
	Reason, Message string
}

// Input is what a GatedSource depends on at an instant. A source that does not exist is nil.
type Input struct {
	Original, Pinned *Source
	Gates            Gates
	// Rival is an older GatedSource that pins a source of the same kind and name, empty if there is none.
	Rival string
	// Stamped says that the API server stamps who approves.
	Stamped bool
	Now     time.Time
}

// Step is what follows from a look at a GatedSource. Its status is written first.
type Step struct {
	// Write is what the pinned source is to have in its spec, nil if it is as it should be.
	Write map[string]any
	// Promotes says that Write is what status.promoting has. Otherwise it is what status.pinned has, which somebody has changed.
	Promotes bool
	// Again says that the status is to be written, and to be looked at once more before anything else is.
	Again bool
	// Promoted is the promotion that has come to its end, nil if none has.
	Promoted *v1alpha1.Promotion
	// Waits is the revision that begins to wait, nil if none does.
	Waits *v1alpha1.SeenRevision
	// Approved are new approvals, Voided those that do not count any more.
	Approved, Voided []v1alpha1.RevisionApproval
}

// look is one look at a GatedSource.
type look struct {
	Input
	g    *v1alpha1.GatedSource
	kind string
	step Step
	// fault is why nothing can be promoted.
	fault fault
}

// fault is why nothing can be promoted. Only a change of a spec or of an object can mend it if it stalls.
type fault struct {
	reason, message string
	stalls          bool
}

// Look makes the status of a GatedSource say what it is, and returns what to do. It is called once more after each write.
func Look(g *v1alpha1.GatedSource, in Input) Step {
	l := &look{Input: in, g: g, kind: g.Spec.SourceRef.Kind}
	if g.Spec.Suspend {
		l.suspended()
		return Step{}
	}
	s := &g.Status
	l.complete()
	l.adopt()
	l.fault = l.findFault()
	l.observe()
	l.approve()
	want, reason := l.want()
	moves := want != "" && l.moves(want, reason)
	l.note(want, moves)
	if moves && l.Gates.Open {
		l.promote(want, reason)
	} else {
		s.Promoting = nil
		l.restore()
	}
	l.report(want, moves)
	return l.step
}

// Wrote takes note of what the API server has made of the spec that was written, so that it is known again. It returns whether that
// is another one.
func (s Step) Wrote(g *v1alpha1.GatedSource, spec map[string]any) bool {
	p := g.Status.Pinned
	if s.Promotes {
		p = g.Status.Promoting
	}
	if isSpec(spec, p.Spec.Raw) {
		return false
	}
	spec = maps.Clone(spec)
	delete(spec, suspendField)
	p.Spec = runtime.RawExtension{Raw: encode(spec)}
	return true
}

// Acts returns whether something is to be written besides what the status says of what was seen.
func (s Step) Acts() bool { return s.Again || s.Write != nil }

// findFault returns why nothing can be promoted.
func (l *look) findFault() fault {
	ref, o, named := l.g.Spec.SourceRef, l.Original, l.original()
	switch {
	case l.Pinned != nil && l.Pinned.GatedBy != l.g.Name:
		return fault{v1alpha1.SourceNotOursReason, fmt.Sprintf("%s exists, and is not of this GatedSource: it is left as it is. Give the pinned source another name in spec.pinnedName, or delete that one.",
			l.pinned()), true}
	case l.hasRival():
		return fault{v1alpha1.SourceNotOursReason, fmt.Sprintf("%s is what the older GatedSource '%s' pins: nothing is pinned. Give the pinned source another name in spec.pinnedName, or delete that GatedSource.",
			l.pinned(), l.Rival), true}
	case o == nil:
		return fault{v1alpha1.SourceNotFoundReason, named + " does not exist.", false}
	case o.GatedBy != "":
		return fault{v1alpha1.SourceNotPinnableReason, fmt.Sprintf("%s is itself pinned by GatedSource '%s': name the source that this one follows.", named, o.GatedBy), true}
	case unpinnable(ref.Kind, o.Spec) != "":
		return fault{v1alpha1.SourceNotPinnableReason, named + " cannot be pinned: " + unpinnable(ref.Kind, o.Spec) + ".", true}
	case l.g.Spec.Revision != "" && checkRevision(ref.Kind, l.g.Spec.Revision) != nil:
		return fault{v1alpha1.InvalidSpecReason, "spec.revision: " + checkRevision(ref.Kind, l.g.Spec.Revision).Error(), true}
	case o.Revision == "":
		return fault{v1alpha1.SourceNotFoundReason, named + " has no artifact yet.", false}
	case checkRevision(ref.Kind, o.Revision) != nil:
		return fault{v1alpha1.SourceNotPinnableReason, named + " cannot be pinned: " + checkRevision(ref.Kind, o.Revision).Error() + ".", true}
	case o.Current, digestOf(ref.Kind, o.Spec) == l.g.Status.Digest, o.Unchanged && isSuspended(o.Spec) && l.g.Status.Pinned == nil:
		return fault{}
	case isSuspended(o.Spec):
		return fault{v1alpha1.SourceNotFoundReason, named + " is suspended, and was not fetched as its spec is now: it is pinned once it goes on.", false}
	}
	return fault{v1alpha1.SourceNotFoundReason, named + " was not fetched yet as its spec is now.", false}
}

func (l *look) original() string { return fmt.Sprintf("%s '%s'", l.kind, l.g.Spec.SourceRef.Name) }

func (l *look) pinned() string { return fmt.Sprintf("%s '%s'", l.kind, l.g.PinnedName()) }

// observe takes note of the newest revision, and of a change of the spec of the source: approvals were of what it was.
func (l *look) observe() {
	s, at := &l.g.Status, metav1.NewTime(l.Now)
	if l.fault != (fault{}) {
		return
	}
	if digest := digestOf(l.kind, l.Original.Spec); digest != s.Digest {
		if s.Digest != "" {
			l.step.Voided = append(l.step.Voided, s.Approvals...)
			s.Approvals = nil
			s.Round++
		}
		s.Digest = digest
	}
	revision := l.Original.Revision
	if s.Latest != nil && s.Latest.Revision == revision {
		return
	}
	seen := v1alpha1.SeenRevision{Revision: revision, RecordedAt: at}
	s.Latest = &seen
	others := slices.DeleteFunc(slices.Clone(s.Seen), func(is v1alpha1.SeenRevision) bool { return is.Revision == revision })
	s.Seen = append([]v1alpha1.SeenRevision{seen}, others...)
	s.Seen = s.Seen[:min(len(s.Seen), v1alpha1.MaxSeen)]
}

// complete takes note that the pinned source has what was about to be promoted.
func (l *look) complete() {
	p := l.g.Status.Promoting
	if p == nil || !l.isOurs() || !isSpec(l.Pinned.Spec, p.Spec.Raw) {
		return
	}
	l.promoted(*p)
}

func (l *look) isOurs() bool { return l.Pinned.IsOf(l.g) }

// hasRival returns whether an older GatedSource is to have the pinned source. A pinned source that is ours already stays ours.
func (l *look) hasRival() bool { return l.Rival != "" && !l.isOurs() }

// promoted begins another round.
func (l *look) promoted(p v1alpha1.Pin) {
	s := &l.g.Status
	promotion := v1alpha1.Promotion{Revision: p.Revision, At: metav1.NewTime(l.Now), Reason: p.Reason}
	if s.Pinned != nil {
		promotion.From = s.Pinned.Revision
	}
	for _, a := range s.Approvals {
		switch {
		case a.Revision != p.Revision:
			l.step.Voided = append(l.step.Voided, a)
		case p.Reason == v1alpha1.RevisionApprovedReason:
			promotion.Approvals = append(promotion.Approvals, a)
		}
	}
	s.Pinned, s.Promoting, s.Approvals, s.WaitingSince = &p, nil, nil, nil
	s.Round++
	s.Promotions = append([]v1alpha1.Promotion{promotion}, s.Promotions...)
	s.Promotions = s.Promotions[:min(len(s.Promotions), v1alpha1.MaxPromotions)]
	l.step.Promoted = &promotion
}

// adopt takes over a pinned source that was there before this GatedSource, or before its status was lost.
func (l *look) adopt() {
	if l.g.Status.Pinned != nil || !l.isOurs() {
		return
	}
	if revision := pinnedTo(l.kind, l.Pinned.Spec); revision != "" {
		spec := runtime.DeepCopyJSON(l.Pinned.Spec)
		delete(spec, suspendField)
		l.promoted(v1alpha1.Pin{
			Revision: revision, Digest: digestOf(l.kind, spec), Spec: runtime.RawExtension{Raw: encode(spec)},
			Reason: v1alpha1.AdoptedReason, At: metav1.NewTime(l.Now),
		})
	}
}

// want returns the revision that is to be pinned by the spec and the approvals, empty if that is none, and why.
func (l *look) want() (revision, reason string) {
	s := &l.g.Status
	switch {
	case l.fault != (fault{}):
		return "", ""
	case l.g.Spec.Revision != "":
		return l.known(l.g.Spec.Revision), v1alpha1.PinnedInSpecReason
	case l.g.RequiredApprovals() > 0:
		return approved(l.g), v1alpha1.RevisionApprovedReason
	}
	return s.Latest.Revision, v1alpha1.GateOpenedReason
}

// known returns a revision as it was seen or promoted, empty if it was not. The first one need not be known: it is what ran before
// there was a GatedSource. But what the source has not brought while it is suspended, no pin brings.
func (l *look) known(revision string) string {
	for _, is := range seen(l.g) {
		if same(l.kind, is, revision) {
			return is
		}
	}
	if l.g.Status.Pinned == nil && !isSuspended(l.Original.Spec) {
		return revision
	}
	return ""
}

// seen returns all revisions that can be approved.
func seen(g *v1alpha1.GatedSource) (revisions []string) {
	for _, is := range g.Status.Seen {
		revisions = append(revisions, is.Revision)
	}
	for _, p := range g.Status.Promotions {
		revisions = append(revisions, p.Revision)
	}
	return revisions
}

// moves returns whether the pin is to move to a revision. A change of the spec of the source follows with the newest revision, or with
// one that was approved since.
func (l *look) moves(want, reason string) bool {
	gated := l.g.Status.Pinned
	return gated == nil || !same(l.kind, gated.Revision, want) ||
		gated.Digest != l.g.Status.Digest && (reason == v1alpha1.RevisionApprovedReason || l.g.RequiredApprovals() == 0)
}

// promote takes note of what is to be pinned, and has it written once that is noted.
func (l *look) promote(want, reason string) {
	s := &l.g.Status
	next := pin(l.kind, l.Original.Spec, want)
	if p := s.Promoting; p != nil && isSpec(next, p.Spec.Raw) {
		l.step.Write, l.step.Promotes = next, true
		return
	}
	s.Promoting = &v1alpha1.Pin{
		Revision: want, Digest: s.Digest, Spec: runtime.RawExtension{Raw: encode(next)}, Reason: reason, At: metav1.NewTime(l.Now),
	}
	l.step.Again = true
}

// restore has the pinned source be what it was, whoever has changed or deleted it. Gates do not matter to that.
func (l *look) restore() {
	gated := l.g.Status.Pinned
	switch {
	case gated == nil, l.hasRival(), l.Pinned != nil && (!l.isOurs() || l.Pinned.Deleted):
	case l.Pinned == nil, !isSpec(l.Pinned.Spec, gated.Spec.Raw), l.Pinned.Owned != (l.g.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete):
		l.step.Write = decode(gated.Spec.Raw)
	}
}

// note says what waits.
func (l *look) note(want string, moves bool) {
	s := &l.g.Status
	pending, before := (*v1alpha1.SeenRevision)(nil), s.Pending
	s.Waiting = int32(newer(s, l.kind))
	switch {
	case s.Latest == nil:
	case moves:
		pending = &v1alpha1.SeenRevision{Revision: want, RecordedAt: l.seenAt(want)}
	case want == "" && l.g.Spec.Revision == "" && (s.Pinned == nil || !same(l.kind, s.Pinned.Revision, s.Latest.Revision) || s.Pinned.Digest != s.Digest):
		pending = s.Latest
	}
	switch s.Pending = pending; {
	case pending == nil:
		s.WaitingSince = nil
	case s.WaitingSince == nil && s.Waiting > 0:
		s.WaitingSince = &s.Seen[s.Waiting-1].RecordedAt
	case s.WaitingSince == nil:
		s.WaitingSince = &metav1.Time{Time: l.Now}
	}
	if pending != nil && (before == nil || before.Revision != pending.Revision) && (!moves || !l.Gates.Open) {
		l.step.Waits = pending
	}
}

// seenAt returns when a revision was first seen, or now.
func (l *look) seenAt(revision string) metav1.Time {
	for _, is := range l.g.Status.Seen {
		if is.Revision == revision {
			return is.RecordedAt
		}
	}
	return metav1.NewTime(l.Now)
}

// newer returns how many revisions are newer than the pinned one.
func newer(s *v1alpha1.GatedSourceStatus, kind string) int {
	if s.Pinned == nil {
		return len(s.Seen)
	}
	i := slices.IndexFunc(s.Seen, func(is v1alpha1.SeenRevision) bool { return same(kind, is.Revision, s.Pinned.Revision) })
	if i < 0 {
		return len(s.Seen)
	}
	return i
}
