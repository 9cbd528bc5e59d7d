package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// withSecret replaces the data of a receiver's Secret, and loads the receiver again.
func (w *world) withSecret(name string, data map[string]string) (path string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(secret)
	secret.Data, secret.StringData = nil, data
	w.Must(w.Client.Update(w.Context(), secret))
	return w.load(name)
}

// standard returns the headers of Standard Webhooks.
func standard(secret, id string, at time.Time, body string) []string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "." + body))
	return []string{"webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

func TestGitLabWebhookNeedsBothProofsAndIsAcceptedOnce(t *testing.T) {
	const body, event, signing = `{"object_kind":"pipeline"}`, "X-Gitlab-Event", "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY="
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	w.receiver("gitlab", v1alpha1.GitLabReceiver)
	path := w.withSecret("gitlab", map[string]string{"token": token + "\n", "signingToken": signing + "\n"})
	good := append(standard(signing, "one", w.clock.Now(), body), event, "Pipeline Hook")
	byToken := []string{"X-Gitlab-Token", token}
	other := standard(token, "one", w.clock.Now(), body)
	for name, headers := range map[string][]string{
		"the token alone":     append(byToken, event, "Pipeline Hook"),
		"the signature alone": good,
		"a wrong token":       append([]string{"X-Gitlab-Token", "wrong"}, good...),
		"a wrong signature":   append(append([]string{event, "Pipeline Hook"}, byToken...), other...),
		"neither":             {event, "Pipeline Hook"},
	} {
		if got := w.post(path, body, headers...); got.code != http.StatusNotFound || got.body != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.expectNoRequest()
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		if got := w.post(path, body, append(byToken, good...)...); got.code != want {
			t.Errorf("both, %d: %+v", i, got)
		}
	}
	again := append(standard(signing, "one", w.clock.Now().Add(time.Second), body), event, "Pipeline Hook")
	if got := w.post(path, body, append(byToken, again...)...); got.code != http.StatusConflict {
		t.Errorf("the same ID at another time: %+v", got)
	}
	// The Secret is read before each request.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "gitlab", Namespace: w.Namespace}}
	w.Read(secret)
	secret.Data["signingToken"] = []byte("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 32))))
	w.Must(w.Client.Update(w.Context(), secret))
	late := append(standard(signing, "two", w.clock.Now(), body), event, "Pipeline Hook")
	if got := w.post(path, body, append(byToken, late...)...); got.code != http.StatusNotFound {
		t.Errorf("a signing token that was removed: %+v", got)
	}
}

func TestStandardWebhookIsAcceptedOnceWhileRecent(t *testing.T) {
	const body = `{"type":"deploy.done","reason":"smoke tests passed","id":9007199254740993}`
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("svix", v1alpha1.StandardWebhooksReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.Events, s.Filter = []string{"deploy.done"}, "req.id == 9007199254740993"
	})
	send := func(id string, at time.Time, body string) int {
		return w.post(path, body, standard(token, id, at, body)...).code
	}
	now := w.clock.Now()
	for i, tc := range []struct {
		id   string
		at   time.Time
		body string
		want int
	}{
		{"one", now.Add(-5 * time.Minute), body, http.StatusBadRequest},
		{"one", now, strings.Replace(body, "deploy.done", "deploy.failed", 1), http.StatusBadRequest},
		{"one", now, strings.Replace(body, "993", "992", 1), http.StatusOK}, // filtered
		{"one", now, body, http.StatusOK},
		{"one", now, body, http.StatusConflict},
		{"one", now.Add(time.Second), body, http.StatusConflict},
		{"two", now, body, http.StatusOK},
	} {
		if got := send(tc.id, tc.at, tc.body); got != tc.want {
			t.Errorf("%d: %d, want %d", i, got, tc.want)
		}
		if at, _, reason := w.request("production", v1alpha1.RequestOpen); i < 3 && at != "" || i == 3 && reason != "smoke tests passed" {
			t.Errorf("%d: requested at %q, reason %q", i, at, reason)
		}
	}
	w.clock.Step(10 * time.Minute)
	if got := send("one", now, body); got != http.StatusBadRequest {
		t.Errorf("after the window: %d", got)
	}
}

func TestSlackAndGrafanaSendersAreVerified(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("slack", v1alpha1.GenericHMACReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.Signature = &v1alpha1.ReceiverSignature{Header: "X-Slack-Signature", Algorithm: "sha256", Prefix: "v0=",
			TimestampHeader: "X-Slack-Request-Timestamp", Payload: "v0:{timestamp}:{body}"}
		s.Action, s.ActionExpr = "", "headers['x-slack-signature'] == '' ? 'open' : ''"
	})
	stamp := fmt.Sprint(w.clock.Now().Unix())
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("v0:" + stamp + ":{}"))
	headers := []string{"X-Slack-Signature", fmt.Sprintf("v0=%x", mac.Sum(nil)), "X-Slack-Request-Timestamp", stamp}
	if got := w.post(path, "{}", "X-Signature", sign("{}")); got.code != http.StatusNotFound {
		t.Errorf("X-Signature: %+v", got)
	}
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		if got := w.post(path, "{}", headers...); got.code != want {
			t.Errorf("%d: %+v", i, got)
		}
	}
	w.clock.Step(5 * time.Minute)
	if got := w.post(path, "{}", headers...); got.code != http.StatusBadRequest || !strings.Contains(got.body, "timestamp must be less than 5m0s from now") {
		t.Errorf("later: %+v", got)
	}
}
