package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/fields"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Reason describes the waiting change of a held object.
type Reason string

// The reasons of a Waiting.
const (
	// NewRevision means that the source of the object has a revision other than the applied one.
	NewRevision Reason = "NewRevision"
	// NothingNew means that the revision of the source is in effect, or that no renewal is due.
	NothingNew Reason = "NothingNew"
	// NotFetched means that the next revision is unknown, because the object is a source or creates revisions itself.
	NotFetched Reason = "NotFetched"
	// Stopped means that the waiting change is unknown, because the object is suspended and of an added kind.
	Stopped Reason = "Stopped"
	// RenewalDue means that cert-manager would have renewed the certificate.
	RenewalDue Reason = "RenewalDue"
	// Passes means that the object has a pass. Since is the time when the pass began.
	Passes Reason = "Passes"
	// SourceUnknown means that the source does not exist or has no artifact, or that the user is not permitted to read it.
	SourceUnknown Reason = "SourceUnknown"
)

// Waiting describes the waiting change of a held object.
type Waiting struct {
	Metadata Metadata `json:"metadata"`
	Target   Ref      `json:"target"`
	// Gates are the names of the Gates that hold the object, as namespace/name. They are empty if the names do not fit into its annotations.
	Gates []string `json:"gates"`
	// Revision is the revision in effect, empty if there is none.
	Revision string `json:"revision,omitempty"`
	Reason   Reason `json:"reason"`
	// Waits is the revision that is waiting, empty if there is none.
	Waits string `json:"waits,omitempty"`
	// Since is the time when the revision began to wait, or when the renewal is due. It is missing if unknown.
	Since *metav1.Time `json:"since,omitempty"`
	// Source is the object whose revision is waiting.
	Source *Ref `json:"source,omitempty"`
	// Approvals are the approvals of the waiting revision. They are missing if no revision is waiting for approval.
	Approvals *Approvals `json:"approvals,omitempty"`
}

// shortReasons contains short texts for all reasons except a new revision.
var shortReasons = map[Reason]string{
	NothingNew: "nothing new", NotFetched: "not fetched", Stopped: "stopped", RenewalDue: "renewal",
	Passes: "a pass allows one reconciliation", SourceUnknown: "source unknown",
}

// Short returns a short text about the waiting change, with revisions in the form of ShortRevision.
func (w *Waiting) Short() string {
	if w.Reason == NewRevision {
		return ShortRevision(w.Waits)
	}
	return shortReasons[w.Reason]
}

// IsNew returns whether something may be waiting.
func (w *Waiting) IsNew() bool { return w.Reason != NothingNew }

// IsHeld returns whether Gates hold an object, even while it has a pass. The object must include its managed fields.
func IsHeld(obj *unstructured.Unstructured) bool {
	if _, ok := target.As[target.Pinner](obj); ok { // such an object is held without a write
		return observe(obj).IsHeld()
	}
	if target.Of(obj) == nil || text(obj, "metadata", "annotations", v1alpha1.HeldByAnnotation) == "" && len(target.Lever(&target.Object{Unstructured: *obj})) == 0 {
		return false
	}
	return observe(obj).IsHeld() || passing(obj) != nil
}

// passing returns the pass that is in progress, nil if there is none.
func passing(obj *unstructured.Unstructured) *verdict.Pass {
	if text(obj, "metadata", "annotations", v1alpha1.PassAnnotation) == "" || len(verdict.HeldBy(obj)) == 0 || observe(obj) != target.Free {
		return nil
	}
	t := &target.Object{Unstructured: *obj.DeepCopy()}
	target.Trim(&t.Unstructured, verdict.Us)
	if p := verdict.PassOf(t); p.State == verdict.PassInProgress {
		return &p
	}
	return nil
}

func observe(obj *unstructured.Unstructured) target.State {
	t := &target.Object{Unstructured: *obj.DeepCopy()}
	target.Trim(&t.Unstructured, verdict.Us)
	return target.Of(&t.Unstructured).Observe(t, verdict.Us)
}

// Wait returns the waiting change of a held object. source is the object returned by SourceOf, nil if it does not exist or is
// unknown.
func Wait(obj, source *unstructured.Unstructured, now time.Time) Waiting {
	w := Waiting{Metadata: Metadata{obj.GetNamespace(), obj.GetName()}, Target: RefOf(obj), Gates: verdict.HeldBy(obj), Revision: inEffect(obj), Reason: NotFetched}
	if w.Gates == nil {
		w.Gates = []string{}
	}
	if ref, ok := SourceOf(obj); ok {
		w.Source = &ref
		w.compare(obj, source)
	}
	if g := gatedSource(obj); g != nil {
		w.pending(g)
	}
	if p := passing(obj); p != nil {
		w.Reason, w.Since = Passes, timeOf(p.Since)
	}
	if w.Source != nil || w.Reason == Passes {
		return w
	}
	if renewer, ok := target.As[target.Renewer](obj); ok {
		w.renewal(renewer, obj, now)
	} else if _, added := target.Added(obj.GroupVersionKind().GroupKind()); added {
		w.Reason = Stopped
	}
	return w
}

var (
	helmChart   = fields.New[sourcev1.HelmChart]()
	updatedPath = fields.Path(helmChart, &helmChart.Status.Artifact.LastUpdateTime)
)

// inEffect returns the revision that an object has applied, or that a source has.
func inEffect(obj *unstructured.Unstructured) string {
	if applier, ok := target.As[target.Applier](obj); ok {
		return applier.Applied(obj)
	}
	return target.Revision(&target.Object{Unstructured: *obj})
}

// compare compares the revision in effect with the revision of the source, and sets the waiting
// revision.
func (w *Waiting) compare(obj, source *unstructured.Unstructured) {
	w.Reason = SourceUnknown
	applier, ok := target.As[target.Applier](obj)
	if !ok || source == nil {
		return
	}
	pending, known := applier.Pending(obj, source)
	if !known {
		return
	}
	if w.Reason = NothingNew; pending == "" {
		return
	}
	w.Reason, w.Waits = NewRevision, pending
	if at, err := time.Parse(time.RFC3339, text(source, updatedPath...)); err == nil && pending == text(source, target.ArtifactRevisionPath...) {
		w.Since = timeOf(at)
	}
}

// renewal sets when the renewal is due, and whether it is waiting.
func (w *Waiting) renewal(renewer target.Renewer, obj *unstructured.Unstructured, now time.Time) {
	t := &target.Object{Unstructured: *obj.DeepCopy()}
	target.Trim(&t.Unstructured, verdict.Us)
	due := renewer.RenewalDue(t, observe(obj))
	w.Since, w.Reason = timeOf(due), NothingNew
	if !due.IsZero() && !due.After(now) {
		w.Reason = RenewalDue
	}
}

// Compare orders by namespace, kind and name of the object, and then by the Gates.
func (w *Waiting) Compare(other *Waiting) int {
	return cmp.Or(strings.Compare(w.Target.Namespace, other.Target.Namespace), strings.Compare(w.Target.Kind, other.Target.Kind),
		strings.Compare(w.Target.Name, other.Target.Name), slices.Compare(w.Gates, other.Gates))
}
