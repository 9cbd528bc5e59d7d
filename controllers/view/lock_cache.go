package view

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api"
	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/crds"
)

// GateLockDefinition is the name of the CRD of GateLocks. It is installed with the policies that read them.
const GateLockDefinition = "gatelocks." + api.InternalGroup

// errLocksUnread is the error that prevents releases while GateLocks cannot be read.
var errLocksUnread = errors.New(msgLocksUnread)

// LockReader reads GateLocks.
type LockReader interface {
	// Lock returns the GateLock of a namespace, or of all namespaces for v1alpha1.AnyName. If it does not exist, the result has no resource
	// version. The result is nil if GateLocks are not installed or the namespace of the controller is unknown. The result must not be
	// changed.
	Lock(ctx context.Context, namespace string) (*lockv1alpha1.GateLock, error)

	// Naming returns the namespaces whose GateLocks name a Gate, given as namespace/name. v1alpha1.AnyName stands for all namespaces.
	Naming(ctx context.Context, gate string) ([]string, error)
}

// LockCache is a LockReader that uses an informer of GateLocks, which exist only if config/lock is installed.
type LockCache struct {
	// Cache must not depend on kinds that may not be installed.
	Cache ctrlcache.Cache
	// APIReader reads from the API server.
	APIReader client.Reader
	// Own is the namespace of the controller, which contains the GateLock of all namespaces.
	Own string
	// Handler handles the events of all GateLocks.
	Handler toolscache.ResourceEventHandler

	mu       sync.RWMutex
	informer ctrlcache.Informer
}

// Sync starts or stops the informer depending on whether GateLocks are installed. It returns whether that has changed.
func (l *LockCache) Sync(ctx context.Context) (bool, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := l.APIReader.Get(ctx, client.ObjectKey{Name: GateLockDefinition}, crd)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && crds.ServedVersion(crd, "") == "" {
		return false, fmt.Errorf("kind %s %w", lockv1alpha1.GateLockKind, ErrNotInstalled)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case (err == nil) == (l.informer != nil):
		return false, nil
	case err != nil: // GateLocks are not installed
		l.informer = nil
		return true, l.Cache.RemoveInformer(ctx, &lockv1alpha1.GateLock{})
	}
	informer, err := l.Cache.GetInformer(ctx, &lockv1alpha1.GateLock{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return false, err
	}
	if _, err := informer.AddEventHandler(l.Handler); err != nil {
		return false, err
	}
	l.informer = informer
	return true, nil
}

// readable returns whether GateLocks are installed. It returns an error if they are installed but cannot be read yet.
func (l *LockCache) readable() (bool, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.informer != nil && !l.informer.HasSynced() {
		return true, errLocksUnread
	}
	return l.informer != nil, nil
}

// Lock implements LockReader.
func (l *LockCache) Lock(ctx context.Context, namespace string) (*lockv1alpha1.GateLock, error) {
	installed, err := l.readable()
	if err != nil || !installed {
		return nil, err
	}
	key := LockKey(namespace, l.Own)
	if key.Namespace == "" {
		return nil, nil //nolint:nilnil // see LockReader
	}
	return ReadLock(ctx, l.Cache, key, client.UnsafeDisableDeepCopy)
}

// LockKey returns the key of the GateLock of a namespace, or of all namespaces. own is the namespace of the controller.
func LockKey(namespace, own string) client.ObjectKey {
	if namespace == v1alpha1.AnyName {
		return client.ObjectKey{Namespace: own, Name: lockv1alpha1.AllNamespacesLockName}
	}
	return client.ObjectKey{Namespace: namespace, Name: lockv1alpha1.GateLockName}
}

// LockedNamespace returns the namespace that a GateLock locks, v1alpha1.AnyName for all namespaces.
func LockedNamespace(obj *lockv1alpha1.GateLock) string {
	if obj.Name == lockv1alpha1.AllNamespacesLockName {
		return v1alpha1.AnyName
	}
	return obj.Namespace
}

// ReadLock reads a GateLock.
func ReadLock(ctx context.Context, reader client.Reader, key client.ObjectKey, opts ...client.GetOption) (*lockv1alpha1.GateLock, error) {
	obj := &lockv1alpha1.GateLock{}
	err := reader.Get(ctx, key, obj, opts...)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		obj = &lockv1alpha1.GateLock{}
		obj.Namespace, obj.Name = key.Namespace, key.Name
	}
	return obj, nil
}

// Naming implements LockReader.
func (l *LockCache) Naming(ctx context.Context, gate string) ([]string, error) {
	installed, err := l.readable()
	if err != nil || !installed {
		return nil, err
	}
	list := &lockv1alpha1.GateLockList{}
	if err := l.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return Naming(list, gate, l.Own), nil
}

// Naming returns the namespaces of the GateLocks that name a Gate. A GateLock of all namespaces outside the controller's namespace does
// not count, because it is left over from a controller that has moved, and no policy reads it.
func Naming(list *lockv1alpha1.GateLockList, gate, own string) []string {
	var namespaces []string
	for i := range list.Items {
		l := &list.Items[i]
		if _, ok := l.Spec.Gates[gate]; ok && (l.Name != lockv1alpha1.AllNamespacesLockName || l.Namespace == own) {
			namespaces = append(namespaces, LockedNamespace(l))
		}
	}
	return namespaces
}
