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

// Source is the observed state of a source.
type Source struct {
	Spec map[string]any
	// Revision is the revision of the artifact, empty if there is none.
	Revision string
	// Current is true if source-controller has observed the current spec.
	Current bool
	// Unchanged is true if the artifact has the content that the current spec selects at that revision, even if Current is false.
	Unchanged bool
	// Failed is true if source-controller could not fetch the source with its current spec. In that case, Revision is from an earlier
	// artifact.
	Failed bool
	// GatedBy is the GatedSource that has pinned the source, empty if it is not pinned.
	GatedBy string
	// Owned is true if the source is deleted with its GatedSource.
	Owned bool
	// Deleted is true if the source is being deleted.
	Deleted bool
	// Ready is the condition Ready of the source, nil if it has none.
	Ready *metav1.Condition
}

// IsOf returns whether a GatedSource has pinned this source. It is false for a nil source.
func (s *Source) IsOf(g *v1alpha1.GatedSource) bool { return s != nil && s.GatedBy == g.Name }

// Gates is the combined state of all Gates that govern a GatedSource.
type Gates struct {
	// Open is true if all Gates are open.
	Open bool
	// Reason is in CamelCase, and Message is a sentence. Both are empty while a Gate is undecided.
	Reason, Message string
	// HeldBy lists the names of the Gates that keep the pin in place, sorted.
	HeldBy []string
	// Bars returns why a Gate refuses a rollback that was requested at a time, empty if none does. list has the Gates that were checked at
	// admission. waits is true if a Gate must decide first.
	Bars func(list string, at time.Time) (refusal string, waits bool)
}

// Input holds the inputs of a decision at an instant. Sources that do not exist are nil.
type Input struct {
	Original, Pinned *Source
	Gates            Gates
	// Older is the name of an older GatedSource that pins a source of the same kind and name, empty if there is none.
	Older string
	// Stamped is true if the API server stamps approvers.
	Stamped bool
	Now     time.Time
}

// Step is the next action on a GatedSource. The caller writes the status first.
type Step struct {
	// Write is the new spec of the pinned source, nil if it needs no change.
	Write map[string]any
	// Promotes is true if Write is the spec in status.promoting. Otherwise, it is the spec in status.pinned, which another client has changed.
	Promotes bool
	// Again is true if the status must be written and the decision repeated before anything else is written.
	Again bool
	// RollsBack is true if the step grants, refuses or writes a rollback, which needs no open Gate and no release slot.
	RollsBack bool
	// Refused is the request for a rollback that was refused, nil if there was none.
	Refused *v1alpha1.Rollback
	// Promoted is the promotion that was completed, nil if there was none.
	Promoted *v1alpha1.Promotion
	// Waits is the revision that has begun to wait, nil if there is none.
	Waits *v1alpha1.SeenRevision
	// Approved lists new approvals, and Voided lists approvals that no longer count.
	Approved, Voided []v1alpha1.RevisionApproval
}

// decision is one decision on a GatedSource.
type decision struct {
	Input
	g    *v1alpha1.GatedSource
	kind string
	step Step
	// fault is the reason why nothing can be promoted.
	fault fault
}

// fault is the reason why nothing can be promoted. If stalls is true, only a change of a spec or of an object can fix it.
type fault struct {
	reason, message string
	stalls          bool
}

// Decide updates the status of a GatedSource, and returns the next step. Call it again after each write.
func Decide(g *v1alpha1.GatedSource, in Input) Step {
	d := &decision{Input: in, g: g, kind: g.Spec.SourceRef.Kind}
	if g.Spec.Suspend {
		d.suspended()
		return Step{}
	}
	s := &g.Status
	if in.Gates.Open || in.Gates.Reason != "" { // while a Gate is undecided, the list stays
		s.HeldBy = in.Gates.HeldBy[:min(len(in.Gates.HeldBy), v1alpha1.MaxHeldBy)]
	}
	d.complete()
	d.adopt()
	d.fault = d.findFault()
	d.observe()
	d.approve()
	want, reason := d.selectRevision()
	moves := want != "" && d.moves(want, reason)
	d.recordWaiting(want, moves)
	switch {
	case d.rollBack():
	case moves && d.Gates.Open:
		d.promote(want, reason)
	default:
		s.Promoting = nil
		d.restore()
	}
	d.report(want, moves)
	return d.step
}

