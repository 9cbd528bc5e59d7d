package view

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// FetchTarget returns a target from the cache. It returns nil if the target does not exist, or if it is being deleted, because Flux
// prunes nothing when a suspended object is deleted. isBehind is true if the cache has not been read, or is older than the last write of
// this process.
func FetchTarget(ctx context.Context, targets TargetReader, versions *ownwrites.Versions[target.Key], key target.Key) (obj *target.Object, isBehind bool, err error) {
	obj, err = targets.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotRead):
		return nil, true, nil
	case err != nil, obj == nil, !obj.GetDeletionTimestamp().IsZero():
		return nil, false, err
	}
	return obj, versions.IsBehind(key, obj.GetResourceVersion()), nil
}

// RereadTarget reads a target from the API server and trims it. It returns nil if the target was deleted or recreated.
func RereadTarget(ctx context.Context, live client.Reader, obj *target.Object) (*target.Object, error) {
	latest := &target.Object{}
	latest.SetGroupVersionKind(obj.GroupVersionKind())
	err := live.Get(ctx, client.ObjectKeyFromObject(obj), latest)
	if err != nil || latest.GetUID() != obj.GetUID() {
		return nil, client.IgnoreNotFound(err)
	}
	target.Trim(&latest.Unstructured, verdict.Us)
	return latest, nil
}
