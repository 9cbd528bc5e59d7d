//go:build tools

// Package oldest keeps the API modules in go.mod.
package oldest

import (
	_ "github.com/fluxcd/helm-controller/api/v2"
	_ "github.com/fluxcd/image-automation-controller/api/v1beta2"
	_ "github.com/fluxcd/image-reflector-controller/api/v1beta2"
	_ "github.com/fluxcd/kustomize-controller/api/v1"
	_ "github.com/fluxcd/source-controller/api/v1"
)
