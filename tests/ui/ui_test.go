package ui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var (
	update = flag.Bool("update", false, "write the pictures of docs/guides/page-on-the-wall.md")
	shots  = flag.String("shots", "", "a folder for pictures of all pages in all sizes, to look at")
)

// world is a namespace whose Gates a user views.
type world struct{ *harness.World }

func newWorld(t *testing.T, change ...func(*corev1.Namespace)) *world {
	t.Helper()
	w := &world{harness.NewWorld(t, cluster, change...)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// serves starts kubectl gate ui with a kubeconfig, and returns the address that it prints.
func (w *world) serves(kubeconfig string, args ...string) string {
	w.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(w.Context(), program(), append([]string{"ui", "-n", w.Namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TZ=Europe/Oslo", "HOME="+w.TempDir())
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	w.Must(err)
	w.Must(cmd.Start())
	w.Cleanup(func() { // the context of the test has ended
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) || cmd.ProcessState.ExitCode() != 0 {
			w.Errorf("kubectl gate ui ended with %v: %s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.TrimSpace(line)
}

// scene creates Gates in every state.
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
		Default: v1alpha1.StateClosed, TimeZone: "America/New_York", OpenPeriods: []v1alpha1.Period{nights}, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}},
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "quarter-end", From: v1alpha1.NewDateTime(at(4).Time), Until: v1alpha1.NewDateTime(at(9).Time)}}},
	})
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{Period: weekends}}})
	w.Gate("infra", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "infra"}}})
	w.Gate("careful", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: v1alpha1.ModeAudit, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}})
	w.Create(&v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hotfix"},
		Spec:       v1alpha1.GateExceptionSpec{GateRef: v1alpha1.GateReference{Name: "production"}, ValidFrom: *at(5), ValidUntil: *at(6), OpenPeriods: []v1alpha1.Period{{Name: "hotfix", From: v1alpha1.NewDateTime(at(5).Time), Until: v1alpha1.NewDateTime(at(6).Time)}}},
	})
	for _, name := range []string{"production", "staging", "infra", "careful"} {
		w.Decided(w.ReadGate(name))
	}
	w.requests("infra", "30h", "a new <b>cluster</b>")
	w.Opened("infra", metav1.ConditionTrue)
}

// requests requests that a Gate open.
func (w *world) requests(name, duration, reason string) {
	w.Helper()
	w.Annotate(w.ReadGate(name), v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339)+"/"+duration, v1alpha1.OpenRequestedByAnnotation, "ada", v1alpha1.OpenReasonAnnotation, reason)
}

// get returns the response of an address to a request with a Host header.
func (w *world) get(address, host string) (code int, page string) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, address, nil)
	w.Must(err)
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	defer response.Body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(response.Body)
	w.Must(err)
	return response.StatusCode, string(raw)
}

// paths has an address of each page of the scene.
func (w *world) paths() map[string]string {
	return map[string]string{
		"overview": "?namespace=" + w.Namespace, "gate": "gate/" + w.Namespace + "/production", "month": "gate/" + w.Namespace + "/production/month",
		"timeline": "gate/" + w.Namespace + "/production?target=Kustomization/" + w.Namespace + "/apps",
		"target":   "target/Kustomization/" + w.Namespace + "/apps", "what-if": "what-if", "missing": "gate/x/y",
	}
}

func TestUnauthorizedUsersCannotOpenPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.serves(cluster.Kubeconfig)
	root := at[:strings.Index(at[len("http://"):], "/")+len("http://")]
	_, port, _ := strings.Cut(root[len("http://"):], ":")
	for _, c := range []struct {
		address, host string
		code          int
	}{
		{at, "", 200}, {at, "localhost:" + port, 200}, {at, "[::1]:" + port, 200}, {at, "127.0.0.1", 200},
		{at, "evil.example:" + port, 403}, {at, "evil.example", 403}, {at, "127.0.0.1.evil.example:" + port, 403}, {at, "10.0.0.1:" + port, 403},
		{root + "/", "", 403}, {root + "/static/style.css", "", 403}, {at[:len(at)-2] + "/", "", 403}, {root + "/" + strings.Repeat("a", 26) + "/", "", 403},
	} {
		code, page := w.get(c.address, c.host)
		if code != c.code || code == 403 && strings.TrimSpace(page) != "Open the address that kubectl gate ui has printed." {
			t.Errorf("%s as %q returns %d, want %d: %.200s", strings.TrimPrefix(c.address, root), c.host, code, c.code, page)
		}
	}
	code, _ := w.get(at+"changes", "evil.example")
	if code != 403 {
		t.Errorf("changes return %d", code)
	}
}

