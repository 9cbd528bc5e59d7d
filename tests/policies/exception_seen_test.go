package policies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// annotated returns the arguments that set the approval of the exception hotfix to a
// value.
func annotated(value string) []string {
	return []string{"annotate", "--overwrite", "gtex", "hotfix", approveAt + "=" + value}
}

// command is the one that the API server and the controller say approves what is there.
var command = regexp.MustCompile(`kubectl -n \S+ annotate --overwrite gateexception/hotfix approve\.gate\.fluxcd\.io/requestedAt=\$\(date -u \+%Y-%m-%dT%H:%M:%SZ\),generation=\d+,uid=[0-9a-f-]{36}`)

// pasted runs the command in a text as a person does who pastes it into a shell.
func (w *world) pasted(p *person, text string) {
	w.Helper()
	found := command.FindAllString(text, -1)
	if len(found) != 1 {
		w.Fatalf("%d commands in %q", len(found), text)
	}
	if out, err := (docs.Reader{Kubeconfig: p.Kubeconfig}).Bash(w.Context(), found[0]); err != nil {
		w.Errorf("%s: %v: %s", found[0], err, out)
	}
}

// waiting returns what the controller says of the exception hotfix.
func (w *world) waiting() string {
	w.Helper()
	return meta.FindStatusCondition(w.exception("hotfix").Status.Conditions, v1alpha1.ActiveCondition).Message
}

// again is how a refusal ends.
func again(e *v1alpha1.GateException) string {
	return fmt.Sprintf("; read it again, and approve what you have read: kubectl -n %s annotate --overwrite gateexception/%s "+
		"approve.gate.fluxcd.io/requestedAt=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),generation=%d,uid=%s", e.Namespace, e.Name, e.Generation, e.UID)
}