// Wrote records the spec of the pinned source as the API server stored it, to recognize it later. It returns whether this has changed the
// status.
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

// Acts returns whether the step writes more than observations in the status.
func (s Step) Acts() bool { return s.Again || s.Write != nil }

// findFault returns why nothing can be promoted, zero if nothing prevents it.
func (d *decision) findFault() fault {
	ref, o, named := d.g.Spec.SourceRef, d.Original, d.original()
	switch {
	case d.Pinned != nil && d.Pinned.GatedBy != d.g.Name:
		return fault{v1alpha1.SourceNotOursReason, fmt.Sprintf(msgPinnedTaken,
			d.pinned()), true}
	case d.isTaken():
		return fault{v1alpha1.SourceNotOursReason, fmt.Sprintf(msgPinnedTwice,
			d.pinned(), d.Older), true}
	case o == nil:
		return fault{v1alpha1.SourceNotFoundReason, named + msgNoSource, false}
	case o.GatedBy != "":
		return fault{v1alpha1.SourceNotPinnableReason, fmt.Sprintf(msgSourcePinned, named, o.GatedBy), true}
	case unpinnable(ref.Kind, o.Spec) != "":
		return fault{v1alpha1.SourceNotPinnableReason, named + msgCannotPin + unpinnable(ref.Kind, o.Spec) + ".", true}
	case d.g.Spec.Revision != "" && checkRevision(ref.Kind, d.g.Spec.Revision) != nil:
		return fault{v1alpha1.InvalidSpecReason, "spec.revision: " + checkRevision(ref.Kind, d.g.Spec.Revision).Error(), true}
	case o.Revision == "":
		return fault{v1alpha1.SourceNotFoundReason, named + msgNoArtifact, false}
	case checkRevision(ref.Kind, o.Revision) != nil:
		return fault{v1alpha1.SourceNotPinnableReason, named + msgCannotPin + checkRevision(ref.Kind, o.Revision).Error() + ".", true}
	case o.Current, digestOf(ref.Kind, o.Spec) == d.g.Status.Digest, o.Unchanged && isSuspended(o.Spec) && d.g.Status.Pinned == nil:
		return fault{}
	case isSuspended(o.Spec):
		return fault{v1alpha1.SourceNotFoundReason, named + msgSourceSuspended, false}
	}
	return fault{v1alpha1.SourceNotFoundReason, named + msgNotFetched, false}
}

func (d *decision) original() string { return fmt.Sprintf("%s '%s'", d.kind, d.g.Spec.SourceRef.Name) }

func (d *decision) pinned() string { return fmt.Sprintf("%s '%s'", d.kind, d.g.PinnedName()) }

// observe records the newest revision. If the spec of the source has changed, it starts a new round, which voids all approvals.
func (d *decision) observe() {
	s, at := &d.g.Status, metav1.NewTime(d.Now)
	if d.fault != (fault{}) {
		return
	}
	if digest := digestOf(d.kind, d.Original.Spec); digest != s.Digest {
		if s.Digest != "" {
			d.step.Voided = append(d.step.Voided, s.Approvals...)
			s.Approvals = nil
			s.Round++
		}
		s.Digest = digest
	}
	revision := d.Original.Revision
	if s.Latest != nil && s.Latest.Revision == revision {
		return
	}
	isOld := func(is v1alpha1.SeenRevision) bool { return is.Revision == revision }
	seen := v1alpha1.SeenRevision{Revision: revision, RecordedAt: at}
	if i := slices.IndexFunc(s.Seen, isOld); i >= 0 {
		seen.Skipped = s.Seen[i].Skipped
	}
	s.Latest = &seen
	others := slices.DeleteFunc(slices.Clone(s.Seen), isOld)
	s.Seen = append([]v1alpha1.SeenRevision{seen}, others...)
	s.Seen = s.Seen[:min(len(s.Seen), v1alpha1.MaxSeen)]
}

