package receivers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func receiverOf(name, namespace string, change ...func(*v1alpha1.GateReceiverSpec)) *v1alpha1.GateReceiver {
	obj := &v1alpha1.GateReceiver{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: metav1.NewTime(testNow)},
		Spec: v1alpha1.GateReceiverSpec{
			Type: v1alpha1.GenericReceiver, SecretRef: &meta.LocalObjectReference{Name: name}, Action: "close",
			GateRefs: []v1alpha1.GateReference{{Name: "a"}, {Name: "b"}},
		},
	}
	for _, c := range change {
		c(&obj.Spec)
	}
	return obj
}

func TestWebhookIsFilteredAndSelectsAction(t *testing.T) {
	header := http.Header{"X-Event": {"deploy", "again"}, "Authorization": {"Bearer hidden"}, "X-Signature": {"sha256=hidden"}}
	for name, tc := range map[string]struct {
		filter, actionExpr, targetsExpr, want, err string
		action                                     v1alpha1.RequestAction
	}{
		"an action":                        {action: "close", want: "close"},
		"an expression":                    {actionExpr: "req.ok ? 'open' : 'close'", want: "open"},
		"an expression for nothing":        {actionExpr: "''", want: ""},
		"another value":                    {actionExpr: "string(req.word)", err: "actionExpr must return"},
		"the right value with a blank":     {actionExpr: "'open '", err: "actionExpr must return"},
		"an absent key":                    {actionExpr: "string(req.nothing)", err: "actionExpr: "},
		"a key that may be absent":         {actionExpr: "req.?nothing.orValue('') == '' ? 'open' : 'close'", want: "open"},
		"a filter that passes":             {filter: "req.ok", action: "open", err: "filter"},
		"a filter of type bool":            {filter: "req.ok == true", action: "open", want: "open"},
		"a filter that does not pass":      {filter: "req.word == 'other'", action: "open", want: ""},
		"a filter over an absent key":      {filter: "req.nothing == 1", action: "open", err: "filter: "},
		"a filter before a failing action": {filter: "false", actionExpr: "string(req.nothing)", want: ""},
		"headers by their lower case name": {filter: "headers['x-event'] == 'deploy, again'", action: "open", want: "open"},
		"no secrets of headers":            {filter: "headers['authorization'] == '' && headers['x-signature'] == ''", action: "open", want: "open"},
		"a header that must be there":      {filter: "'x-signature' in headers && !('x-hub-signature' in headers)", action: "open", want: "open"},
		"targets":                          {action: "open", targetsExpr: "['Kustomization/' + req.app]", want: "open Kustomization/apps"},
		"no targets":                       {action: "open", targetsExpr: "[]", want: ""},
		"targets that are not text":        {action: "open", targetsExpr: "[req.ok]", err: "targetsExpr: "},
		"a target in another namespace":    {action: "open", targetsExpr: "['Kustomization/infra/' + req.app]", want: "open Kustomization/infra/apps"},
		"a target that is not allowed":     {action: "open", targetsExpr: "['Kustomization/infra/' + req.word]", err: "targetsExpr: it must return targets that spec.targets lists"},
		"a namespace that is not allowed":  {action: "open", targetsExpr: "['Kustomization/prod/apps']", err: "targetsExpr: it must return targets that spec.targets lists"},
		"a kind that is not allowed":       {action: "open", targetsExpr: "['HelmRelease/apps']", err: "targetsExpr: it must return targets that spec.targets lists"},
		"a text with another key":          {action: "open", targetsExpr: "['Kustomization/apps,only=Kustomization/web']", err: "targetsExpr: it must return targets that spec.targets lists"},
		"too many targets":                 {action: "open", targetsExpr: "['a','b','c','d','e','f','g','h','i','j','k','l','m','n','o','p','q'].map(x, 'Kustomization/' + x)", err: "targetsExpr: it returns more than 16 targets"},
		"targets of a webhook for nothing": {actionExpr: "''", targetsExpr: "['Kustomization/apps']", want: ""},
		"claims that are not there":        {filter: "size(claims) == 0", action: "open", want: "open"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := compile(receiverOf("smoke", "apps", func(s *v1alpha1.GateReceiverSpec) {
				s.Type, s.Filter, s.Action, s.ActionExpr, s.TargetsExpr = v1alpha1.GenericHMACReceiver, tc.filter, tc.action, tc.actionExpr, tc.targetsExpr
				if tc.targetsExpr != "" {
					s.Targets = []v1alpha1.ReceiverTarget{{Kind: "Kustomization", Name: "*"}, {Kind: "Kustomization", Namespace: "infra", Name: "apps"}}
				}
			}))
			var got gateRequest
			if err == nil {
				got, err = e.decide(t.Context(), header, &webhook{body: map[string]any{"ok": true, "word": "s3cret", "app": "apps"}})
			}
			text := string(got.action)
			if got.targets != nil {
				text += " " + ledger.FormatTargets(got.targets)
			}
			if strings.TrimSpace(text) != tc.want || (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", text, err)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("the error tells what was sent: %s", err)
			}
		})
	}
}

