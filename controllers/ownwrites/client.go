package ownwrites

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StaleRetry is the delay before a reconciliation is repeated because the cache is older than the last write of this process.
const StaleRetry = 100 * time.Millisecond

// Cache holds state of objects in memory.
type Cache interface {
	// Forget evicts an object that was deleted.
	Forget(uid types.UID)
}

// Evictor is a cache with keys of type K.
type Evictor[K any] interface {
	// Evict removes the entry of an object that was deleted.
	Evict(key K)
}

// Client reads the objects that its caller reconciles, and patches them. A read never returns an older version than the last write.
type Client struct {
	// Client reads from a cache.
	client.Client
	// Live reads from the API server.
	Live client.Reader
	// Versions tracks the versions of the reconciled objects, which all have the same kind.
	Versions *Versions[types.NamespacedName]
	// Caches evict an object when it is deleted, or deleted and created again.
	Caches []Cache
}

// Get reads an object and records that it is being reconciled. It reads from the API server if the cache is behind.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	switch {
	case apierrors.IsNotFound(err):
		c.Evict(c.Versions.evict(key))
	case err == nil && c.Versions.IsBehind(key, obj.GetResourceVersion()):
		reflect.ValueOf(obj).Elem().SetZero() // because decoding keeps fields that are missing in the response
		err = c.Live.Get(ctx, key, obj, opts...)
	}
	if err == nil {
		c.Evict(c.Versions.Reconciles(key, obj))
	}
	return err
}

// Evict evicts an object from all caches. Its version is kept until the client's cache no longer has the object.
func (c *Client) Evict(uid types.UID) {
	if uid == "" {
		return
	}
	for _, cache := range c.Caches {
		cache.Forget(uid)
	}
}

// Patch implements client.Client.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.wrote(obj, c.Client.Patch(ctx, obj, patch, opts...))
}

// Status implements client.Client.
func (c *Client) Status() client.SubResourceWriter { return statusClient{c.Client.Status(), c} }

// statusClient patches the status.
type statusClient struct {
	client.SubResourceWriter
	client *Client
}

// Patch implements client.SubResourceWriter.
func (s statusClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.wrote(obj, s.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}

// wrote records the version of an object unless the write failed.
func (c *Client) wrote(obj client.Object, err error) error {
	if err == nil {
		c.Versions.Wrote(client.ObjectKeyFromObject(obj), obj.GetResourceVersion())
	}
	return err
}
