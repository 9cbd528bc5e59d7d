package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// install builds the controller.
var install = sync.OnceValue(func() error { return cluster.Install(context.Background()) })

// flaggerProcess is a built controller that serves Flagger.
type flaggerProcess struct {
	*harness.World
	*harness.Process
	address string
}

func startFlagger(w *harness.World, args ...string) *flaggerProcess {
	w.Helper()
	w.Must(install())
	p := &flaggerProcess{World: w, address: harness.FreeAddress()}
	var err error
	p.Process, err = w.StartGatingController(w.Context(), append([]string{"--flagger-addr=" + p.address, "--receiver-addr=", "--log-level=trace"}, args...)...)
	w.Must(err)
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{p.Process} })
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
	})
	p.Eventually("the server responds", func() error { return p.returns("/gate/approve", "", http.StatusOK) })
	return p
}

// returns returns an error unless a request gets a status code.
func (p *flaggerProcess) returns(path, body string, code int, headers ...string) error {
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if response.StatusCode != code {
		err = fmt.Errorf("%s %s: %s, want %d", path, body, response.Status, code)
	}
	return errors.Join(err, response.Body.Close())
}

// mayReadSecrets permits the controller to read the Secrets of a namespace, as config/webhooks does for all namespaces.
func mayReadSecrets(w *harness.World, namespace string) {
	w.Helper()
	for _, args := range [][]string{
		{"create", "role", "gating-controller-webhooks", "--resource=secrets", "--verb=get"},
		{"create", "rolebinding", "gating-controller-webhooks", "--role=gating-controller-webhooks", "--serviceaccount=" + harness.RuntimeNamespace + ":gating-controller"},
	} {
		_, err := w.Kubectl(w.Context(), append([]string{"--namespace", namespace}, args...)...)
		w.Must(err)
	}
}

// receiverIsReady waits until the controller has loaded a receiver.
func (p *flaggerProcess) receiverIsReady(namespace, name string) {
	p.Helper()
	p.Eventually("receiver "+name+" is ready", func() error {
		obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		if err := p.TryRead(obj); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(obj.Status.Conditions, meta.ReadyCondition) {
			return fmt.Errorf("conditions are %v", obj.Status.Conditions)
		}
		return nil
	})
}

func TestFlaggerRequestsSurviveRestart(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("podinfo")
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
	mayReadSecrets(w.World, w.Namespace)
	first := startFlagger(w.World)
	first.receiverIsReady(w.Namespace, "closer")
	canary := fmt.Sprintf(`{"name":"podinfo","namespace":%q,"phase":"WaitingPromotion"}`, w.Namespace)
	must := func(p *flaggerProcess, path string, code int) {
		t.Helper()
		if err := p.returns(path, canary, code, bearing(token)...); err != nil {
			t.Error(err)
		}
	}
	passes := func(p *flaggerProcess) {
		t.Helper()
		p.Eventually("the check passes", func() error { return p.returns("/gate/check", canary, http.StatusOK) })
	}
	open := func() { // as a person does
		t.Helper()
		w.Annotate(w.ReadGate("podinfo"), v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	}
	must(first, "/gate/check", http.StatusForbidden)
	must(first, "/gate/open", http.StatusForbidden)
	open()
	passes(first)

	w.Must(first.Kill())
	second := startFlagger(w.World)
	passes(second)
	must(second, "/rollback/check", http.StatusForbidden)
	must(second, "/gate/close", http.StatusAccepted)
	must(second, "/gate/check", http.StatusForbidden)
	open()
	passes(second)
	must(second, "/gate/close", http.StatusAccepted)
	must(second, "/gate/check", http.StatusForbidden)
	w.Eventually("the controller closes the gate", func() error {
		g := w.ReadGate("podinfo")
		if last := g.LatestRequest(); last == nil || last.Action != v1alpha1.RequestClose || last.Source != v1alpha1.SourceWebhook ||
			last.RequestedBy != "GateReceiver "+w.Namespace+"/closer" {
			return fmt.Errorf("the last request is %+v", last)
		}
		return nil
	})
	must(second, "/gate/check", http.StatusForbidden)
	for _, p := range []*flaggerProcess{first, second} {
		if log, err := os.ReadFile(p.Log); err != nil || strings.Contains(string(log), token) || !strings.Contains(string(log), `"logger":"flagger"`) {
			t.Errorf("%v, logged:\n%s", err, log)
		}
	}
}
