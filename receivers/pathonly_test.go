package receivers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// countsWrites counts writes of Gates.
type countsWrites struct {
	several
	writes int
}

func (c *countsWrites) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.writes++
	return nil
}

// The API server refuses a receiver of type generic that opens, but may have stored one before this rule existed.
func TestWebhookWithOnlySecretPathOpensNoGate(t *testing.T) {
	const refused = "a webhook whose path is its only secret cannot open a gate: sign it, as generic-hmac does\n"
	body := fluxBody()
	signature := []string{"X-Signature", signedFlux(body).header.Get("X-Signature")}
	for name, tc := range map[string]struct {
		kind, action string
		headers      []string
		code         int
		text         string
	}{
		"generic opens":                 {v1alpha1.GenericReceiver, "'open'", nil, http.StatusForbidden, refused},
		"generic opens with a header":   {v1alpha1.GenericReceiver, "'open'", signature, http.StatusForbidden, refused},
		"generic closes":                {v1alpha1.GenericReceiver, "'close'", nil, http.StatusOK, "close requested\n"},
		"generic requests nothing":      {v1alpha1.GenericReceiver, "''", nil, http.StatusOK, "nothing to request\n"},
		"an event opens":                {v1alpha1.FluxEventReceiver, "'open'", nil, http.StatusForbidden, refused},
		"an event closes":               {v1alpha1.FluxEventReceiver, "'close'", nil, http.StatusOK, "close requested\n"},
		"a signed event opens":          {v1alpha1.FluxEventReceiver, "'open'", signature, http.StatusOK, "open requested\n"},
		"generic-hmac opens":            {v1alpha1.GenericHMACReceiver, "'open'", signature, http.StatusOK, "open requested\n"},
		"alertmanager opens":            {v1alpha1.AlertmanagerReceiver, "'open'", []string{"Authorization", "Bearer " + testToken}, http.StatusOK, "open requested\n"},
		"alertmanager without a header": {v1alpha1.AlertmanagerReceiver, "'open'", nil, http.StatusNotFound, ""},
	} {
		for _, form := range []string{"action", "actionExpr"} {
			if form == "action" && tc.action == "''" {
				continue
			}
			table, _ := newTable(tokensOf("smoke"))
			obj := receiverOf("smoke", "apps", func(s *v1alpha1.GateReceiverSpec) {
				s.Type, s.Action, s.ActionExpr = tc.kind, "", tc.action
				if form == "action" {
					s.Action, s.ActionExpr = v1alpha1.RequestAction(strings.Trim(tc.action, "'")), ""
				}
			})
			path, err := table.Load(t.Context(), obj)
			notReady := tc.kind == v1alpha1.GenericReceiver && (form == "actionExpr" || tc.action != "'close'")
			cause := (*Refused)(nil)
			switch errors.As(err, &cause); {
			case notReady && (cause == nil || cause.Reason() != v1alpha1.InvalidSpecReason || !strings.HasPrefix(err.Error(), "type generic can only close, because ")):
				t.Errorf("%s, %s: loaded with %v", name, form, err)
			case !notReady && err != nil:
				t.Errorf("%s, %s: %v", name, form, err)
			}
			c := &countsWrites{several: several{gates: map[string]*v1alpha1.Gate{"a": {}, "b": {}}}}
			handler := newHandler(table, c)
			sent := body
			if tc.kind == v1alpha1.AlertmanagerReceiver {
				sent = firing
			}
			got := send(handler, http.MethodPost, path, sent, tc.headers...)
			writes := 0
			if strings.HasSuffix(tc.text, " requested\n") {
				writes = 2
			}
			if got.Code != tc.code || got.Body.String() != tc.text || c.writes != writes {
				t.Errorf("%s, %s: %d %q and %d writes, want %d %q", name, form, got.Code, got.Body, c.writes, tc.code, tc.text)
			}
		}
	}
}
