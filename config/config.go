// Package config embeds the manifests that the plugin reads. It is not part of a release of them.
package config

import "embed"

// Files are the manifests that kubectl gate kinds derives others from, by their path below config.
//
//go:embed suspend-kinds/role.yaml suspend-kinds/role_binding.yaml lock/hold.yaml lock/delete.yaml policies/target_verb.yaml
var Files embed.FS

// Definitions are the CRDs of all kinds that users write.
//
//go:embed crd/bases/*.yaml machines/crd.yaml
var Definitions embed.FS
