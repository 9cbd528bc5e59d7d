package policies

import (
	"strings"
	"testing"
)

// A tenant may patch in the own namespace, and holds nothing of others.
func TestATenantDoesNotReachFurtherThanTheirNamespace(t *testing.T) {
	w := newWorld(t)
	tenant, platform := w.as("tina", editor, viewer), w.as("pia", editor, viewer)
	w.mayOn("tina", "patch", apps, releases)
	w.bind("pia", true, "patch", nil, apps)
	spanning := map[string]string{
		"all namespaces":                  `{"kind":"Kustomization","name":"*","namespace":"*"}`,
		"one name in all namespaces":      `{"kind":"Kustomization","name":"apps","namespace":"*"}`,
		"labels in all namespaces":        `{"kind":"Kustomization","name":"*","namespace":"*","matchLabels":{"team":"a"}}`,
		"a selector with labels":          `{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"` + w.Namespace + `"}}}`,
		"a selector with expressions":     `{"kind":"Kustomization","name":"apps","namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["` + w.Namespace + `"]}]}}`,
		"the apiVersion spelled out":      `{"kind":"Kustomization","apiVersion":"kustomize.toolkit.fluxcd.io/v1","name":"*","namespace":"*"}`,
		"expressions about the objects":   `{"kind":"Kustomization","name":"*","namespace":"*","matchExpressions":[{"key":"a","operator":"Exists"}]}`,
		"after what they may hold":        `{"kind":"HelmRelease","name":"*"},{"kind":"Kustomization","name":"*","namespace":"*"}`,
		"before what they may hold":       `{"kind":"Kustomization","name":"*","namespace":"*"},{"kind":"HelmRelease","name":"*"}`,
		"twice, and what they may hold":   strings.Repeat(`{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"a":"b"}}},`, 2) + own[len(`{"targets":[`):len(own)-len(`]}`)],
		"among more than can be checked":  `{"kind":"Kustomization","name":"*","namespace":"*"}` + strings.Repeat(`,{"kind":"Kustomization","name":"x"}`, 254),
		"a selector that matches nothing": `{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"no":"such"}}}`,
	}
	for name, targets := range spanning {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			file := w.hold("fleet", `{"targets":[`+targets+`]}`)
			w.noHold(tenant, w.mayNotHoldAnywhere("tina", "fleet"), "create", "-f", file)
			if !strings.Contains(targets, "HelmRelease") {
				w.allowed(platform, "create", "--dry-run=server", "-f", file)
			}
		})
	}

	w.allowed(tenant, "create", "-f", w.hold("fleet", own))
	for name, patch := range map[string]string{
		"one more":               `[{"op":"add","path":"/spec/targets/-","value":{"kind":"Kustomization","name":"*","namespace":"*"}}]`,
		"another namespace":      `[{"op":"add","path":"/spec/targets/0/namespace","value":"*"}]`,
		"a selector besides":     `[{"op":"add","path":"/spec/targets/0/namespaceSelector","value":{"matchLabels":{"a":"b"}}}]`,
		"expressions and others": `[{"op":"replace","path":"/spec/targets/0","value":{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"a":"b"}},"matchExpressions":[{"key":"a","operator":"Exists"}]}}]`,
	} {
		t.Run("a change: "+name, func(t *testing.T) {
			w.on(t).noHold(tenant, w.mayNotHoldAnywhere("tina", "fleet"), "patch", "gate", "fleet", "--type=json", "-p", patch)
		})
	}
	w.allowed(platform, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"team":"a"}}}]}}`)
	w.noHold(tenant, w.mayNotHoldAnywhere("tina", "fleet"), "patch", "gate", "fleet", "--type=json", "-p", `[{"op":"replace","path":"/spec/targets/0/namespaceSelector","value":{"matchLabels":{"b":"c"}}}]`)
	w.noHold(tenant, w.mayNotHoldAnywhere("tina", "fleet"), "patch", "gate", "fleet", "--type=json", "-p", `[{"op":"add","path":"/spec/targets/0/namespaceSelector/matchLabels/team","value":"b"}]`)
	w.allowed(tenant, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"interval":"5m"}}`)
	w.allowed(tenant, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":null}}`)
}

// A person who may patch in all namespaces needs no verb in any of them.
func TestWhoMayHoldInAllNamespacesHoldsOfEachKindThatTheyMayPatch(t *testing.T) {
	w := newWorld(t)
	pia := w.as("petra", editor, viewer)
	w.bind("petra", true, "patch", nil, apps)
	w.allowed(pia, "create", "-f", w.hold("fleet", `{"targets":[{"kind":"Kustomization","name":"*","namespace":"*"},{"kind":"Kustomization","name":"x","namespace":"other"}]}`))
	w.noHold(pia, "user petra may not hold HelmReleases in all namespaces by gate "+w.Namespace+"/fleet: that needs the verb patch on "+releases+" there\n",
		"patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"HelmRelease","name":"*","namespaceSelector":{"matchLabels":{"team":"a"}}}]}}`)
}
