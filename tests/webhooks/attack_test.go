package webhooks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// raw sends bytes on a new connection and returns everything that it receives.
func (w *world) raw(text string) string {
	w.Helper()
	conn, err := new(net.Dialer).DialContext(w.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	w.Must(err)
	defer conn.Close() //nolint:errcheck // everything was read
	w.Must(conn.SetDeadline(time.Now().Add(10 * time.Second)))
	// The server may close before it has read everything.
	_, _ = io.WriteString(conn, text)
	response, _ := io.ReadAll(conn)
	return string(response)
}

// closing is the end of the headers of a raw request.
const closing = "Host: a\r\nConnection: close\r\n"

// expectNoRequest fails if there is a request on the Gate production.
func (w *world) expectNoRequest() {
	w.Helper()
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		if at, by, _ := w.request("production", action); at != "" {
			w.Errorf("%s was requested at %s by %s", action, at, by)
		}
	}
}

// types has the types of receivers with a secret, with valid headers and a valid body except for the proof.
var types = map[string]struct {
	body    string
	headers []string
}{
	v1alpha1.GenericHMACReceiver:      {`{}`, []string{"X-Signature", "sha256=00"}},
	v1alpha1.GitHubReceiver:           {`{}`, []string{"X-Hub-Signature-256", "sha256=00", "X-GitHub-Event", "push", "X-GitHub-Delivery", "1"}},
	v1alpha1.GitLabReceiver:           {`{}`, []string{"X-Gitlab-Token", "wrong", "X-Gitlab-Event", "Push Hook"}},
	v1alpha1.StandardWebhooksReceiver: {`{}`, []string{"webhook-id", "1", "webhook-timestamp", "1", "webhook-signature", "v1,AAAA"}},
	v1alpha1.AlertmanagerReceiver:     {`{"version":"4","status":"firing"}`, []string{"Authorization", "Bearer wrong"}},
	v1alpha1.FluxEventReceiver:        {`{"involvedObject":{"kind":"a","name":"b"},"reason":"c","message":"d"}`, []string{"X-Signature", "sha256=00"}},
}

func TestUnknownPathLooksLikeWrongProof(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	for kind, attempt := range types {
		path := w.receiver(kind, kind)
		suspended := w.receiver(kind+"-suspended", kind, func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true })
		broken := kind + "-broken"
		for _, body := range []string{attempt.body, "", "{", strings.Repeat("a", 1<<20), strings.Repeat("a", 3<<20+1)} {
			seen := map[string]bool{}
			for _, p := range []string{path, suspended, "/hook/" + strings.Repeat("0", 64), "/", "/hook/", path + "0", "/" + broken} {
				got := w.post(p, body, attempt.headers...)
				got.header.Del("Date")
				seen[fmt.Sprint(got.code, got.header, got.body)] = true
				if want := map[bool]int{true: http.StatusRequestEntityTooLarge, false: http.StatusNotFound}[len(body) > 3<<20]; got.code != want {
					t.Errorf("%s: %d", kind, got.code)
				}
			}
			if len(seen) != 1 {
				t.Errorf("%s, %d bytes: the responses differ: %v", kind, len(body), seen)
			}
		}
	}
	w.expectNoRequest()
}

func TestOtherMethodsAreRefusedEqually(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "post", "BREW"} {
		seen := map[string]bool{}
		for _, p := range []string{path, "/hook/unknown"} {
			response := w.raw(method + " " + p + " HTTP/1.1\r\n" + closing + "Content-Length: 2\r\n\r\n{}")
			before, date, dated := strings.Cut(response, "Date: ")
			_, after, _ := strings.Cut(date, "\r\n")
			if !strings.HasPrefix(response, "HTTP/1.1 405 ") || !strings.Contains(response, "Allow: POST\r\n") || !dated {
				t.Errorf("%s: %q", method, response)
				continue
			}
			seen[before+after] = true
		}
		if len(seen) != 1 {
			t.Errorf("%s: %v", method, seen)
		}
	}
	w.expectNoRequest()
}

func TestSuspendedReceiverRevealsItToVerifiedSenderOnly(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("gitlab", v1alpha1.GitLabReceiver, func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true })
	if got := w.post(path, "{}", "X-Gitlab-Token", "wrong", "X-Gitlab-Event", "a"); got.code != http.StatusNotFound || got.body != "" {
		t.Errorf("a client without the proof gets %+v", got)
	}
	if got := w.post(path, "{}", "X-Gitlab-Token", token, "X-Gitlab-Event", "a"); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("the sender gets %+v", got)
	}
	w.expectNoRequest()
}

