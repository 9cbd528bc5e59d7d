//go:build tools

// Package tools keeps the API modules in go.mod, though only CRDs are generated from them: a tool directive takes main packages only.
package tools

import (
	_ "github.com/fluxcd/helm-controller/api/v2"
	_ "github.com/fluxcd/image-automation-controller/api/v1"
	_ "github.com/fluxcd/image-reflector-controller/api/v1"
)
