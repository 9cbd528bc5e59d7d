package policies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/tests/docs"
)

// annotated returns the arguments that set the approval annotation of the exception hotfix.
func annotated(value string) []string {
	return []string{"annotate", "--overwrite", "gtex", "hotfix", approveAt + "=" + value}
}

// command matches the approval command in messages of the API server and the controller.
var command = regexp.MustCompile(`kubectl -n \S+ annotate --overwrite gateexception/hotfix approve\.gate\.fluxcd\.io/requestedAt=\$\(date -u \+%Y-%m-%dT%H:%M:%SZ\),generation=\d+,uid=[0-9a-f-]{36}`)

// pasted runs the command in a text, like a person who pastes it into a shell.
func (w *world) pasted(p *person, text string) {
	w.Helper()
	found := command.FindAllString(text, -1)
	if len(found) != 1 {
		w.Fatalf("the text has %d commands: %q", len(found), text)
	}
	if out, err := (docs.Reader{Kubeconfig: p.Kubeconfig}).Bash(w.Context(), found[0]); err != nil {
		w.Errorf("%s: %v: %s", found[0], err, out)
	}
}

// waiting returns the message of the controller about the exception hotfix.
func (w *world) waiting() string {
	w.Helper()
	return meta.FindStatusCondition(w.exception("hotfix").Status.Conditions, v1alpha1.ActiveCondition).Message
}

// again returns the end of a refusal, which has the command for another approval.
func again(e *v1alpha1.GateException) string {
	return fmt.Sprintf("; read it again, and approve the current version: kubectl -n %s annotate --overwrite gateexception/%s "+
		"approve.gate.fluxcd.io/requestedAt=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),generation=%d,uid=%s", e.Namespace, e.Name, e.Generation, e.UID)
}

func TestExceptionOpensOnceApprovedByOthers(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(4)
	odd := w.as("1 bob", exceptionApprover) // a name extends to the end of its line, including blanks and digits
	w.createException(w.as("ona", exceptionEditor, viewer), "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	for range 2 { // one approval by the same person, even if repeated
		w.allowed(odd, w.approval()...)
		w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "1 bob")
		w.allowed(odd, "annotate gtex hotfix "+approveAt+"-")
	}
	for _, name := range []string{"x\n1 carl", "bob"} {
		w.allowed(w.as(name, exceptionApprover), w.approval()...)
	}
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "1 bob", "x 1 carl", "bob")
	w.allowed(w.as("bob ", exceptionApprover), w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "1 bob", "x 1 carl", "bob", "bob ")
}

