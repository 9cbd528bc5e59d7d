package controllers

import (
	"sync"

	"github.com/fluxcd/gating-controller/internal/target"
)

// targetVersions has the versions of targets that were written last, until somebody else writes them. The zero value is ready
// for use.
type targetVersions struct {
	mu      sync.Mutex
	written map[target.Key]string
}

func (v *targetVersions) wrote(key target.Key, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.written == nil {
		v.written = map[target.Key]string{}
	}
	v.written[key] = version
}

// behind returns whether a target of the cache is older than what was written.
func (v *targetVersions) behind(key target.Key, obj *target.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch written, ok := v.written[key]; {
	case !ok || obj.GetResourceVersion() == written:
		return false
	case older(obj.GetResourceVersion(), written):
		return true
	}
	delete(v.written, key) // somebody else wrote it since
	return false
}

// isOwn returns whether a version of a target is the one that was written last.
func (v *targetVersions) isOwn(key target.Key, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.written[key] == version
}

func (v *targetVersions) forget(key target.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, key)
}
