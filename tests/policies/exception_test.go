package policies

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	exceptionEditor   = "gate-exception-editor"
	exceptionApprover = "gate-exception-approver"

	approveAt = v1alpha1.ApproveRequestedAtAnnotation
	approveBy = v1alpha1.ApproveRequestedByAnnotation
	authors   = v1alpha1.AuthorsAnnotation
)

// exceptionManifest is a GateException of the Gate production in the first week of
// 2099, with what of spec differs.
func exceptionManifest(name, spec string, annotations map[string]string) map[string]any {
	content := map[string]any{
		"gateRef": map[string]any{"name": "production"}, "default": "opened",
		"validFrom": "2099-01-01T00:00:00Z", "validUntil": "2099-01-08T00:00:00Z",
	}
	if spec != "" {
		if err := json.Unmarshal([]byte(spec), &content); err != nil {
			panic(err)
		}
	}
	metadata := map[string]any{"name": name}
	if prefix, ok := strings.CutPrefix(name, "generateName: "); ok {
		metadata = map[string]any{"generateName": prefix}
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateExceptionKind, "metadata": metadata, "spec": content,
	}
}

// exceptionFile writes one into a folder and returns the path.
func exceptionFile(dir, name, spec string, annotations map[string]string) string {
	path := filepath.Join(dir, "exception.json")
	content, err := json.Marshal(exceptionManifest(name, spec, annotations))
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return path
}

// except returns the manifest of a GateException in a file.
func (w *world) except(name, spec string, annotations map[string]string) string {
	return exceptionFile(w.TempDir(), name, spec, annotations)
}

// born has a person create a GateException.
func (w *world) born(p *person, name, spec string, annotations map[string]string) *v1alpha1.GateException {
	w.Helper()
	w.allowed(p, "create", "-f", w.except(name, spec, annotations))
	return w.exception(name)
}

// exception reads a GateException.
func (w *world) exception(name string) *v1alpha1.GateException {
	w.Helper()
	e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(e)
	return e
}

// refusedException runs kubectl, which must be refused for a cause and leave no
// trace on a GateException.
func (w *world) refusedException(p *person, name, cause string, args ...string) {
	w.Helper()
	before := w.exception(name)
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	if err == nil {
		w.Errorf("%q by %s is allowed: %s", args, p.Name, out)
	} else if !strings.Contains(out, cause) {
		w.Errorf("%q by %s is refused\nfor   %s\nnot for %q", args, p.Name, out, cause)
	}
	if after := w.exception(name); after.Generation != before.Generation || after.UID != before.UID || !sameAnnotations(before, after) {
		w.Errorf("%q by %s: the exception has changed\nfrom %+v\nto   %+v", args, p.Name, before, after)
	}
}

func sameAnnotations(a, b *v1alpha1.GateException) bool {
	for _, key := range []string{approveAt, approveBy, authors} {
		first, had := a.Annotations[key]
		second, has := b.Annotations[key]
		if first != second || had != has {
			return false
		}
	}
	return true
}

// approvalOf returns the value that approves an exception as it is. Times differ, or
// nothing would change.
func (w *world) approvalOf(name string) string {
	w.Helper()
	return gate.FormatApproval(w.exception(name), time.Now())
}

// approval returns the arguments that approve the exception hotfix as it is.
func (w *world) approval(more ...string) []string {
	w.Helper()
	return append([]string{"annotate", "--overwrite", "gtex", "hotfix", approveAt + "=" + w.approvalOf("hotfix")}, more...)
}

// stampsOf returns the lines of approvals "1 bob" as the API server stamps them.
func stampsOf(e *v1alpha1.GateException, approvals string) string {
	lines := strings.Split(approvals, "\n")
	for i, line := range lines {
		if number, by, ok := strings.Cut(line, " "); ok {
			lines[i] = fmt.Sprintf("generation=%s,uid=%s %s", number, e.UID, by)
		}
	}
	return strings.Join(lines, "\n")
}

// lines is stampsOf the exception hotfix as it is.
func (w *world) lines(approvals string) string {
	w.Helper()
	return stampsOf(w.exception("hotfix"), approvals)
}

// stampedException checks who is said to have written and approved one, each
// with one in a line, as "1 bob" for his approval of the first generation.
func (w *world) stampedException(name, wantAuthors, wantApprovals string) {
	w.Helper()
	e := w.exception(name)
	annotations := e.Annotations
	for key, want := range map[string]string{authors: wantAuthors, approveBy: stampsOf(e, wantApprovals)} {
		if got, ok := annotations[key]; got != want || ok != (want != "") {
			w.Errorf("%s is %q, %t, want %q", key, got, ok, want)
		}
	}
}