func TestLimitedViewerSeesLessAndIsNotified(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.Create(w.Kustomization("apps"))
	w.ClosedGate("mine", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	other.ClosedGate("hidden")
	w.Decided(w.ReadGate("mine"))
	viewer := w.Person("viewer-of-" + w.Namespace)
	address := w.serves(viewer.Kubeconfig)
	for _, path := range []string{"", "gate/" + w.Namespace + "/mine", "gate/" + other.Namespace + "/hidden", "target/Kustomization/" + w.Namespace + "/apps"} {
		if code, page := w.get(address+path, ""); code != 403 || !strings.Contains(page, "you may not") || !strings.Contains(page, "Ask an administrator") || strings.Contains(page, "default: closed") {
			t.Errorf("without permissions, %s returns %d: %s", path, code, page)
		}
	}
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "sees"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: viewer.Name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gate-viewer"},
	})
	w.Eventually("the role takes effect", func() error {
		if code, page := w.get(address, ""); code != 200 {
			return fmt.Errorf("%d: %s", code, page)
		}
		return nil
	})
	for path, texts := range map[string][]string{
		"":                                    {">mine<", "you may not list gates in all namespaces"},
		"gate/" + w.Namespace + "/mine":       {"closed by default", "you may not list"},
		"gate/" + other.Namespace + "/hidden": {"you may not list gates in namespace"},
	} {
		_, page := w.get(address+path, "")
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%q does not contain %q: %s", path, text, page)
			}
		}
		if path == "" && (strings.Contains(page, other.Namespace) || strings.Contains(page, "hidden<")) {
			t.Errorf("%q shows a gate of another namespace: %s", path, page)
		}
	}
}

func TestPageShowsTransitionLive(t *testing.T) {
	t.Parallel()
	w, tab := newWorld(t), newBrowser(t).open()
	w.ClosedGate("night")
	w.Decided(w.ReadGate("night"))
	at := w.serves(cluster.Kubeconfig)
	tab.navigate(at + "?namespace=" + w.Namespace)
	tab.until("the page is live", `document.getElementById("live").textContent === "Live."`)
	tab.until("the gate is closed", `document.querySelector("td .state").textContent === "closed"`)
	tab.eval(`window.same = true; document.querySelector("th[scope=row] a").focus()`, nil)
	w.requests("night", "1h", "now")
	tab.until("the gate is open", `document.querySelector("td .state").textContent === "opened"`)
	tab.until("the page was not reloaded and has kept the focus", `window.same && document.activeElement.textContent === "night" && document.title === "Gates"`)
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

func TestWhatIfWorksInBrowser(t *testing.T) {
	t.Parallel()
	w, tab := newWorld(t), newBrowser(t).open()
	w.ClosedGate("night")
	tab.navigate(w.serves(cluster.Kubeconfig) + "what-if")
	manifest := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: night}\nspec: {default: opened}\n"
	tab.eval(fmt.Sprintf(`document.querySelector("textarea").value = %q; document.querySelector("form button").click()`, manifest), nil)
	tab.until("the page shows the changes", `document.querySelector("#changes") && document.querySelector("h3") && document.querySelector("h3").textContent.includes("/night changed")`)
	if g := w.ReadGate("night"); g.Spec.Default != v1alpha1.StateClosed {
		t.Error("the manifest was applied")
	}
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

// pictures are the pictures of docs/guides/page-on-the-wall.md.
var pictures = map[string]struct{ width, height int }{"overview": {1200, 640}, "gate": {1000, 760}}

func TestPagesAreAccessibleOnAllScreens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(namespace *corev1.Namespace) {
		if *update {
			namespace.Name, namespace.GenerateName = "shop", ""
		}
	})
	w.scene()
	tab, axe := newBrowser(t).open(), axe(t)
	at := w.serves(cluster.Kubeconfig)
	for name, path := range w.paths() {
		tab.emulate(1400, "light", "")
		tab.navigate(at + path)
		tab.until("the page is live", `document.getElementById("live").textContent === "Live."`)
		// The browser reports each 404, including those of a page that it left while the page was reloaded.
		if wrong := slices.DeleteFunc(tab.wrong(), func(entry string) bool { return strings.Contains(entry, w.paths()["missing"]) }); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
		if name == "overview" || name == "gate" || name == "month" {
			tab.until("patterns are drawn", `document.querySelectorAll("svg.bar rect.part").length > 0`)
		}
		w.reaches(tab, name)
		for _, look := range []struct {
			width         int
			colors, media string
		}{{320, "light", ""}, {320, "dark", ""}, {640, "light", ""}, {1400, "light", ""}, {1400, "dark", ""}, {2560, "light", ""}, {1000, "light", "print"}} {
			tab.emulate(look.width, look.colors, look.media)
			var wide int
			if tab.eval("document.documentElement.scrollWidth", &wide); wide > look.width {
				t.Errorf("%s is %d wide on a screen of %d", name, wide, look.width)
			}
			tab.eval("document.activeElement.blur()", nil)
			if *shots != "" {
				tab.shot(filepath.Join(*shots, fmt.Sprintf("%s-%d-%s%s.png", name, look.width, look.colors, look.media)), look.width, 2400)
			}
			if axe != "" && look.media == "" && look.width < 2560 {
				w.accessible(tab, axe, fmt.Sprintf("%s at %d, %s", name, look.width, look.colors))
			}
		}
		if size, ok := pictures[name]; ok && *update {
			tab.emulate(size.width, "light", "")
			picture := filepath.Join(harness.Root(), "docs", "images", "ui-"+name+".png")
			tab.shot(picture, size.width, size.height)
			shrink(t, picture)
		}
	}
}

