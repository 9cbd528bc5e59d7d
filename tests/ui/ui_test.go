package ui

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// world is a namespace whose Gates somebody looks at.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// serves starts kubectl gate ui with a kubeconfig, and returns the address that it prints.
func (w *world) serves(kubeconfig string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), program(), "ui", "-n", w.Namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TZ=Europe/Oslo", "HOME="+w.TempDir())
	out, err := cmd.StdoutPipe()
	w.Must(err)
	cmd.Stderr = os.Stderr
	w.Must(cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			w.Errorf("it ends with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	w.Must(err)
	return strings.TrimSpace(line)
}

// scene has Gates of each kind.
func (w *world) scene() {
	w.Helper()
	w.Create(w.Kustomization("apps"))
	w.Create(w.Kustomization("infra"))
	today := time.Now().UTC().Truncate(24 * time.Hour)
	at := func(days int) *metav1.Time { t := metav1.NewTime(today.AddDate(0, 0, days)); return &t }
	clock := func(text string) *string { return &text }
	nights := v1alpha1.Period{Name: "nights", Start: clock("22:00"), End: clock("05:00")}
	weekends := v1alpha1.Period{Name: "weekends", Start: clock("00:00"), End: clock("24:00"), DaysOfWeek: []v1alpha1.DayOfWeek{"Saturday", "Sunday"}}
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, TimeZone: "Europe/Oslo", Windows: []v1alpha1.Period{nights}, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}},
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "quarter-end", From: at(4), Until: at(9)}}},
	})
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{Period: weekends}}})
	w.Gate("infra", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "infra"}}})
	w.Gate("careful", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: v1alpha1.ModeAudit, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}})
	w.Create(&v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hotfix"},
		Spec: v1alpha1.GateExceptionSpec{GateRef: v1alpha1.GateReference{Name: "production"}, ValidFrom: *at(5), ValidUntil: *at(6), Type: v1alpha1.ExceptionExtend, Windows: []v1alpha1.Period{{Name: "hotfix", From: at(5), Until: at(6)}}},
	})
	for _, name := range []string{"production", "staging", "infra", "careful"} {
		w.Decided(w.ReadGate(name))
	}
	w.Annotate(w.ReadGate("infra"), v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339)+"/30h", v1alpha1.OpenRequestedByAnnotation, "ada", v1alpha1.OpenReasonAnnotation, "a new <b>cluster</b>")
	w.Opened("infra", metav1.ConditionTrue)
}

func TestShots(t *testing.T) {
	w := newWorld(t)
	w.scene()
	at := w.serves(cluster.Kubeconfig)
	dir := os.Getenv("UI_SHOTS")
	if dir == "" {
		t.Skip("no UI_SHOTS")
	}
	for name, path := range map[string]string{"overview": "", "gate": "gate/" + w.Namespace + "/production", "target": "target/Kustomization/" + w.Namespace + "/apps", "whatif": "what-if", "missing": "gate/x/y"} {
		for size, window := range map[string]string{"wide": "1400,1000", "phone": "360,900"} {
			cmd := exec.CommandContext(w.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync",
				"--no-first-run", "--user-data-dir="+filepath.Join(w.TempDir(), "profile"), "--window-size="+window, "--timeout=4000", "--screenshot="+filepath.Join(dir, name+"-"+size+".png"), at+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	}
}