func TestTheControllerSaysHowToApproveWhatIsThere(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(2)
	ona, alice, bob := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover), w.as("bob", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.pasted(alice, w.waiting())
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "alice")
	w.allowed(ona, ttl("1h")...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.pasted(alice, w.waiting())
	soon := time.Now().Truncate(time.Second).Add(time.Second) // in the same second, both would say the same
	w.Eventually("another second", func() error {
		if time.Now().Before(soon) {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	w.pasted(bob, w.waiting())
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice", "bob")
	if text := w.waiting(); command.MatchString(text) {
		t.Errorf("it is approved, and says %s", text)
	}
}

// The edit lands between the reading and the approval.
func TestAnApprovalOfWhatWasEditedMeanwhileIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	seen, said := w.approvalOf("hotfix"), w.waiting()
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":`+opens(48)+`}`)
	cause := "user alice may not approve generation=1 of gate exception " + w.Namespace + "/hotfix: the present one is generation=2" + again(w.exception("hotfix"))
	w.refusedException(alice, "hotfix", cause, annotated(seen)...)
	if !command.MatchString(said) || !strings.Contains(said, "generation=1,") {
		t.Errorf("before the edit it said %s", said)
	}
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	out, err := alice.kubectl(w.Context(), w.Namespace, annotated(seen)...)
	if err == nil {
		t.Errorf("it is allowed: %s", out)
	}
	w.pasted(alice, out)
	w.stampedException("hotfix", "ona", "2 alice")
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	seen = w.approvalOf("hotfix")

	// And back to what it was: that is another generation, which nobody has read.
	w.allowed(ona, ttl("1h")...)
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":null}}`)
	w.refusedException(alice, "hotfix", "user alice may not approve generation=2 of gate exception "+w.Namespace+"/hotfix: the present one is generation=4", annotated(seen)...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
}

// The author tells an approver a generation that is to come.
func TestAnApprovalInAdvanceIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	e := w.born(ona, "hotfix", opens(1), nil)
	e.Generation = 2
	next := gate.FormatApproval(e, time.Now())
	w.refusedException(alice, "hotfix", "user alice may not approve generation=2 of gate exception "+w.Namespace+"/hotfix: the present one is generation=1", annotated(next)...)
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":`+opens(48)+`}`)
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(alice, annotated(next)...) // now it is what they say that they have read
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// The author puts another exception in the place of the one that an approver reads. It
// has the same name and the same generation.
func TestAnApprovalOfWhatWasDeletedIsNotOfWhatCameAfterIt(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	older := w.born(ona, "hotfix", opens(1), nil)
	seen := w.approvalOf("hotfix")
	w.allowed(ona, "replace", "--force", "-f", w.except("hotfix", opens(48), nil))
	newer := w.exception("hotfix")
	if newer.Generation != older.Generation || newer.UID == older.UID {
		t.Fatalf("generation %d of %s", newer.Generation, newer.UID)
	}
	cause := "user alice may not approve gate exception " + w.Namespace + "/hotfix with uid=" + string(older.UID) + ": that is the UID of another exception" + again(newer)
	w.refusedException(alice, "hotfix", cause, annotated(seen)...)
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// Somebody who may approve puts back what an older generation was approved with, as a
// backup or Git does. Flux itself is refused with all that it applies.
func TestAnOlderApprovalThatIsPutBackIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice, robot := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover), w.as("robot", exceptionEditor, exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.allowed(alice, w.approval()...)
	older := w.exception("hotfix").Annotations
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	w.allowed(alice, "annotate", "gtex", "hotfix", approveAt+"-")
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice") // it was taken note of
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":`+opens(48)+`}`)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	put := func(manager, value string) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{approveAt: value, approveBy: older[approveBy], authors: "somebody"}}})
		w.Must(err)
		return robot.Client.Patch(w.Context(), w.exception("hotfix"), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(manager))
	}
	for _, manager := range []string{"kustomize-controller", "kubectl-annotate", "restore"} {
		if err := put(manager, older[approveAt]); err == nil || !strings.Contains(err.Error(), "user robot may not approve generation=1 of gate exception "+w.Namespace+"/hotfix: the present one is generation=2") {
			t.Errorf("%s: %v", manager, err)
		}
	}
	w.refusedException(robot, "hotfix", "user robot may not approve gate exception "+w.Namespace+"/hotfix by a manifest",
		"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", w.file(fmt.Sprintf(
			`{"apiVersion":%q,"kind":"GateException","metadata":{"name":"hotfix","annotations":{%q:%q}}}`, v1alpha1.GroupVersion, approveAt, older[approveAt])), "--validate=false")
	w.stampedException("hotfix", "ona", "1 alice") // void, see the generation
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.Must(put("restore", w.approvalOf("hotfix"))) // the robot may approve what is there
	w.stampedException("hotfix", "ona", "2 robot")
}

func TestAnApprovalThatNamesNothingIsRefusedWithOneClearError(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	e := w.born(ona, "hotfix", "", nil)
	want := "denied request: user alice does not say what to approve of gate exception " + w.Namespace + "/hotfix: approve.gate.fluxcd.io/requestedAt must be of the form " +
		"<time>,generation=<number>,uid=<uid>" + again(e)
	right := gate.FormatApproval(e, time.Now())
	for _, value := range []string{
		now(), "", "yes", now() + "/3", now() + "/30m", now() + ",generation=1", now() + ",uid=" + string(e.UID), strings.TrimPrefix(right, "2"),
		",generation=1,uid=" + string(e.UID), right + ",by=alice", right + ",", right + "\n", right + "\n" + right, "x\n" + right, strings.Repeat("x", 100_000), strings.Repeat("x", 100_000) + right,
	} {
		w.refusedException(alice, "hotfix", want, annotated(value)...)
		out, _ := alice.kubectl(w.Context(), w.Namespace, annotated(value)...)
		if n := strings.Count(out, "denied request"); n != 1 || strings.Contains(strings.TrimSpace(out), "\n") {
			t.Errorf("%.50q: %d errors in %q", value, n, out)
		}
	}
}

// The stamps do not rely on the refusal, and the controller says what was not refused.
func TestWhatNamesAnotherGenerationIsNotStampedWhoeverLetsItPass(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	seen := w.approvalOf("hotfix")
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":`+opens(48)+`}`)
	_, err := cluster.Kubectl(w.Context(), "delete", "validatingadmissionpolicybinding", "gate-exception-verb")
	w.Must(err)
	refused := func() error {
		out, err := alice.kubectl(w.Context(), w.Namespace, append(annotated(now()), "--dry-run=server")...)
		if err == nil {
			return fmt.Errorf("allowed: %s", out)
		}
		return nil
	}
	defer func() {
		_, err := cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join(harness.Root(), "config", "policies", "exception_verb.yaml"))
		w.Must(err)
		w.Eventually("it is refused again", refused)
	}()
	w.Eventually("nobody refuses it", func() error {
		if refused() == nil {
			return fmt.Errorf("it is refused")
		}
		return nil
	})
	for _, tc := range []struct{ value, because string }{
		{seen, "generation 1 is not the current one"},
		{now(), "it must be TIME,generation=NUMBER,uid=UID, such as 2026-12-19T12:00:00Z,generation=3,uid=6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"},
		{strings.Replace(w.approvalOf("hotfix"), "uid=", "uid=0", 1), "it must be TIME,generation=NUMBER,uid=UID, such as 2026-12-19T12:00:00Z,generation=3,uid=6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"},
	} {
		w.allowed(alice, annotated(tc.value)...)
		w.stampedException("hotfix", "ona", "")
		w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
		if want := fmt.Sprintf("; the approval %q does not count: %s; to approve generation 2", tc.value, tc.because); !strings.Contains(w.waiting(), want) {
			t.Errorf("%q is not in %s", want, w.waiting())
		}
	}
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// isImpossible returns whether a text has the form of a time and is none, such as 30 February. The policy only checks the form.
func isImpossible(at string) bool {
	_, err := time.Parse(time.RFC3339, at)
	return err != nil && regexp.MustCompile(`^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?(Z|[+-][0-9:]{5})$`).MatchString(at)
}

// The controller takes for an approval what the API server does, and the other
// way round.
func TestTheAPIServerAndTheControllerReadApprovalsAlike(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", "", nil)
	for i := range 11 { // a generation with two digits
		w.allowed(ona, ttl(fmt.Sprintf("%dh", i+1))...)
	}
	e := w.exception("hotfix")
	const characters = ",,=:.-+/ \n\t\"'\\TZtz0123456789abcdefx٣é\x7f"
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	allowed := 0
	for i := range 400 {
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
			t.Errorf("%q: the API server says %v, stamped %t, the controller says %v", string(value), err, stamped, ours)
		}
		if err == nil {
			allowed++
		}
	}
	if allowed < 100 || allowed > 300 {
		t.Errorf("%d of 400 are allowed", allowed)
	}
}

// Many edit while many approve. In every order, nobody is said to have approved a
// spec that they have not read.
func TestNobodyApprovesWhatTheyHaveNotReadWhileOthersEdit(t *testing.T) {
	w := newWorld(t)
	const approvers, rounds = 4, 25
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "hotfix", "", nil)
	patch := func(p *person, format string, args ...any) (*v1alpha1.GateException, error) {
		e := &v1alpha1.GateException{}
		e.Name, e.Namespace = "hotfix", w.Namespace
		return e, p.Client.Patch(w.Context(), e, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)), client.FieldOwner(p.Name))
	}
	if _, err := patch(ona, `{"spec":{"ttlAfterExpired":"1000m"}}`); err != nil { // the first reader must find one
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
				edits <- 1 + i*rounds + round // begins as we read
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
						t.Errorf("%s has read %s of generation %d and approved %s of generation %d", p.Name, read.Spec.TTLAfterExpired, read.Generation, after.Spec.TTLAfterExpired, after.Generation)
					}
				case strings.Contains(err.Error(), "the present one is generation="):
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
