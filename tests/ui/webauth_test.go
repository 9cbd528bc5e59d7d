package ui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// installPages gives the controller the permissions of config/ui.
func installPages(ctx context.Context) error {
	for _, file := range []string{"role.yaml", "role_binding.yaml"} {
		if _, err := cluster.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(harness.Root(), "config", "ui", file)); err != nil {
			return err
		}
	}
	return nil
}

// startUI starts a controller that serves the web UI, and returns its address. Like any other replica, it may be a standby.
func (w *world) startUI(args ...string) (url string, p *harness.Process) {
	w.Helper()
	address := harness.FreeAddress()
	p, err := w.StartGatingController(w.Context(), append([]string{"--ui-addr=" + address, "--receiver-addr=", "--enable-leader-election"}, args...)...)
	w.Must(err)
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{p} })
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
	})
	return "http://" + address + "/", p
}

// person creates a ServiceAccount with rules in some namespaces, or in all if one is empty, and returns a token for it.
func (w *world) person(name string, rules []rbacv1.PolicyRule, namespaces ...string) (token string) {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Create(account)
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.Namespace + "-" + name}
	w.Must(w.Client.Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Rules: rules}))
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: w.Namespace}}
	for _, namespace := range namespaces {
		meta := metav1.ObjectMeta{Name: role.Name, Namespace: namespace}
		if namespace == "" {
			w.Must(w.Client.Create(w.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}))
		} else {
			w.Must(w.Client.Create(w.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}))
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	w.Must(w.Client.SubResource("token").Create(w.Context(), account, request))
	return request.Status.Token
}

// seesGates are the rules that a user needs to view Gates, exceptions and held targets.
var seesGates = []rbacv1.PolicyRule{
	{APIGroups: []string{"gating.toolkit.fluxcd.io"}, Resources: []string{"gates", "gateexceptions"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}, Verbs: []string{"get", "list"}},
}

// send sends a request with a token, or without one if it is empty.
func (w *world) send(method, url, token string, body io.Reader, headers ...string) (code int, page string, err error) {
	request, err := http.NewRequestWithContext(w.Context(), method, url, body)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), errors.Join(err, response.Body.Close())
}

// returns fails unless a page returns a code and contains some texts. Texts that begin with an exclamation mark must be missing.
func (w *world) returns(url, token string, want int, texts ...string) {
	w.Helper()
	if err := w.tryReturns(url, token, want, texts...); err != nil {
		w.Error(err)
	}
}

func (w *world) tryReturns(url, token string, want int, texts ...string) error {
	code, page, err := w.send(http.MethodGet, url, token, nil)
	_, content, _ := strings.Cut(page, "<main")
	if err != nil || code != want {
		return errors.Join(fmt.Errorf("%s returns %d, want %d: %.1500s", url, code, want, content), err)
	}
	for _, text := range texts {
		if strings.Contains(page, strings.TrimPrefix(text, "!")) == strings.HasPrefix(text, "!") {
			return fmt.Errorf("%s, %q: %.3000s", url, text, content)
		}
	}
	return nil
}

