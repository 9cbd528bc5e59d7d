package view

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// FetchTarget returns a target from the cache, nil if it does not exist or is being deleted: Flux prunes nothing when a suspended object
// is deleted. isBehind is true if the cache has not been read, or is older than our last write.
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

// RereadTarget reads a target from the API server, trimmed. It returns nil if the target is gone or was recreated.
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
