package receivers

import (
	"hash"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// all returns how many large bodies are being read, and how many of them are kept in memory.
func (r *largeBodies) all() (all, kept int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.byQuota {
		all += n
	}
	return all, r.taken
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// load adds a receiver that accepts all webhooks and requests nothing, and returns its path.
func load(t *testing.T, table *Table, name, kind string, change ...func(*v1alpha1.GateReceiverSpec)) string {
	t.Helper()
	path, err := table.Load(t.Context(), receiverOf(name, "apps", append(change, func(s *v1alpha1.GateReceiverSpec) {
		s.Type, s.Filter = kind, "false"
	})...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tokensOf returns the Secrets of receivers.
func tokensOf(names ...string) map[string]map[string]string {
	data := map[string]map[string]string{}
	for _, name := range names {
		data["apps/"+name] = map[string]string{"token": testToken}
	}
	return data
}

// oneReceiver returns a Table with a receiver of type generic-hmac, and its path.
func oneReceiver(t *testing.T) (table *Table, path string) {
	t.Helper()
	table, _ = newTable(tokensOf("ci"))
	return table, load(t, table, "ci", v1alpha1.GenericHMACReceiver)
}

// large is a body that counts as large, and stalled is the start of one.
var (
	large   = strings.Repeat(" ", maxBodyBytes)
	stalled = strings.Repeat(" ", smallBodyBytes+1)
)

// signedLarge returns a request with a signed large body.
func signedLarge(path string) string {
	return head(path, maxBodyBytes, "X-Signature: "+signatureOf("sha256", hashes["sha256"], testToken, []byte(large))) + large
}

// Any client that reaches the port can send large bodies slowly.
func TestStalledUnverifiedRequestsBlockNoSender(t *testing.T) {
	table, path := oneReceiver(t)
	dial, handler := serve(t, table, patient)
	const strangers = 5 * maxLarge
	for i := range strangers {
		dial(head("/hook/"+strings.Repeat("x", i), maxBodyBytes) + stalled)
	}
	eventually(t, "all are read", func() bool { all, _ := handler.large.all(); return all == strangers })
	if _, kept := handler.large.all(); kept > 0 {
		t.Errorf("%d bodies of strangers are kept", kept)
	}
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"a large body":                  {signedLarge(path), http.StatusOK},
		"a large body that is unsigned": {head(path, maxBodyBytes) + large, http.StatusNotFound},
		"a large body of a stranger":    {head("/hook/y", maxBodyBytes) + large, http.StatusNotFound},
		"a small body of a stranger":    {head("/hook/y", 2) + "{}", http.StatusNotFound},
	} {
		if got := code(t, dial(tc.text)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// A sender that stalls gets the same response whether the path exists or not.
func TestStallsRevealNoPath(t *testing.T) {
	names := []string{"ci", "one", "two"}
	table, _ := newTable(tokensOf(names...))
	paths := map[string]string{"unknown": "/hook/unknown"}
	for _, name := range names {
		paths[name] = load(t, table, name, v1alpha1.GenericHMACReceiver)
	}
	stall := func(dial func(string) net.Conn, handler *Handler, path string) {
		t.Helper()
		before, _ := handler.large.all()
		for range maxLargeOfOne {
			dial(head(path, maxBodyBytes) + stalled)
		}
		eventually(t, "all are read", func() bool { all, _ := handler.large.all(); return all == before+maxLargeOfOne })
	}
	want := func(dial func(string) net.Conn, path string, want int) {
		t.Helper()
		sent := large
		if want == http.StatusServiceUnavailable {
			sent = stalled // the server does not read the rest
		}
		if got := code(t, dial(head(path, maxBodyBytes)+sent)); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if got := code(t, dial(head(path, smallBodyBytes-1)+large[1:smallBodyBytes])); got != http.StatusNotFound {
			t.Errorf("%s with a small body: %d", path, got)
		}
	}
	for _, name := range []string{"ci", "unknown"} {
		t.Run("one path: "+name, func(t *testing.T) {
			dial, handler := serve(t, table, patient)
			stall(dial, handler, paths[name])
			want(dial, paths[name], http.StatusServiceUnavailable)
			want(dial, "/hook/another", http.StatusNotFound)
			want(dial, paths["one"], http.StatusNotFound)
		})
	}
	t.Run("no room", func(t *testing.T) {
		dial, handler := serve(t, table, patient)
		stall(dial, handler, paths["one"])
		stall(dial, handler, paths["two"])
		want(dial, paths["ci"], http.StatusServiceUnavailable)
		want(dial, paths["unknown"], http.StatusServiceUnavailable)
	})
}

// The path of generic-oidc is not a secret, and other paths may appear in logs.
func TestPathAloneUsesNoRecordOfVerifiedSender(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	table, _ := newTable(tokensOf("gitlab", "alertmanager"))
	good := token(issuer.claims(nil), jose.RS256, rsaKey(), kid("rsa"))
	forged := token(issuer.claims(nil), jose.RS256, rsaOther(), kid("rsa"))
	body := `{"status":"firing"}` + large[:smallBodyBytes]
	for name, tc := range map[string]struct {
		path         string
		right, wrong string
	}{
		"gitlab":       {load(t, table, "gitlab", v1alpha1.GitLabReceiver), "X-Gitlab-Event: Push Hook\r\nX-Gitlab-Token: " + testToken, "X-Gitlab-Event: Push Hook\r\nX-Gitlab-Token: wrong"},
		"alertmanager": {load(t, table, "alertmanager", v1alpha1.AlertmanagerReceiver), "Authorization: Bearer " + testToken, "X-A: b"},
		"generic-oidc": {load(t, table, "oidc", v1alpha1.GenericOIDCReceiver, func(s *v1alpha1.GateReceiverSpec) {
			s.SecretRef, s.OIDCProviders = nil, []v1alpha1.OIDCProvider{issuer.provider()}
		}), "Authorization: Bearer " + good, "Authorization: Bearer " + forged},
	} {
		t.Run(name, func(t *testing.T) {
			dial, handler := serve(t, table, patient)
			for range maxLargeOfOne {
				dial(head(tc.path, len(body), tc.wrong) + stalled)
			}
			eventually(t, "all are read", func() bool { all, _ := handler.large.all(); return all == maxLargeOfOne })
			if got := code(t, dial(head(tc.path, len(body), tc.wrong)+body)); got != http.StatusServiceUnavailable {
				t.Errorf("a stranger: %d", got)
			}
			if got := code(t, dial(head(tc.path, len(body), tc.right)+body)); got != http.StatusOK {
				t.Errorf("the sender: %d", got)
			}
			if got := code(t, dial(head(tc.path, 2, tc.wrong)+"{}")); got != http.StatusNotFound {
				t.Errorf("a stranger with a small body: %d", got)
			}
		})
	}
}

func TestLargeUnverifiedBodyIsNotKept(t *testing.T) {
	table, path := oneReceiver(t)
	handler := newHandler(table, nil)
	allocated := func(path string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := send(handler, http.MethodPost, path, large); got.Code != http.StatusNotFound {
			t.Errorf("got %d", got.Code)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if got := allocated("/hook/x"); got > smallBodyBytes {
		t.Errorf("%d bytes for a stranger", got)
	}
	if got := allocated(path); got < maxBodyBytes {
		t.Errorf("%d bytes for one who has the path: the test measures nothing", got)
	}
	if slices.ContainsFunc(zeros[:], func(b byte) bool { return b != 0 }) {
		t.Error("what was sent is in what stands in for it")
	}
}

// answering records how much memory is reserved when the response is written.
type answering struct {
	*httptest.ResponseRecorder
	large      *largeBodies
	all, taken int
}

func (a *answering) WriteHeader(code int) {
	a.all, a.taken = a.large.all()
	a.ResponseRecorder.WriteHeader(code)
}

// A sender that has received its response may send the next body. The memory of the last one must be released by then.
func TestMemoryOfBodyIsReleasedBeforeResponse(t *testing.T) {
	table, path := oneReceiver(t)
	handler := newHandler(table, nil)
	for _, path := range []string{path, "/hook/x"} {
		w := &answering{ResponseRecorder: httptest.NewRecorder(), large: &handler.large, all: -1}
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(large)))
		if w.Code != http.StatusNotFound || w.all != 0 || w.taken != 0 {
			t.Errorf("%d: %d bodies have room, %d of them are kept", w.Code, w.all, w.taken)
		}
	}
}

// The receiver existed when the first byte arrived.
func TestReceiverIsReadAfterBody(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "ci"}
	for name, tc := range map[string]struct {
		change func(t *testing.T, table *Table, s *secrets)
		want   int
	}{
		"it stays":     {func(*testing.T, *Table, *secrets) {}, http.StatusOK},
		"it is loaded": {func(t *testing.T, table *Table, _ *secrets) { load(t, table, "ci", v1alpha1.GitLabReceiver) }, http.StatusOK},
		"it goes":      {func(_ *testing.T, table *Table, _ *secrets) { table.Forget(key) }, http.StatusNotFound},
		"it is suspended": {func(t *testing.T, table *Table, _ *secrets) {
			load(t, table, "ci", v1alpha1.GitLabReceiver, func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true })
		}, http.StatusServiceUnavailable},
		"it is of another type": {func(t *testing.T, table *Table, _ *secrets) {
			load(t, table, "ci", v1alpha1.AlertmanagerReceiver)
		}, http.StatusNotFound},
		"its token changes, and the path stays": {func(t *testing.T, table *Table, s *secrets) {
			s.set("apps/ci", map[string]string{"token": "new", "previousToken": testToken})
			load(t, table, "ci", v1alpha1.GitLabReceiver)
		}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := newTable(tokensOf("ci"))
			path := load(t, table, "ci", v1alpha1.GitLabReceiver)
			dial, handler := serve(t, table, patient)
			body := "{}" + large[2:]
			conn := dial(head(path, len(body), "X-Gitlab-Token: "+testToken, "X-Gitlab-Event: Push Hook") + body[:smallBodyBytes+1])
			eventually(t, "the first part is read", func() bool { _, kept := handler.large.all(); return kept == 1 })
			tc.change(t, table, s)
			if _, err := io.WriteString(conn, body[smallBodyBytes+1:]); err != nil {
				t.Fatal(err)
			}
			if got := code(t, conn); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// counted counts the bytes that are hashed.
type counted struct {
	hash.Hash
	bytes *int
}

func (c counted) Write(p []byte) (int, error) {
	*c.bytes += len(p)
	return c.Hash.Write(p)
}

// Hashing the body is the most expensive operation for an unverified sender.
func TestHashingCostIsEqualForUnknownPaths(t *testing.T) {
	table, s := newTable(tokensOf("ci", "github", "gitlab", "alertmanager"))
	s.set("apps/github", map[string]string{"token": testToken, "previousToken": previousToken})
	paths := map[string]string{
		"unknown": "/hook/x", "ci": load(t, table, "ci", v1alpha1.GenericHMACReceiver), "github": load(t, table, "github", v1alpha1.GitHubReceiver),
		"gitlab": load(t, table, "gitlab", v1alpha1.GitLabReceiver), "alertmanager": load(t, table, "alertmanager", v1alpha1.AlertmanagerReceiver),
	}
	usual, hashed := hashes["sha256"], 0
	hashes["sha256"] = func() hash.Hash { return counted{usual(), &hashed} }
	defer func() { hashes["sha256"] = usual }()
	handler := newHandler(table, nil)
	for _, body := range []string{large[:1000], large} {
		for _, headers := range [][]string{
			nil, {"X-Signature", "sha256=00"}, {"X-Signature", "sha256=zz"}, {"X-Signature", "md5=00"}, {"X-Hub-Signature-256", "sha256=00"}, {"X-Gitlab-Token", "wrong"},
		} {
			seen := map[int][]string{}
			for name, path := range paths {
				hashed = 0
				if got := send(handler, http.MethodPost, path, body, headers...); got.Code != http.StatusNotFound {
					t.Errorf("%s: %d", name, got.Code)
				}
				seen[hashed] = append(seen[hashed], name)
			}
			if len(seen) != 1 || hashed < len(body) {
				t.Errorf("%q with %d bytes: hashed %v", headers, len(body), seen)
			}
		}
	}
}

func TestFlaggerRefusesLargeBody(t *testing.T) {
	f, _ := newFlagger(openGates("test/podinfo"))
	body := `{"name":"podinfo","namespace":"test"}`
	for length, want := range map[int]int{smallBodyBytes: http.StatusOK, smallBodyBytes + 1: http.StatusRequestEntityTooLarge} {
		padded := body + strings.Repeat(" ", length-len(body))
		if got := send(f, http.MethodPost, "/gate/check", padded); got.Code != want {
			t.Errorf("%d bytes: %d", length, got.Code)
		}
		chunked := httptest.NewRequest(http.MethodPost, "/gate/check", struct{ io.Reader }{strings.NewReader(padded)})
		w := httptest.NewRecorder()
		if f.ServeHTTP(w, chunked); w.Code != want || w.Header().Get("Connection") != "close" {
			t.Errorf("%d bytes in chunks: %d", length, w.Code)
		}
	}
}
