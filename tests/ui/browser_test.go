package ui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// browser is a Chromium that a test controls through pipes, with the DevTools protocol.
type browser struct {
	testing.TB
	to        *os.File
	mu        sync.Mutex
	last      int
	responses map[int]chan message
	// errors are the errors that its pages have reported.
	errors []string
}

// message is a message from the browser: a response to a call, or an event.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// newBrowser starts a browser. It skips the test if none is installed.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("there is no Chromium on this machine: install one, such as the package chromium of Debian")
	}
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	reads, to, err1 := os.Pipe()
	from, writes, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", //nolint:noctx // it is closed below, after the context of the test
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--user-data-dir="+profile)
	cmd.ExtraFiles = []*os.File{reads, writes}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = reads.Close(), writes.Close()
	b := &browser{TB: t, to: to, responses: map[int]chan message{}}
	go b.listen(from)
	t.Cleanup(func() {
		b.call("", "Browser.close", nil, nil)
		force := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_, _, _ = cmd.Wait(), to.Close(), from.Close()
		force.Stop()
		_ = os.RemoveAll(profile) // a child process may still write
	})
	return b
}

// listen handles the messages of the browser until it ends.
func (b *browser) listen(from *os.File) {
	decoder := json.NewDecoder(&withoutZeros{from})
	for {
		var a message
		if decoder.Decode(&a) != nil {
			return
		}
		b.mu.Lock()
		if responses := b.responses[a.ID]; responses != nil {
			responses <- a
			delete(b.responses, a.ID)
		}
		switch a.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
			b.errors = append(b.errors, string(a.Params))
		}
		b.mu.Unlock()
	}
}

// withoutZeros reads a file with a zero byte after each message.
type withoutZeros struct{ *os.File }

func (f *withoutZeros) Read(into []byte) (int, error) {
	n, err := f.File.Read(into)
	copy(into, bytes.ReplaceAll(into[:n], []byte{0}, []byte{'\n'}))
	return n, err
}

// call calls a method of the browser, or of one of its pages.
func (b *browser) call(page, method string, params, result any) {
	b.Helper()
	if err := b.try(page, method, params, result); err != nil {
		b.Fatal(err)
	}
}

// try is like call, but returns an error.
func (b *browser) try(page, method string, params, result any) error {
	responses := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.responses[id] = responses
	b.mu.Unlock()
	request := map[string]any{"id": id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if page != "" {
		request["sessionId"] = page
	}
	raw, err := json.Marshal(request)
	if err == nil {
		_, err = b.to.Write(append(raw, 0))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-responses:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(a.Result, result); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
		}
		return nil
	case <-time.After(harness.Patience):
		return fmt.Errorf("%s: the browser does not respond", method)
	}
}

// wrong returns the errors that pages have reported since the last call.
func (b *browser) wrong() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.errors = b.errors, nil
	return all
}

// tab is a page in a browser.
type tab struct {
	*browser
	session string
}

func (b *browser) open() *tab {
	b.Helper()
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	t := &tab{b, session.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		t.does(domain+".enable", nil, nil)
	}
	return t
}

func (t *tab) does(method string, params, result any) {
	t.Helper()
	t.call(t.session, method, params, result)
}

// emulate sets the width of the window, and the preferred colors and media.
func (t *tab) emulate(width int, colors, media string) {
	t.Helper()
	t.does("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	t.does("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]any{{"name": "prefers-color-scheme", "value": colors}}}, nil)
}

// navigate opens an address, and waits until the page is loaded.
func (t *tab) navigate(address string) {
	t.Helper()
	t.does("Page.navigate", map[string]any{"url": address}, nil)
	t.until("the page is loaded", fmt.Sprintf(`location.href === %q && document.readyState === "complete" && document.getElementById("main") !== null`, address))
}

// eval stores the result of a script.
func (t *tab) eval(script string, result any) {
	t.Helper()
	if err := t.tryEval(script, result); err != nil {
		t.Fatal(err)
	}
}

// tryEval is like eval, but returns an error: the page may be navigating to another one.
func (t *tab) tryEval(script string, result any) error {
	var evaluated struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := t.try(t.session, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &evaluated); err != nil {
		return err
	}
	if evaluated.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s", script, evaluated.ExceptionDetails.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(evaluated.Result.Value, result); err != nil {
			return fmt.Errorf("%.200s returns %.2000s: %w", script, evaluated.Result.Value, err)
		}
	}
	return nil
}

// until waits for a condition of a page.
func (t *tab) until(what, script string) {
	t.Helper()
	if err := harness.Eventually(t.Context(), harness.Patience, what, func() error {
		var is bool
		if err := t.tryEval("Boolean("+script+")", &is); err != nil || !is {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	}); err != nil {
		var text string
		t.eval("document.body.innerText", &text)
		t.Fatalf("%v; the page shows:\n%.3000s", err, text)
	}
}

// press presses a key.
func (t *tab) press(key string, code int) {
	t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		t.does("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
	}
}

// shot writes a picture of the whole page, up to a maximum height.
func (t *tab) shot(path string, width, height int) {
	t.Helper()
	var whole int
	t.eval("document.documentElement.scrollHeight", &whole)
	var picture struct{ Data string }
	t.does("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": width, "height": min(whole, height), "scale": 1}}, &picture)
	raw, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
