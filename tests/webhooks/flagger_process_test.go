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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// patient is for what the built controller must do; two cores may be busy.
const patient = time.Minute

// install builds the controller.
var install = sync.OnceValue(func() error { return cluster.Install(context.Background()) })

// flaggerProcess is a built controller that serves Flagger.
type flaggerProcess struct {
	*testing.T
	*harness.Process
	address string
}

func startFlagger(t *testing.T, args ...string) *flaggerProcess {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
	p := &flaggerProcess{T: t, address: harness.FreeAddress()}
	var err error
	p.Process, err = cluster.StartGatingController(t.Context(), append([]string{"--flagger-addr=" + p.address, "--receiver-addr=", "--log-level=trace"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			log, err := os.ReadFile(p.Log)
			t.Logf("log of the gating-controller (%v):\n%s", err, log[max(0, len(log)-8000):])
		}
	})
	p.eventually("it answers", func() error { return p.answers("/gate/approve", "", http.StatusOK) })
	return p
}

func (p *flaggerProcess) eventually(what string, check func() error) {
	p.Helper()
	if err := harness.Eventually(p.Context(), patient, what, check); err != nil {
		p.Fatal(err)
	}
}

// answers returns an error unless a request is answered with a code.
func (p *flaggerProcess) answers(path, body string, code int, headers ...string) error {
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

// mayReadSecrets lets the controller read the Secrets of a namespace, as
// config/webhooks does for all.
func mayReadSecrets(t *testing.T, namespace string) {
	t.Helper()
	for _, args := range [][]string{
		{"create", "role", "gating-controller-webhooks", "--resource=secrets", "--verb=get"},
		{"create", "rolebinding", "gating-controller-webhooks", "--role=gating-controller-webhooks", "--serviceaccount=" + harness.RuntimeNamespace + ":gating-controller"},
	} {
		if _, err := cluster.Kubectl(t.Context(), append([]string{"--namespace", namespace}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
}

// receiverIsReady waits until the controller has loaded a receiver.
func (p *flaggerProcess) receiverIsReady(namespace, name string) {
	p.Helper()
	p.eventually("receiver "+name+" is ready", func() error {
		obj := &v1alpha1.GateReceiver{}
		if err := cluster.Client.Get(p.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(obj.Status.Conditions, meta.ReadyCondition) {
			return fmt.Errorf("conditions are %v", obj.Status.Conditions)
		}
		return nil
	})
}

func TestWhatFlaggerIsToldSurvivesTheController(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.gate("podinfo")
	w.receiver("opener", v1alpha1.GenericReceiver, of("open", "podinfo"))
	w.receiver("closer", v1alpha1.GenericReceiver, of("close", "podinfo"))
	mayReadSecrets(t, w.namespace)
	first := startFlagger(t)
	for _, name := range []string{"opener", "closer"} {
		first.receiverIsReady(w.namespace, name)
	}
	canary := fmt.Sprintf(`{"name":"podinfo","namespace":%q,"phase":"WaitingPromotion"}`, w.namespace)
	must := func(p *flaggerProcess, path string, code int) {
		t.Helper()
		if err := p.answers(path, canary, code, bearing(token)...); err != nil {
			t.Error(err)
		}
	}
	passes := func(p *flaggerProcess) {
		t.Helper()
		p.eventually("the check passes", func() error { return p.answers("/gate/check", canary, http.StatusOK) })
	}
	must(first, "/gate/check", http.StatusForbidden)
	must(first, "/gate/open", http.StatusAccepted)
	passes(first)

	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	second := startFlagger(t)
	passes(second)
	must(second, "/rollback/check", http.StatusForbidden)
	must(second, "/gate/close", http.StatusAccepted)
	must(second, "/gate/check", http.StatusForbidden)
	must(second, "/gate/open", http.StatusAccepted)
	passes(second)
	must(second, "/gate/close", http.StatusAccepted)
	must(second, "/gate/check", http.StatusForbidden)
	g := &v1alpha1.Gate{}
	second.eventually("the controller closes the gate", func() error {
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "podinfo"}, g); err != nil {
			return err
		}
		if last := g.Status.LastRequest; last == nil || last.Action != v1alpha1.RequestClose || last.Source != v1alpha1.SourceWebhook ||
			last.By != "GateReceiver "+w.namespace+"/closer" {
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
