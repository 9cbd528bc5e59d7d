package promotion_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// moved returns a world with closed Gates in which the revisions were promoted one after the other.
func moved(required int32, revisions ...string) *world {
	w := newWorld(required, revisions[0])
	for _, r := range revisions {
		w.arrives(r).settles()
		if required > 0 {
			w.approves("alice", r).settles()
		}
		w.fetched()
	}
	return w.closed().settles()
}

func TestRollbackMovesPinWhileGatesAreClosed(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	const rolledBack, waitsForGate = " Approved=True/RolledBack Ready=True/Succeeded", " Approved=False/GateClosed Ready=True/Succeeded"
	const upToDate, needsApproval = " Approved=True/UpToDate Ready=True/Succeeded", " Approved=False/WaitingApproval Ready=True/Succeeded"
	back := func(required int32) *world { return moved(required, a, b).rollback(a).settles().fetched() }
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"while they stay closed":                    {back(whenOpen), a + rolledBack},
		"and keeps it when they open":               {back(whenOpen).open().settles(), a + rolledBack},
		"and a newer one waits":                     {back(whenOpen).arrives(c).settles(), a + waitsForGate},
		"until a newer one and open gates":          {back(whenOpen).arrives(c).settles().open().settles().fetched(), c + upToDate},
		"and keeps it when an older one is pushed":  {back(whenOpen).open().arrives(a).settles().arrives(b).settles(), a + rolledBack},
		"and a later promotion ends it":             {back(whenOpen).arrives(c).open().settles().arrives(b).settles().fetched(), b + upToDate},
		"with approvals":                            {back(whenApproved), a + needsApproval},
		"with approvals, also when they open":       {back(whenApproved).open().settles(), a + needsApproval},
		"with approvals, until the next one":        {back(whenApproved).open().approves("bob", b).settles().fetched(), b + upToDate},
		"with approvals, which wait for gates":      {back(whenApproved).approves("bob", b).settles(), a + waitsForGate},
		"although their approval is no longer used": {moved(whenApproved, a, b).arrives(c).settles().approves("bob", c).settles().rollback(a).settles().fetched().open().settles(), a + needsApproval},
		"twice":             {moved(whenOpen, a, b, c).rollback(b).settles().rollback(a).settles().fetched(), a + rolledBack},
		"and forward again": {back(whenOpen).rollback(b).settles().fetched(), b + rolledBack},
		"although the source is missing": {func() *world {
			w := moved(whenOpen, a, b)
			w.in.Original = nil
			return w.rollback(a).settles().fetched()
		}(), a + " Approved=False/SourceNotFound Ready=False/SourceNotFound"},
		"although the pinned source is missing": {func() *world {
			w := moved(whenOpen, a, b)
			w.in.Pinned = nil
			return w.rollback(a).settles().fetched()
		}(), a + rolledBack},
		"while gates are open":       {moved(whenOpen, a, b).open().rollback(a).settles().fetched(), a + rolledBack},
		"while gates are undecided":  {moved(whenOpen, a, b).bars("", true).rollback(a).settles(), b + upToDate},
		"after they were undecided":  {moved(whenOpen, a, b).bars("", true).rollback(a).settles().bars("", false).settles().fetched(), a + rolledBack},
		"unless approvals are ended": {func() *world { w := back(whenApproved); w.g.Spec.Approvals = nil; return w.open().settles() }(), a + rolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.world.is(); got != tc.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tc.want, tc.world.message("Approved"))
			}
		})
	}
}

func TestRollbackIsRecorded(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := moved(whenOpen, a, b).rollback(a).settles().fetched()
	p, r := w.g.Status.Promotions[0], w.g.Status.Rollback
	if p.Revision != a || p.From != b || p.Reason != v1alpha1.RolledBackReason || p.RequestedBy != "alice" || p.Message != "crashes" {
		t.Errorf("the promotion is %+v", p)
	}
	if r.Revision != a || r.From != b || r.RequestedBy != "alice" || r.Message != "crashes" || r.Refused != "" || !r.HandledAt.After(r.RequestedAt.Time) {
		t.Errorf("the record is %+v", r)
	}
	if got := w.message("Approved"); !strings.HasPrefix(got, "'"+a+"' is pinned by a rollback, requested by alice: crashes. ") {
		t.Errorf("got %q", got)
	}
	if s := w.g.Status; s.Waiting != 0 || s.WaitingSince != nil || s.Pending != nil || !reflect.DeepEqual(s.HeldBy, []string{"shop/nights"}) {
		t.Errorf("%+v", s)
	}
	if w.open().settles(); w.g.Status.HeldBy != nil {
		t.Errorf("held by %v although all Gates are open", w.g.Status.HeldBy)
	}
}

