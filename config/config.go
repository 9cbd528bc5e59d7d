// Package config has the manifests that kubectl gate kinds makes others of. It is not part of a release of them.
package config

import "embed"

// Files are those manifests, by their path below config.
//
//go:embed suspend-kinds/role.yaml suspend-kinds/role_binding.yaml lock/hold.yaml lock/delete.yaml policies/target_verb.yaml
var Files embed.FS