// expr sets spec.actionExpr instead of spec.action.
func expr(text string) func(*v1alpha1.GateReceiverSpec) {
	return func(s *v1alpha1.GateReceiverSpec) { s.Action, s.ActionExpr = "", text }
}

func TestExpressionOfOtherTypeIsRefused(t *testing.T) {
	for _, change := range []func(*v1alpha1.GateReceiverSpec){
		expr("true"),
		expr("open"),
		expr("req.action"), // can have any type
		func(s *v1alpha1.GateReceiverSpec) { s.Filter = "'true'" },
		func(s *v1alpha1.GateReceiverSpec) { s.Filter = "vars.x == 1" },
		func(s *v1alpha1.GateReceiverSpec) { s.Filter = "req.a ==" },
		func(s *v1alpha1.GateReceiverSpec) {
			s.Filter = strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000)
		},
	} {
		obj := receiverOf("smoke", "apps", change)
		e, err := compile(obj)
		if err == nil || e == nil || e.broken == nil {
			t.Errorf("%q, %.20q: %v", obj.Spec.ActionExpr, obj.Spec.Filter, err)
		}
	}
}

// The API server refuses all of these. But it does not validate objects again that were stored with an older definition.
func TestReceiverHasActionOrExpression(t *testing.T) {
	const one = "exactly one of action and actionExpr must be set"
	for _, tc := range []struct {
		action     v1alpha1.RequestAction
		expr, want string
	}{
		{"", "", one},
		{"open", "'open'", one},
		{"req.ok ? 'open' : 'close'", "", "action must be open or close: write an expression in actionExpr"},
	} {
		e, err := compile(receiverOf("smoke", "apps", func(s *v1alpha1.GateReceiverSpec) { s.Action, s.ActionExpr = tc.action, tc.expr }))
		if err == nil || err.Error() != tc.want || e == nil || e.broken == nil {
			t.Errorf("%q, %q: got %v", tc.action, tc.expr, err)
		}
	}
}

func TestEventsAreComparedCaseInsensitively(t *testing.T) {
	e, err := compile(receiverOf("smoke", "apps", func(s *v1alpha1.GateReceiverSpec) { s.Events = []string{"push", "Tag Push Hook"} }))
	if err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]bool{"PUSH": true, "tag push hook": true, "pus": false, "": false} {
		if e.takes(event) != want {
			t.Errorf("%q", event)
		}
	}
}

func TestWebhookAffectsGatesNamedByBoth(t *testing.T) {
	e, err := compile(receiverOf("smoke", "apps"))
	if err != nil {
		t.Fatal(err)
	}
	for want, names := range map[int][]string{2: nil, 1: {"b", "b", "other", "../a"}, 0: {}} {
		if got := e.gatesFor(&webhook{gates: names}); len(got) != want {
			t.Errorf("%q: got %v", names, got)
		}
	}
}

func TestReasonIsOneShortLine(t *testing.T) {
	for reason, want := range map[string]string{
		"ok": "ok", "\ta\r\nb\x00c\u202ed\t": "a  b c d", "\xff\xfea": "a", "é\x1b[31m": "é [31m", "\n\n": "",
	} {
		if got := cut(reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
	if got := cut(strings.Repeat("é", 1<<20)); len(got) > maxReason || strings.Trim(got, "é") != "" {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestLimiterIsPerReceiver(t *testing.T) {
	a, _ := compile(receiverOf("a", "apps"))
	b, _ := compile(receiverOf("b", "apps"))
	for i := range burst {
		if !a.limiter.AllowN(testNow, 1) {
			t.Fatalf("request %d is refused", i)
		}
	}
	if a.limiter.AllowN(testNow, 1) || !b.limiter.AllowN(testNow, 1) || !a.limiter.AllowN(testNow.Add(time.Second/requestsPerSecond), 1) {
		t.Error("the burst is not that of each")
	}
}
