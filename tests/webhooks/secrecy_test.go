package webhooks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// evaluates makes a receiver evaluate a string expression that is neither an action nor a bool, so that the evaluation fails.
func evaluates(s *v1alpha1.GateReceiverSpec, expression string) {
	if s.Type == v1alpha1.GenericReceiver {
		s.Filter = "bool(" + expression + ")"
		return
	}
	s.Action, s.ActionExpr = "", expression
}

// The log, a response or the metrics must not contain anything that permits sending a webhook.
func TestSecretsAreNotLoggedOrReturned(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	var responses strings.Builder
	var secrets []string
	body := `{"version":"4","status":"firing","alerts":[],"groupKey":"g","involvedObject":{"kind":"a","name":"b"},"reason":"c","message":"d"}`
	proofs := []string{
		"X-Signature", sign(body), "X-Hub-Signature-256", sign(body), "X-GitHub-Event", "push", "X-GitHub-Delivery", "1",
		"X-Gitlab-Token", token, "X-Gitlab-Event", "Push Hook", "Authorization", "Bearer " + token, "X-Delivery-Id", "1", "Cookie", "a=" + token,
		"X-Sign", sign(body)[7:],
	}
	proofs = append(proofs, standard(token, "1", w.clock.Now(), body)...)
	wrong := []string{
		"X-Signature", "sha256=c0ffee00c0ffee00", "X-Hub-Signature-256", "sha256=c0ffee00c0ffee00", "X-Gitlab-Token", "c0ffee00c0ffee00",
		"webhook-id", "1", "webhook-timestamp", "1", "webhook-signature", "v1,c0ffee00c0ffee00", "X-Sign", "c0ffee00c0ffee00",
		"Authorization", "Bearer c0ffee00c0ffee00", "Cookie", "a=c0ffee00c0ffee00", "X-GitHub-Event", "push", "X-GitHub-Delivery", "1",
	}
	secrets = append(secrets, token, sign(body)[7:], strings.TrimPrefix(proofs[len(proofs)-1], "v1,"), "c0ffee00c0ffee00")
	taken := 0
	send := func(path string) {
		secrets = append(secrets, strings.TrimPrefix(path, "/hook/"))
		for _, headers := range [][]string{proofs, proofs, wrong, {}} {
			for _, b := range []string{body, "{", strings.Repeat(token, 1<<18)} {
				got := w.post(path, b, headers...)
				if got.code == http.StatusOK {
					taken++
				}
				fmt.Fprintln(&responses, got)
			}
			w.post(path+"/", body, headers...)
			w.raw("GET " + path + " HTTP/1.1\r\n" + closing + "\r\n")
			w.raw("POST " + path + "%zz HTTP/1.1\r\n" + closing + "\r\n")
		}
	}
	kinds := []string{
		v1alpha1.GenericReceiver, v1alpha1.GenericHMACReceiver, v1alpha1.GitHubReceiver, v1alpha1.GitLabReceiver,
		v1alpha1.AlertmanagerReceiver, v1alpha1.FluxEventReceiver, v1alpha1.StandardWebhooksReceiver,
	}
	for i, kind := range kinds {
		for j, change := range []func(*v1alpha1.GateReceiverSpec){
			func(*v1alpha1.GateReceiverSpec) {},
			func(s *v1alpha1.GateReceiverSpec) { s.GateRefs[0].Name = "missing" },
			func(s *v1alpha1.GateReceiverSpec) { s.Suspend = true },
			func(s *v1alpha1.GateReceiverSpec) { evaluates(s, "string(headers['authorization'])") },
			func(s *v1alpha1.GateReceiverSpec) { evaluates(s, "string(headers['x-signature'])") },
			func(s *v1alpha1.GateReceiverSpec) {
				if s.Type == v1alpha1.GenericHMACReceiver {
					s.Signature = &v1alpha1.ReceiverSignature{Header: "X-Sign", Algorithm: "sha256"}
				}
				evaluates(s, "headers.map(h, h + string(headers[h])).join(',')") // everything that an expression can read
			},
		} {
			send(w.receiver(fmt.Sprintf("r%d-%d", i, j), kind, change))
		}
	}
	if taken == 0 {
		t.Error("no webhook was accepted")
	}
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"the log": w.log.String(), "an answer": responses.String(), "a metric": fmt.Sprint(families)} {
		if len(text) < 1000 {
			t.Errorf("%s has only %d bytes", name, len(text))
		}
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s contains a secret: %.300q", name, text[max(0, at-200):])
				break
			}
		}
	}
}