func TestWebUIPageHasSmallPictures(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", "page-on-the-wall.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range pictures {
		picture := filepath.Join("..", "images", "ui-"+name+".png")
		info, err := os.Stat(filepath.Join(harness.Root(), "docs", "guides", picture))
		if err != nil || info.Size() > 100<<10 || !strings.Contains(string(page), picture) {
			t.Errorf("%s does not exist, is not on the page, or is larger than 100 KiB: %v", picture, err)
		}
	}
}

// axe returns the source of axe-core, empty if it is not installed.
func axe(t *testing.T) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "tests", "tools", "axe.sh"))
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		t.Logf("the rules of WCAG are not checked: %s", stderr.String())
		return ""
	}
	text, err := os.ReadFile(strings.TrimSpace(string(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accessible fails unless a page follows the rules of WCAG 2.2 AA.
func (w *world) accessible(tab *tab, axe, what string) {
	w.Helper()
	tab.eval("window.axe || ("+"() => {"+axe+"})(); undefined", nil)
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	tab.eval(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => ({html: n.html, failureSummary: n.failureSummary}))})))`, &violations)
	for _, v := range violations {
		w.Errorf("%s: %s: %s: %.1500v", what, v.ID, v.Help, v.Nodes)
	}
	_ = tab.wrong() // axe-core is not subject to the policy of the page
}

// reaches fails unless Tab reaches every focusable element and shows the focus. The page may change meanwhile.
func (w *world) reaches(tab *tab, name string) {
	w.Helper()
	const usable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, pre[tabindex]")].filter(e => e.checkVisibility())`
	var all int
	tab.eval(`window.reached = new Set(); window.unseen = []; document.activeElement.blur(); `+usable+`.length`, &all)
	if all < 5 {
		w.Errorf("%s: only %d elements are focusable", name, all)
	}
	for range all + 5 {
		tab.press("Tab", 9)
		tab.eval(`{ const e = document.activeElement; reached.add(e.outerHTML); const s = getComputedStyle(e); if (e !== document.body && (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2)) unseen.push(e.outerHTML) }`, nil)
	}
	var missed, unseen []string
	tab.eval(usable+`.map(e => e.outerHTML).filter(e => !reached.has(e))`, &missed)
	tab.eval(`unseen`, &unseen)
	if len(missed)+len(unseen) > 0 {
		w.Errorf("%s: Tab does not reach %q, and the focus is not visible at %q", name, missed, unseen)
	}
}