func TestRollbackIsRefused(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	request := func(at time.Duration, replace ...string) func(*world) {
		return func(w *world) {
			value := promotion.FormatRollback(w.g, a, w.in.Now.Add(at))
			w.rollback(a).g.Annotations[v1alpha1.RollbackRequestedAtAnnotation] = strings.NewReplacer(replace...).Replace(value)
		}
	}
	for name, tc := range map[string]struct {
		request  func(*world)
		want     string
		recorded bool
	}{
		"by a gate":          {func(w *world) { w.bars("gate 'shop/nights' permits no pass", false).rollback(a) }, "is refused: gate 'shop/nights' permits no pass.", true},
		"not promoted":       {func(w *world) { w.rollback(c) }, "the revision is not in status.promotions", true},
		"only observed":      {func(w *world) { w.arrives(c).settles().rollback(c) }, "the revision is not in status.promotions", true},
		"pinned already":     {func(w *world) { w.rollback(b) }, "the revision is pinned already", true},
		"pinned in the spec": {func(w *world) { w.g.Spec.Revision = b; w.rollback(a) }, "spec.revision pins '" + b + "', change it instead", true},
		"not ours":           {func(w *world) { w.in.Pinned.GatedBy = "else"; w.rollback(a) }, "does not belong to this GatedSource", true},
		"in the future":      {request(2 * time.Minute), "but a rollback starts immediately", true},
		"long ago":           {request(-time.Hour), "does not count: it was requested more than 1h0m0s ago", false},
		"another object":     {request(0, uid[:8], "00000000"), "does not count: it names the uid of another object", false},
		"a wrong form":       {request(0, "uid=", "id="), "does not count: it must be TIME,uid=UID,revision=REVISION", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := moved(whenOpen, a, b)
			n := len(w.written)
			tc.request(w)
			w.settles()
			var refused []*v1alpha1.Rollback
			for _, s := range w.steps {
				if s.Refused != nil {
					refused = append(refused, s.Refused)
				}
			}
			if got := w.message("Approved"); !strings.Contains(got, tc.want) && (len(refused) == 0 || !strings.Contains(refused[0].Refused, tc.want)) {
				t.Errorf("got %q, %+v; want %q", got, refused, tc.want)
			}
			if tc.recorded != (w.g.Status.Rollback != nil) || len(refused) != len(map[bool][]int{true: {1}}[tc.recorded]) {
				t.Errorf("recorded: %+v, refused: %v", w.g.Status.Rollback, refused)
			}
			if w.g.Status.Pinned.Revision != b || len(w.written) != n || w.g.Status.Promoting != nil {
				t.Errorf("it has moved: %s, %v", w.is(), w.written[n:])
			}
			if w.bars("", false); name == "in the future" {
				w.in.Now = w.in.Now.Add(3 * time.Minute)
				if w.settles(); w.g.Status.Pinned.Revision != b {
					t.Error("a refused request takes effect later")
				}
			}
			w.g.Spec.Revision, w.in.Pinned.GatedBy = "", w.g.Name
			w.in.Now = w.in.Now.Add(time.Minute)
			if w.rollback(a).settles(); w.g.Status.Pinned.Revision != a {
				t.Errorf("a later request is refused: %s", w.message("Approved"))
			}
		})
	}
}

func TestRollbackCountsOnce(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	w := moved(whenOpen, a, b).rollback(a)
	old := w.g.Annotations[v1alpha1.RollbackRequestedAtAnnotation]
	w.settles().open().arrives(c).settles()
	if w.g.Status.Pinned.Revision != c {
		t.Fatal(w.is())
	}
	if w.rollback(b).settles(); w.g.Status.Pinned.Revision != b {
		t.Fatal(w.is())
	}
	w.g.Annotations[v1alpha1.RollbackRequestedAtAnnotation] = old // as Flux restores it from Git
	if w.settles(); w.g.Status.Pinned.Revision != b || !strings.Contains(w.message("Approved"), "a later request was handled before") {
		t.Errorf("%s: %s", w.is(), w.message("Approved"))
	}
}

// A process that ends between the two writes leaves the decision in the status, and the Gates may have changed since.
func TestGrantedRollbackContinuesAfterCrash(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"unchanged":                  {func(*world) {}, a},
		"without the request":        {func(w *world) { w.g.Annotations = nil }, a},
		"a gate opens":               {func(w *world) { w.open() }, a},
		"a newer revision":           {func(w *world) { w.open().arrives(c) }, a},
		"the source is missing":      {func(w *world) { w.in.Original = nil }, a},
		"a gate is undecided":        {func(w *world) { w.bars("", true) }, b},
		"a gate refuses it":          {func(w *world) { w.bars("gate 'shop/freeze' holds it as well", false) }, b},
		"another name in the way":    {func(w *world) { w.in.Pinned.GatedBy = "else" }, b},
		"it is written":              {func(w *world) { w.in.Pinned.Spec = runtime.DeepCopyJSON(w.in.Pinned.Spec); pinTo(w, "a") }, a},
		"suspended":                  {func(w *world) { w.g.Spec.Suspend = true }, b},
		"another request is waiting": {func(w *world) { w.rollback(c) }, a},
	} {
		t.Run(name, func(t *testing.T) {
			w := moved(whenOpen, a, b).rollback(a)
			if step := w.once(); !step.Again || !step.RollsBack || step.Write != nil || w.g.Status.Promoting == nil || w.g.Status.Pinned.Revision != b {
				t.Fatalf("it is not recorded before its effect: %+v", step)
			}
			tc.change(w)
			if w.settles(); w.g.Status.Pinned.Revision != tc.want {
				t.Errorf("%s: %s", w.is(), w.message("Approved"))
			}
			if r := w.g.Status.Rollback; name == "a gate refuses it" && (r.Refused == "" || w.g.Status.Promoting != nil) {
				t.Errorf("it is not recorded as refused: %+v", r)
			}
		})
	}
}

