package controllertest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

// LiveLocks is a LockReader that reads from the API server. Tests set whether GateLocks count as installed.
type LiveLocks struct {
	World     *World
	Installed bool
}

// Lock implements LockReader.
func (l *LiveLocks) Lock(ctx context.Context, namespace string) (*lockv1alpha1.GateLock, error) {
	if !l.Installed {
		return nil, nil //nolint:nilnil // as LockReader specifies
	}
	key := view.LockKey(namespace, l.World.Own)
	if key.Namespace == "" {
		return nil, nil //nolint:nilnil // as LockReader specifies
	}
	return view.ReadLock(ctx, controlPlane.Client, key)
}

// Naming implements LockReader.
func (l *LiveLocks) Naming(ctx context.Context, gate string) ([]string, error) {
	if !l.Installed {
		return nil, nil
	}
	var namespaces []string
	for _, namespace := range l.World.AllNamespaces {
		list := &lockv1alpha1.GateLockList{}
		if err := controlPlane.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		namespaces = append(namespaces, view.Naming(list, gate, l.World.Own)...)
	}
	return namespaces, nil
}
