package kube

import (
	"testing"
)

func TestParseNames(t *testing.T) {
	all := []Kind{ExceptionKind, GateKind, SourceKind}
	for arg, want := range map[string]string{
		"production": "Gate here/production", "gate/production": "Gate here/production", "shop/production": "Gate shop/production",
		"gate/shop/production": "Gate shop/production", "gates/production": "Gate here/production", "Gate/production": "Gate here/production",
		"gate.gating.toolkit.fluxcd.io/production": "Gate here/production", "gate/gate/production": "Gate gate/production",
		"exception/hotfix": "GateException here/hotfix", "gateexception/hotfix": "GateException here/hotfix", "exception/shop/hotfix": "GateException shop/hotfix",
		"source/apps": "GatedSource here/apps", "gatedsources/apps": "GatedSource here/apps",
		"receiver/ci": "Gate receiver/ci", "gatereceiver/ci": `unsupported kind "gatereceiver": use exception/NAME, gate/NAME or source/NAME`,
		"kustomization/apps": `unsupported kind "kustomization": use exception/NAME, gate/NAME or source/NAME`,
		"widget/shop/apps":   `unsupported kind "widget": use exception/NAME, gate/NAME or source/NAME`,
		"gate/":              `"gate/" is not a name: use NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME`,
		"a/b/c/d":            `"a/b/c/d" is not a name: use NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME`,
	} {
		kind, key, err := ParseName(arg, "here", all...)
		got := kind.Kind + " " + key.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
}