func TestUsersSeeOnlyWhatTheyMayRead(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.Create(w.Kustomization("apps"))
	w.ClosedGate("mine", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	other.ClosedGate("hidden")
	for _, g := range []*v1alpha1.Gate{w.ReadGate("mine"), other.ReadGate("hidden")} {
		w.Decided(g)
	}
	w.Eventually("the target is held", func() error {
		if g := w.ReadGate("mine"); g.Status.Targets == nil || g.Status.Targets.Held != 1 {
			return fmt.Errorf("%+v", g.Status.Targets)
		}
		return nil
	})
	w.requests("mine", "1m", "<script>alert(1)</script>\u202e")
	w.Opened("mine", metav1.ConditionTrue)
	all, one, none := w.person("all", seesGates, ""), w.person("one", seesGates, w.Namespace), w.person("none", nil)
	closed, _ := w.startUI()
	open, _ := w.startUI("--ui-anonymous")
	mine, hidden, target := "gate/"+w.Namespace+"/mine", "gate/"+other.Namespace+"/hidden", "target/Kustomization/"+w.Namespace+"/apps"
	for _, url := range []string{closed, open} {
		w.returns(url, all, 200, other.Namespace, ">mine<", "!you may not")
		w.returns(url+mine, all, 200, "kubectl gate close mine", "&lt;script&gt;alert(1)", "!<script>alert", "!\u202e")
		w.returns(url+hidden, all, 200, "closed by default")
		w.returns(url+target, all, 200, w.Namespace+"/mine")
		w.returns(url+"gate/"+w.Namespace+"/none", all, 404, "there is no gate")
		w.returns(url+"gate/%3Cscript%3E/..%2f..", all, 404, "!<script>")

		w.returns(url, one, 200, ">mine<", "!"+other.Namespace, "these are the gates of "+w.Namespace)
		w.returns(url+mine, one, 200, "kubectl gate close mine")
		w.returns(url+hidden, one, 403, "if there is one", "Ask an administrator")
		w.returns(url+"gate/"+other.Namespace+"/none", one, 403, "if there is one")

		for _, path := range []string{"", mine, hidden, target, "gate/x/y"} {
			w.returns(url+path, none, 403, "you may not", "!"+other.Namespace+"<")
			w.returns(url+path, "not.a.token", 401, "rejects your token")
		}
	}
	for _, path := range []string{"", mine, hidden, target, "what-if", "changes"} {
		w.returns(closed+path, "", 401)
	}
	w.returns(closed+"badge/"+w.Namespace+"/mine.svg", "", 401)
	w.returns(closed+"badge/"+w.Namespace+"/mine.svg", all, 404)
	w.returns(open, "", 200, ">mine<", ">hidden<", "!alert", "!open request", "!by default")
	w.returns(open+mine, "", 200, "!alert", "!ada", "!kubectl gate close", "!apps")
	w.returns(open+target, "", 401)
	w.returns(open+"what-if", "", 401)
	w.returns(open+"badge/"+w.Namespace+"/mine.svg", "", 200, "Gate mine: open")
	w.returns(open+"badge/"+w.Namespace+"/none.svg", "", 404, "unknown")
}

func TestRevokedAccessEndsPagesAndNotifications(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.ClosedGate("mine")
	other.ClosedGate("hidden")
	w.Decided(w.ReadGate("mine"))
	other.Decided(other.ReadGate("hidden"))
	token := w.person("one", seesGates, w.Namespace)
	url, _ := w.startUI()
	w.Eventually("the role takes effect", func() error { return w.tryReturns(url, token, 200, ">mine<") })
	changes, ended := w.subscribe(url, token)
	other.requests("hidden", "1h", "not for them")
	other.Opened("hidden", metav1.ConditionTrue)
	select {
	case line := <-changes:
		t.Errorf("a change of a gate that the user may not see was sent: %q", line)
	case <-time.After(3 * time.Second):
	}
	w.requests("mine", "1h", "for them")
	select {
	case <-changes:
	case <-time.After(harness.Patience):
		t.Error("no change was sent")
	}
	w.Must(w.Client.Delete(w.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-one", Namespace: w.Namespace}}))
	revoked := time.Now()
	w.Eventually("the revocation takes effect", func() error { return w.tryReturns(url, token, 403) })
	if took := time.Since(revoked); took > 20*time.Second {
		t.Errorf("the revocation took %s", took)
	}
	w.Must(w.Client.Delete(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: w.Namespace}}))
	w.Eventually("the token is rejected", func() error { return w.tryReturns(url, token, 401) })
	select {
	case <-ended:
	case <-time.After(harness.Patience):
		t.Error("the stream continues after the token was deleted")
	}
}

// subscribe opens the stream of changes, and returns its changes.
func (w *world) subscribe(url, token string) (changes <-chan string, ended <-chan struct{}) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url+"changes", nil)
	w.Must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // closed at the end of the stream
	w.Must(err)
	if response.StatusCode != http.StatusOK {
		w.Fatal(response.Status)
	}
	lines, end := make(chan string, 100), make(chan struct{})
	began := make(chan struct{})
	go func() {
		defer close(end)
		defer response.Body.Close() //nolint:errcheck // only read
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			switch line := scanner.Text(); {
			case strings.HasPrefix(line, "retry"):
				close(began)
			case strings.HasPrefix(line, "data"):
				lines <- line
			}
		}
	}()
	<-began
	return lines, end
}

// The test affects the whole cluster, so it is not parallel.
func TestPagesAreUnavailableWithoutAPIServer(t *testing.T) {
	w := newWorld(t)
	w.ClosedGate("mine")
	w.Decided(w.ReadGate("mine"))
	token := w.person("all", seesGates, "")
	url, _ := w.startUI("--ui-anonymous")
	mine := url + "gate/" + w.Namespace + "/mine"
	w.Eventually("the role takes effect", func() error { return w.tryReturns(mine, token, 200) })
	resume, err := cluster.PauseAPIServer()
	w.Must(err)
	w.Cleanup(func() { _ = resume() })
	w.Eventually("the page fails closed", func() error { return w.tryReturns(mine, token, 503, "cannot check your permissions now", "!mine") })
	w.returns(mine, "", 200, ">closed<")
	w.Must(resume())
	w.Eventually("the page is available again", func() error { return w.tryReturns(mine, token, 200) })
	start, err := cluster.KillAPIServer()
	w.Must(err)
	w.Eventually("the page fails closed", func() error { return w.tryReturns(mine, token, 503, "!closed by default") })
	w.returns(url+"badge/"+w.Namespace+"/mine.svg", "", 200, "Gate mine: closed")
	w.Must(start(w.Context()))
	w.Eventually("the page is available again", func() error { return w.tryReturns(mine, token, 200, "closed by default") })
	w.requests("mine", "1h", "after that")
	w.Eventually("the caches are updated again", func() error { return w.tryReturns(mine, token, 200, "after that") })
}

func TestUploadNeedsAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ClosedGate("mine")
	w.Decided(w.ReadGate("mine"))
	token := w.person("all", seesGates, "")
	url, _ := w.startUI("--ui-anonymous")
	w.Eventually("the role takes effect", func() error { return w.tryReturns(url, token, 200, ">mine<") })
	manifest := fmt.Sprintf("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: mine, namespace: %s}\nspec: {default: opened}\n", w.Namespace)
	for name, c := range map[string]struct {
		text, token string
		code        int
		want        string
	}{
		"a manifest":             {manifest, token, 200, w.Namespace + "/mine <small>changed"},
		"nearly too large":       {manifest + strings.Repeat("#", 1<<20-len(manifest)), token, 200, "/mine <small>changed"},
		"too large":              {strings.Repeat("#", 1<<20+8192), token, 413, "larger than 1 MiB"},
		"much too large":         {strings.Repeat("#", 20<<20), token, 413, "larger than 1 MiB"},
		"without a token":        {manifest, "", 401, "names, states and times"},
		"with an invalid token":  {manifest, "not.a.token", 401, "rejects your token"},
		"large, without a token": {strings.Repeat("#", 1<<20), "", 401, "names, states and times"},
		"with hostile names":     {strings.ReplaceAll(manifest, "name: mine", `name: "<script>alert(1)</script>"`), token, 200, "&lt;script&gt;"},
	} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		w.Must(errors.Join(form.WriteField("manifests", c.text), form.Close()))
		code, page, err := w.send(http.MethodPost, url+"what-if", c.token, &body, "Content-Type", form.FormDataContentType())
		if err != nil || code != c.code || !strings.Contains(page, c.want) || strings.Contains(page, "<script>alert") {
			t.Errorf("%s: %d, %v: %.1000s", name, code, err, page)
		}
	}
	if g := w.ReadGate("mine"); g.Spec.Default != v1alpha1.StateClosed {
		t.Error("the manifest was applied")
	}
}

func TestBrowserWithTokenIsLiveInItsZone(t *testing.T) {
	t.Parallel()
	w, tab := newWorld(t), newBrowser(t).open()
	w.ClosedGate("night")
	w.Decided(w.ReadGate("night"))
	token := w.person("one", seesGates, w.Namespace)
	url, _ := w.startUI()
	w.Eventually("the role takes effect", func() error { return w.tryReturns(url, token, 200, ">night<") })
	tab.does("Network.enable", nil, nil)
	tab.does("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{"Authorization": "Bearer " + token}}, nil)
	tab.does("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "Asia/Tokyo"}, nil)
	tab.does("Page.navigate", map[string]any{"url": url}, nil)
	tab.until("the page is live", `document.getElementById("live") && document.getElementById("live").textContent === "Live."`)
	tab.until("the page uses the time zone of the browser", `location.search === "?zone=Asia%2FTokyo" && document.body.innerText.includes("Asia/Tokyo (JST)")`)
	tab.until("the gate is closed", `document.querySelector("td .state").textContent === "closed"`)
	tab.eval(`window.same = true; document.querySelector("th[scope=row] a").focus()`, nil)
	w.requests("night", "1h", "now")
	tab.until("the gate is open", `document.querySelector("td .state").textContent === "opened"`)
	tab.until("the page was not reloaded and has kept the focus", `window.same && document.activeElement.textContent === "night"`)
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

func TestControllerPagesAreAccessible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	tab, axe := newBrowser(t).open(), axe(t)
	url, _ := w.startUI("--ui-anonymous")
	w.Eventually("the page shows all gates", func() error { return w.tryReturns(url, "", 200, ">infra<") })
	for name, path := range map[string]string{
		"anonymous overview": "?zone=UTC&namespace=" + w.Namespace, "anonymous gate": "gate/" + w.Namespace + "/production?zone=UTC", "anonymous month": "gate/" + w.Namespace + "/production/month?zone=UTC",
		"not anonymous": "target/Kustomization/" + w.Namespace + "/apps?zone=UTC",
	} {
		for _, look := range []struct {
			width  int
			colors string
		}{{320, "light"}, {1400, "light"}, {1400, "dark"}} {
			tab.emulate(look.width, look.colors, "")
			tab.navigate(url + path)
			var wide int
			if tab.eval("document.documentElement.scrollWidth", &wide); wide > look.width {
				t.Errorf("%s is %d wide on a screen of %d", name, wide, look.width)
			}
			if *shots != "" {
				tab.shot(filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(name, " ", "-"), look.width, look.colors)), look.width, 2400)
			}
			if axe != "" {
				w.accessible(tab, axe, fmt.Sprintf("%s at %d, %s", name, look.width, look.colors))
			}
		}
		w.reaches(tab, name)
	}
}