func pinTo(w *world, letter string) {
	w.in.Pinned.Spec["ref"] = map[string]any{"branch": "main", "commit": strings.Repeat(letter, 40)}
}

// A changed spec of the source waits for Gates or an approval, so a rollback must not apply it.
func TestRollbackKeepsSpecOfPinnedSource(t *testing.T) {
	a, b := commit("a"), commit("b")
	for _, required := range []int32{whenOpen, whenApproved} {
		w := moved(required, a, b)
		w.edits("url", "https://evil.example.com/apps")
		w.settles().rollback(a).settles()
		want := map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main", "commit": strings.Repeat("a", 40)}}
		if got := w.in.Pinned.Spec; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
}

func TestRollbackPinsImmutablePartOfEachKind(t *testing.T) {
	chart := func(repository string) map[string]any {
		return map[string]any{"version": "6.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": repository}}
	}
	for name, tc := range map[string]struct {
		kind, first, second string
		spec, changed, want map[string]any
	}{
		"Git tag": {"GitRepository", "v1@sha1:" + strings.Repeat("a", 40), "v2@sha1:" + strings.Repeat("b", 40), map[string]any{"ref": map[string]any{"semver": ">0"}}, nil,
			map[string]any{"ref": map[string]any{"commit": strings.Repeat("a", 40)}}},
		"OCI digest": {"OCIRepository", digest("a"), digest("b"), map[string]any{"ref": map[string]any{"tag": "latest"}}, nil,
			map[string]any{"ref": map[string]any{"digest": "sha256:" + strings.Repeat("a", 64)}}},
		"chart": {"HelmChart", "6.5.0", "6.5.1", chart("shop"), nil,
			map[string]any{"version": "6.5.0", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "shop"}}},
		"chart from another repository": {"HelmChart", "6.5.0", "6.5.1", chart("shop"), chart("other"),
			map[string]any{"version": "6.5.1", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "other"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenOpen, tc.first)
			w.g.Spec.SourceRef.Kind, w.in.Original.Spec = tc.kind, tc.spec
			w.settles().arrives(tc.second)
			if tc.changed != nil {
				w.in.Original.Spec = tc.changed
			}
			w.settles().closed().rollback(tc.first).settles()
			if got := w.in.Pinned.Spec; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %v\nwant %v\n%s", got, tc.want, w.message("Approved"))
			}
		})
	}
}

func TestPreviousRevisionSkipsRolledBackOnes(t *testing.T) {
	a, b, c, d := commit("a"), commit("b"), commit("c"), commit("d")
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"nothing pinned":             {newWorld(whenOpen, a), ""},
		"one promotion":              {moved(whenOpen, a), ""},
		"the one before":             {moved(whenOpen, a, b, c), b},
		"before a rollback":          {moved(whenOpen, a, b, c).rollback(b).settles(), a},
		"before two rollbacks":       {moved(whenOpen, a, b, c).rollback(b).settles().rollback(a).settles(), ""},
		"a promotion since":          {moved(whenOpen, a, b, c).rollback(b).settles().open().arrives(d).settles(), b},
		"a promotion of the changed": {func() *world { w := moved(whenOpen, a, b).open(); w.edits("url", "x"); return w.settles() }(), a},
	} {
		if got := promotion.Previous(tc.world.g); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRollbackCountsAfterRefusedOneInTheFuture(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := moved(whenOpen, a, b)
	w.g.Annotations = map[string]string{v1alpha1.RollbackRequestedAtAnnotation: promotion.FormatRollback(w.g, a, w.in.Now.Add(time.Hour))}
	if w.settles(); w.g.Status.Rollback == nil || w.g.Status.Rollback.Refused == "" {
		t.Fatalf("it is not refused: %+v", w.g.Status.Rollback)
	}
	if w.rollback(a).settles(); w.g.Status.Pinned.Revision != a {
		t.Errorf("a correct request is refused: %s", w.message("Approved"))
	}
}
