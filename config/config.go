// Package config embeds the manifests that the plugin reads. The released manifests do not contain it.
package config

import "embed"

// Files contains the manifests from which kubectl gate kinds generates others, by path below
// config.
//
//go:embed suspend-kinds/role.yaml suspend-kinds/role_binding.yaml lock/hold.yaml lock/delete.yaml lock/overlay.yaml policies/target_verb.yaml
var Files embed.FS

// Definitions contains the CRDs of all kinds that users write.
//
//go:embed crd/bases/*.yaml machines/crd.yaml
var Definitions embed.FS