func TestLargeOrEncodedBodyIsRefused(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	head := "POST " + path + " HTTP/1.1\r\n" + closing
	large := strings.Repeat("a", 3<<20+1)
	for name, tc := range map[string]struct{ request, want string }{
		"a length that is too large":        {head + "Content-Length: 3145729\r\n\r\n", "413"},
		"the largest length":                {head + "Content-Length: 9223372036854775807\r\n\r\n", "413"},
		"a length beyond the largest one":   {head + "Content-Length: 9223372036854775808\r\n\r\n", "400"},
		"a negative length":                 {head + "Content-Length: -1\r\n\r\n", "400"},
		"chunks that are too large":         {head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large), "413"},
		"a chunk with an absurd length":     {head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n", "400"},
		"a chunk that is not a number":      {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		"gzip":                              {head + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", zipped.Len(), zipped.String()), "415"},
		"deflate":                           {head + "Content-Encoding: deflate\r\nContent-Length: 2\r\n\r\n{}", "415"},
		"gzip in upper case":                {head + "Content-Encoding: GZIP\r\nContent-Length: 2\r\n\r\n{}", "415"},
		"gzip as transfer encoding":         {head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
		"two lengths":                       {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400"},
		"chunked twice":                     {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
		"headers that are too large":        {head + "X-A: " + strings.Repeat("a", 300<<10) + "\r\n\r\n", "431"},
		"too many headers":                  {head + strings.Repeat("X-A: a\r\n", 60_000) + "\r\n", "431"},
		"no host":                           {"POST " + path + " HTTP/1.1\r\n\r\n", "400"},
		"a header with NUL":                 {head + "X-A: a\x00b\r\n\r\n", "400"},
		"a header name with a blank":        {head + "X-A : a\r\n\r\n", "400"},
		"an unknown version":                {"POST " + path + " HTTP/3.7\r\n" + closing + "\r\n", "505"},
		"an invalid encoding of the path":   {"POST /hook/%zz HTTP/1.1\r\n" + closing + "\r\n", "400"},
		"something that is not HTTP":        {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "400"},
		"a request that is split by a path": {"POST " + path + "\r\nX-A: b HTTP/1.1\r\n" + closing + "\r\n", "400"},
	} {
		if response := w.raw(tc.request); !strings.HasPrefix(response, "HTTP/1.1 "+tc.want+" ") && !strings.HasPrefix(response, "HTTP/1.0 "+tc.want+" ") {
			t.Errorf("%s: %.80q, want %s", name, response, tc.want)
		}
	}
	w.expectNoRequest()
	if got := w.post(path, "{}", "Content-Encoding", "identity"); got.code != http.StatusOK {
		t.Errorf("identity: %+v", got)
	}
}

// If a proxy uses the length and the server reads chunks, the rest would count as a request of another client. So the connection must end.
func TestRequestSmugglingIsRefused(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	hidden := "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
	for name, request := range map[string]string{
		"length and chunks":     fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(hidden), hidden),
		"chunked in mixed case": "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a folded header":       "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked , identity\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
	} {
		if response := w.raw(request); strings.Contains(response, " 200 ") {
			t.Errorf("%s: %q", name, response)
		}
	}
	w.expectNoRequest()
}

func TestOnlyExactPathIsAccepted(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	send := func(target, version string) string {
		response := w.raw("POST " + target + " " + version + "\r\n" + closing + "Content-Length: 2\r\n\r\n{}")
		if len(response) < 12 || strings.Contains(response, "Location:") {
			t.Fatalf("%s: %q", target, response)
		}
		return response[9:12]
	}
	for _, target := range []string{
		"/" + path, "/hook/.." + path, "/hook/./" + path[6:], path + "/", path + "%20", path + "%00", path + "/..", strings.ToUpper(path),
		"/hook/" + strings.ToUpper(path[6:]), "/hook%2f" + path[6:] + "/", path + ";a=b", "/HOOK" + path[5:], "/%2e" + path, path[:len(path)-1], "http://a/x?" + path,
	} {
		if got := send(target, "HTTP/1.1"); got != "404" {
			t.Errorf("%s: %s", target, got)
		}
	}
	w.expectNoRequest()
	for _, target := range []string{path, path + "?a=b", "http://elsewhere" + path, strings.Replace(path, "/hook", "/%68ook", 1)} {
		if got := send(target, "HTTP/1.1"); got != "200" {
			t.Errorf("%s: %s", target, got)
		}
	}
	if got := send(path, "HTTP/1.0"); got != "200" {
		t.Errorf("HTTP/1.0: %s", got)
	}
}

func TestDuplicateProofIsRefused(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	good := sign("{}")
	for _, headers := range [][]string{
		{"X-Signature", good, "X-Signature", "sha256=00"}, {"X-Signature", "sha256=00", "X-Signature", good}, {"X-Signature", good, "X-Signature", good},
		{"X-Signature", good + ", sha256=00"}, {"X-Signature", strings.ToUpper(good)}, {"X-Signature", "md5=" + good[7:]}, {"X-Signature", good[7:]},
		{"X-Signature", good + "é"}, {"X-Signature", good[:40]}, {"X-Signature", "sha256=" + good}, {"X-Signatur", good}, {"X-Signature", ""},
	} {
		if got := w.post(path, "{}", headers...); got.code != http.StatusNotFound {
			t.Errorf("%q: %d", headers, got.code)
		}
	}
	w.expectNoRequest()
	folded := w.raw("POST " + path + " HTTP/1.1\r\n" + closing + "X-Signature: sha256=\r\n " + good[7:] + "\r\nContent-Length: 2\r\n\r\n{}")
	if strings.Contains(folded, " 200 ") {
		t.Errorf("a folded header: %q", folded)
	}
	if got := w.post(path, "{}", "X-Signature", good); got.code != http.StatusOK {
		t.Errorf("the valid one: %+v", got)
	}
}

// The text of a sender is written to annotations, the status, the log and terminals.
func TestReasonCannotInjectRequest(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver)
	for body, want := range map[string]string{
		`{"reason":"a\nclose.gate.fluxcd.io/requestedAt: now"}`:      "a close.gate.fluxcd.io/requestedAt: now",
		`{"reason":"a\u0000b\u001b[31mc\u202e"}`:                     "a b [31mc",
		"{\"reason\":\"a\xff\xfeb\"}":                                "a\ufffd\ufffdb",
		`{"reason":"\ud800x"}`:                                       "\ufffdx",
		`{"reason":"` + strings.Repeat("r", 1<<20) + `"}`:            strings.Repeat("r", 1024),
		`{"reason":"one","reason":"two"}`:                            "two",
		`{"reason":{"a":1},"message":["b"]}`:                         "",
		`{"reason":1e999}`:                                           "",
		strings.Repeat(`{"a":`, 100_000):                             "",
		strings.Repeat(`[`, 3<<20):                                   "",
		"\x00\x01\x02":                                               "",
		`"reason"`:                                                   "",
		`null`:                                                       "",
		`{"` + strings.Repeat(`a":1,"`, 400_000) + `reason":"many"}`: "many",
	} {
		if got := w.post(path, body); got.code != http.StatusOK {
			t.Errorf("%.40q: %+v", body, got)
		}
		if _, _, reason := w.request("production", v1alpha1.RequestClose); reason != want {
			t.Errorf("%.40q: reason %.80q, want %.80q", body, reason, want)
		}
	}
	scanner := bufio.NewScanner(strings.NewReader(w.log.String()))
	for scanner.Scan() {
		if line := scanner.Text(); len(line) > 4096 || !strings.HasPrefix(line, "{") {
			t.Errorf("a line of %d bytes in the log: %.100s", len(line), line)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Error(err)
	}
}

func TestEndlessExpressionDelaysNoOther(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	slow := w.receiver("slow", v1alpha1.GenericReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.Filter = "req.l.all(x, req.l.all(y, req.l.all(z, x == z)))"
	})
	other := w.receiver("other", v1alpha1.GenericReceiver)
	bomb := `{"secret":"` + token + `","l":[` + strings.Repeat("{},", 100_000) + `{}]}`
	responses := make(chan reply, 4)
	for range cap(responses) {
		go func() { responses <- w.post(slow, bomb) }()
	}
	if got := w.post(other, "{}"); got.code != http.StatusOK {
		t.Errorf("another receiver: %+v", got)
	}
	for range cap(responses) {
		select {
		case got := <-responses:
			if got.code != http.StatusInternalServerError || strings.Contains(got.body, token) {
				t.Errorf("the slow receiver: %+v", got)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the evaluation does not end")
		}
	}
}
