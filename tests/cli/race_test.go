package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// beforePatch returns the address of an API server proxy that calls do once, before the first patch of a Gate.
func (w *world) beforePatch(do func()) string {
	w.Helper()
	transport, err := rest.TransportFor(w.Config)
	w.Must(err)
	server, err := url.Parse(w.Config.Host)
	w.Must(err)
	var once sync.Once
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPatch {
			once.Do(do)
		}
		proxy.ServeHTTP(out, req)
	}))
	w.Cleanup(front.Close)
	return front.URL
}

// Another user closes the Gate manually after thaw has read it and before thaw writes it.
func TestThawKeepsConcurrentCloseRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.hasExactly("bob", rule{"get,list,watch,patch", "gates.gating.toolkit.fluxcd.io"})
	w.expect(w.gate("freeze", "--for", "1h", "--reason", "incident"), 0, "closed", "")
	closes := func() {
		w.expect(w.as("bob").gate("close", "staging", "--for", "3h", "--reason", "mine"), 0, "closed", "")
	}
	got := w.gate("thaw", "--server", w.beforePatch(closes))
	if got.code == 0 || !strings.Contains(got.errOut, "it stays frozen, because the close request of bob (mine) is also in force") {
		t.Errorf("%+v", got)
	}
	w.Opened("staging", "False")
}