func TestEditVoidsApprovals(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	edith := w.as("edith", exceptionEditor, viewer, exceptionApprover)
	w.createException(ona, "hotfix", opens(1), nil)
	seen := w.approvalOf("hotfix")
	w.allowed(alice, annotated(seen)...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	w.allowed(ona, "label gtex hotfix a=b")
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")

	w.allowed(ona, edit(opens(48))...)
	w.allowed(ona, "annotate", "--overwrite", "gtex", "hotfix", approveBy+"="+w.lines("2 alice"))
	w.stampedException("hotfix", "ona", "1 alice") // outdated, because its generation is another one
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	// The edit happens between the read and the approval, or a client restores an older approval.
	cause := func(p *person) string {
		return "user " + p.Name + " may not approve generation=1 of gate exception " + w.Namespace + "/hotfix: the current one is generation=2" + again(w.exception("hotfix"))
	}
	w.allowed(alice, "annotate gtex hotfix "+approveAt+"-")
	for _, p := range []*person{alice, edith} {
		for _, manager := range []string{"kubectl-annotate", "kustomize-controller", "restore"} {
			w.refused(p, cause(p), append(annotated(seen), "--field-manager="+manager)...)
		}
	}
	out, _ := alice.kubectl(w.Context(), w.Namespace, annotated(seen)...)
	w.pasted(alice, out)
	w.stampedException("hotfix", "ona", "2 alice")
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	seen = w.approvalOf("hotfix")

	// Restoring the old spec results in another generation.
	w.allowed(ona, ttl("1h")...)
	w.allowed(ona, edit(`{"ttlAfterExpired":null}`)...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.refused(alice, "user alice may not approve generation=2 of gate exception "+w.Namespace+"/hotfix: the current one is generation=4", annotated(seen)...)

	// An approver who edits becomes an author.
	w.pasted(edith, w.waiting())
	w.reported(g, "hotfix", v1alpha1.InForceReason, "edith")
	w.is("the command of an approved exception", command.FindString(w.waiting()), "")
	w.allowed(edith, ttl("2h")...)
	w.refused(edith, "user edith wrote gate exception", w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
}

// The author gives an approver the number of a future generation.
func TestApprovalInAdvanceIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	e := w.createException(ona, "hotfix", opens(1), nil)
	e.Generation = 2
	next := gate.FormatApproval(e, time.Now())
	w.refused(alice, "user alice may not approve generation=2 of gate exception "+w.Namespace+"/hotfix: the current one is generation=1", annotated(next)...)
	w.allowed(ona, edit(opens(48))...)
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(alice, annotated(next)...) // now this generation exists
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// While an approver reads the exception, the author replaces it with one of the same name and generation, or restores a backup of it.
func TestRecreatedExceptionIsNotApproved(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	older := w.createException(ona, "hotfix", opens(1), nil)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	seen, lines := w.approvalOf("hotfix"), w.exception("hotfix").Annotations[approveBy]
	backup := w.exception("hotfix")
	w.allowed(ona, "delete gtex hotfix")
	w.decided(g, metav1.ConditionFalse)
	w.allowed(ona, "apply", "--server-side", "-f", exceptionFile("hotfix", opens(48), map[string]string{authors: "bob", approveBy: lines}))
	newer := w.exception("hotfix")
	if newer.Generation != older.Generation || newer.UID == older.UID {
		t.Fatalf("generation %d of %s", newer.Generation, newer.UID)
	}
	cause := "user alice may not approve gate exception " + w.Namespace + "/hotfix with uid=" + string(older.UID) + ": that is the UID of another exception" + again(newer)
	w.refused(alice, cause, annotated(seen)...)
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	w.allowed(ona, "delete gtex hotfix")
	backup.ResourceVersion, backup.UID = "", ""
	if err := ona.Client.Create(w.Context(), backup.DeepCopy()); err == nil || !strings.Contains(err.Error(), "while creating it") {
		t.Errorf("restored with its approval: %v", err)
	}
	delete(backup.Annotations, approveAt)
	w.Must(ona.Client.Create(w.Context(), backup))
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

func TestApprovalWithoutSubjectIsRefused(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	e := w.createException(ona, "hotfix", "", nil)
	want := "denied request: user alice approves no version of gate exception " + w.Namespace + "/hotfix: approve.gate.fluxcd.io/requestedAt must have the form " +
		"<time>,generation=<number>,uid=<uid>" + again(e)
	right := gate.FormatApproval(e, time.Now())
	for _, value := range []string{
		now(), "", "yes", now() + "/3", now() + "/30m", now() + ",generation=1", now() + ",uid=" + string(e.UID), strings.TrimPrefix(right, "2"),
		",generation=1,uid=" + string(e.UID), right + ",by=alice", right + ",", right + "\n", right + "\n" + right, "x\n" + right, strings.Repeat("x", 100_000), strings.Repeat("x", 100_000) + right,
	} {
		w.refused(alice, want, annotated(value)...)
		out, _ := alice.kubectl(w.Context(), w.Namespace, annotated(value)...)
		w.is("errors", strings.Count(out, "denied request")+strings.Count(strings.TrimSpace(out), "\n"), 1)
	}
}

// The stamps do not depend on the refusal, and the controller reports an approval that was not refused.
func TestApprovalOfOtherGenerationIsNotStamped(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", opens(1), nil)
	seen := w.approvalOf("hotfix")
	w.allowed(ona, edit(opens(48))...)
	const form = "it must be TIME,generation=NUMBER,uid=UID, such as 2026-12-19T12:00:00Z,generation=3,uid=6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	refuses := func(want bool) {
		w.until(fmt.Sprintf("the approval is refused: %t", want), func() (bool, any) {
			out, err := alice.kubectl(w.Context(), w.Namespace, append(annotated(now()), "--dry-run=server")...)
			return want == (err != nil), out
		})
	}
	w.without("gate-exception-verb", []string{validating}, func() {
		refuses(false)
		for value, because := range map[string]string{
			seen: "generation 1 is not the current one", now(): form, strings.Replace(w.approvalOf("hotfix"), "uid=", "uid=0", 1): form,
		} {
			w.allowed(alice, annotated(value)...)
			w.stampedException("hotfix", "ona", "")
			w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
			if want := fmt.Sprintf("; the approval %q does not count: %s; to approve generation 2", value, because); !strings.Contains(w.waiting(), want) {
				t.Errorf("want %q in %s", want, w.waiting())
			}
		}
		w.allowed(alice, w.approval()...)
		w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	})
	refuses(true)
}

// isImpossible returns whether a text has the form of a time but is not valid, such as 30 February. The policy only checks the form.
func isImpossible(at string) bool {
	_, err := time.Parse(time.RFC3339, at)
	return err != nil && regexp.MustCompile(`^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?(Z|[+-][0-9:]{5})$`).MatchString(at)
}

// The API server and the controller must accept the same approvals.
func TestAPIServerAndControllerParseApprovalsEqually(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", "", nil)
	for i := range 11 { // until a generation with two digits
		w.allowed(ona, ttl(fmt.Sprintf("%dh", i+1))...)
	}
	e := w.exception("hotfix")
	const characters = ",,=:.-+/ \n\t\"'\\TZtz0123456789abcdefx٣é\x7f"
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	allowed := 0
	for i := range 200 {
		value := []rune(gate.FormatApproval(e, time.Unix(random.Int64N(250_000_000_000), 0)))
		for range i % 3 {
			at := random.IntN(len(value) + 1) // or at the end
			one := []rune(characters)[random.IntN(len([]rune(characters)))]
			rest := value[at:]
			if len(rest) > 0 && random.IntN(2) == 0 {
				rest = rest[1:]
			}
			if len(rest) == len(value)-at || random.IntN(2) == 0 {
				rest = append([]rune{one}, rest...)
			}
			value = append(value[:at:at], rest...)
		}
		if at, _, _ := strings.Cut(string(value), ","); isImpossible(at) {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{approveAt: string(value)}}})
		w.Must(err)
		after := e.DeepCopy()
		err = alice.Client.Patch(w.Context(), after, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
		stamped := strings.HasSuffix("\n"+after.Annotations[approveBy], "\n"+stampsOf(e, "12 alice"))
		if ours := gate.CheckApproval(e, string(value)); (err == nil) != (ours == nil) || stamped != (ours == nil) {
			t.Errorf("%q: the API server returned %v, stamped %t, the controller accepts %v", string(value), err, stamped, ours)
		}
		if err == nil {
			allowed++
		}
	}
	if allowed < 50 || allowed > 150 {
		t.Errorf("%d of 200 are allowed", allowed)
	}
}

// Many users edit while many approve. In any order, no user may be recorded as the approver of a spec that they have not read.
func TestApprovalOfConcurrentlyEditedExceptionIsRefused(t *testing.T) {
	w := newWorld(t)
	const approvers, rounds = 4, 12
	ona := w.as("ona", exceptionEditor, viewer)
	w.createException(ona, "hotfix", "", nil)
	patch := func(p *person, format string, args ...any) (*v1alpha1.GateException, error) {
		e := &v1alpha1.GateException{}
		e.Name, e.Namespace = "hotfix", w.Namespace
		return e, p.Client.Patch(w.Context(), e, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)), client.FieldOwner(p.Name))
	}
	if _, err := patch(ona, `{"spec":{"ttlAfterExpired":"1000m"}}`); err != nil { // there must be a spec before the first read
		t.Fatal(err)
	}
	edits := make(chan int)
	var editing, approving sync.WaitGroup
	editing.Go(func() {
		for minutes := range edits {
			if _, err := patch(ona, `{"spec":{"ttlAfterExpired":"%dm"}}`, minutes); err != nil {
				t.Error(err)
			}
		}
	})
	var mu sync.Mutex
	approved, refused := 0, 0
	for i := range approvers {
		p := w.as(fmt.Sprintf("approver-%d", i), exceptionApprover)
		approving.Go(func() {
			for round := range rounds {
				edits <- 1 + i*rounds + round // begins concurrently with the reads
				read := &v1alpha1.GateException{}
				if err := p.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "hotfix"}, read); err != nil {
					t.Error(err)
					return
				}
				after, err := patch(p, `{"metadata":{"annotations":{%q:%q}}}`, approveAt, gate.FormatApproval(read, time.Now()))
				mu.Lock()
				switch {
				case err == nil:
					approved++
					if after.Spec.TTLAfterExpired.String() != read.Spec.TTLAfterExpired.String() || after.Generation != read.Generation {
						t.Errorf("%s read %s of generation %d, but approved %s of generation %d", p.Name, read.Spec.TTLAfterExpired, read.Generation, after.Spec.TTLAfterExpired, after.Generation)
					}
				case strings.Contains(err.Error(), "the current one is generation="):
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	approving.Wait()
	close(edits)
	editing.Wait()
	if approved+refused != approvers*rounds || approved == 0 || refused == 0 {
		t.Errorf("%d approved, %d refused", approved, refused)
	}
}