// complete records the promotion in status.promoting if the pinned source already has its spec.
func (d *decision) complete() {
	p := d.g.Status.Promoting
	if p == nil || !d.isOurs() || !isSpec(d.Pinned.Spec, p.Spec.Raw) {
		return
	}
	d.promoted(*p)
}

func (d *decision) isOurs() bool { return d.Pinned.IsOf(d.g) }

// isTaken returns whether the pinned source belongs to an older GatedSource. It returns false if this GatedSource
// already owns it.
func (d *decision) isTaken() bool { return d.Older != "" && !d.isOurs() }

// promoted records a promotion, and starts the next round.
func (d *decision) promoted(p v1alpha1.Pin) {
	s := &d.g.Status
	promotion := v1alpha1.Promotion{Revision: p.Revision, At: metav1.NewTime(d.Now), Reason: p.Reason, Digest: p.Digest}
	isRollback := p.Reason == v1alpha1.RolledBackReason
	if isRollback && s.Rollback != nil {
		promotion.RequestedBy, promotion.Message = s.Rollback.RequestedBy, s.Rollback.Message
	}
	for i := range s.Seen {
		s.Seen[i].Skipped = isRollback
	}
	if s.Latest != nil {
		s.Latest.Skipped = isRollback
	}
	if s.Pinned != nil {
		promotion.From = s.Pinned.Revision
	}
	for _, a := range s.Approvals {
		switch {
		case a.Revision != p.Revision:
			d.step.Voided = append(d.step.Voided, a)
		case p.Reason == v1alpha1.RevisionApprovedReason:
			promotion.Approvals = append(promotion.Approvals, a)
		}
	}
	s.Pinned, s.Promoting, s.Approvals, s.WaitingSince = &p, nil, nil, nil
	s.Round++
	s.Promotions = append([]v1alpha1.Promotion{promotion}, s.Promotions...)
	s.Promotions = s.Promotions[:min(len(s.Promotions), v1alpha1.MaxPromotions)]
	d.step.Promoted = &promotion
}

// adopt takes over a pinned source that existed before this GatedSource, or before its status was lost.
func (d *decision) adopt() {
	if d.g.Status.Pinned != nil || !d.isOurs() {
		return
	}
	if revision := pinnedTo(d.kind, d.Pinned.Spec); revision != "" {
		spec := runtime.DeepCopyJSON(d.Pinned.Spec)
		delete(spec, suspendField)
		d.promoted(v1alpha1.Pin{
			Revision: revision, Digest: digestOf(d.kind, spec), Spec: runtime.RawExtension{Raw: encode(spec)},
			Reason: v1alpha1.AdoptedReason, At: metav1.NewTime(d.Now),
		})
	}
}

// selectRevision returns the revision to pin according to the spec and the approvals, and the reason. The revision is empty if there is
// none.
func (d *decision) selectRevision() (revision, reason string) {
	s := &d.g.Status
	switch {
	case d.fault != (fault{}):
		return "", ""
	case d.g.Spec.Revision != "":
		return d.knownRevision(d.g.Spec.Revision), v1alpha1.PinnedInSpecReason
	case d.g.RequiredApprovals() > 0:
		return approved(d.g), v1alpha1.RevisionApprovedReason
	case s.Latest.Skipped:
		return "", ""
	}
	return s.Latest.Revision, d.Gates.Reason
}

// knownRevision returns a revision in the form in which it was observed or promoted, empty if it never was. The first revision need not be
// known, because it is the one that ran before the GatedSource existed, but a suspended source must have fetched it.
func (d *decision) knownRevision(revision string) string {
	for _, is := range approvableRevisions(d.g) {
		if same(d.kind, is, revision) {
			return is
		}
	}
	if d.g.Status.Pinned == nil && !isSuspended(d.Original.Spec) {
		return revision
	}
	return ""
}

// approvableRevisions returns all revisions that can be approved.
func approvableRevisions(g *v1alpha1.GatedSource) (revisions []string) {
	for _, is := range g.Status.Seen {
		revisions = append(revisions, is.Revision)
	}
	for _, p := range g.Status.Promotions {
		revisions = append(revisions, p.Revision)
	}
	return revisions
}

// moves returns whether the pin must move to a revision. If the spec of the source has changed, the pin also moves to the same revision,
// provided that it has been approved since or that no approvals are required.
func (d *decision) moves(want, reason string) bool {
	gated := d.g.Status.Pinned
	return gated == nil || !same(d.kind, gated.Revision, want) ||
		gated.Digest != d.g.Status.Digest && (reason == v1alpha1.RevisionApprovedReason || d.g.RequiredApprovals() == 0)
}

// promote records the next pin in the status. The pinned source is written after the status is stored.
func (d *decision) promote(want, reason string) {
	s := &d.g.Status
	next := pin(d.kind, d.Original.Spec, want)
	if p := s.Promoting; p != nil && isSpec(next, p.Spec.Raw) {
		d.step.Write, d.step.Promotes = next, true
		return
	}
	s.Promoting = &v1alpha1.Pin{
		Revision: want, Digest: s.Digest, Spec: runtime.RawExtension{Raw: encode(next)}, Reason: reason, At: metav1.NewTime(d.Now),
	}
	d.step.Again = true
}

// restore writes the spec in status.pinned again if another client has changed or deleted the pinned source, or if the owner reference of
// the source does not match the deletion policy. It ignores the Gates.
func (d *decision) restore() {
	gated := d.g.Status.Pinned
	switch {
	case gated == nil, d.isTaken(), d.Pinned != nil && (!d.isOurs() || d.Pinned.Deleted):
	case d.Pinned == nil, !isSpec(d.Pinned.Spec, gated.Spec.Raw), d.Pinned.Owned != (d.g.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete):
		d.step.Write = decode(gated.Spec.Raw)
	}
}

// recordWaiting records the waiting revision, the time since which it waits, and the number of newer revisions.
func (d *decision) recordWaiting(want string, moves bool) {
	s := &d.g.Status
	pending, before := (*v1alpha1.SeenRevision)(nil), s.Pending
	waiting := d.newer()
	s.Waiting = int32(len(waiting))
	switch {
	case s.Latest == nil:
	case moves:
		pending = &v1alpha1.SeenRevision{Revision: want, RecordedAt: d.seenAt(want)}
	case want == "" && d.g.Spec.Revision == "" && !d.skips() && (s.Pinned == nil || !same(d.kind, s.Pinned.Revision, s.Latest.Revision) || s.Pinned.Digest != s.Digest):
		pending = s.Latest
	}
	switch s.Pending = pending; {
	case pending == nil:
		s.WaitingSince = nil
	case s.WaitingSince == nil && s.Waiting > 0:
		s.WaitingSince = &waiting[s.Waiting-1].RecordedAt
	case s.WaitingSince == nil:
		s.WaitingSince = &metav1.Time{Time: d.Now}
	}
	if pending != nil && (before == nil || before.Revision != pending.Revision) && (!moves || !d.Gates.Open) {
		d.step.Waits = pending
	}
}

// seenAt returns when a revision was first observed, now if it is new.
func (d *decision) seenAt(revision string) metav1.Time {
	for _, is := range d.g.Status.Seen {
		if is.Revision == revision {
			return is.RecordedAt
		}
	}
	return metav1.NewTime(d.Now)
}

// newer returns the revisions that are newer than the pinned one, newest first, without those that are skipped.
func (d *decision) newer() []v1alpha1.SeenRevision {
	s := &d.g.Status
	n := len(s.Seen)
	if s.Pinned != nil {
		if i := slices.IndexFunc(s.Seen, func(is v1alpha1.SeenRevision) bool { return same(d.kind, is.Revision, s.Pinned.Revision) }); i >= 0 {
			n = i
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Seen[:n]), func(is v1alpha1.SeenRevision) bool { return is.Skipped && d.g.RequiredApprovals() == 0 })
}
