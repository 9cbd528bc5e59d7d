package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatelocks,verbs=get;list;watch;create;update

// gateLocks is the name of the definition of GateLocks. It comes with the
// policies that read them.
const gateLocks = "gatelocks.gating.toolkit.fluxcd.io"

// lockReadTimeout bounds the wait for the cache of GateLocks, which never comes
// if they may not be read.
const lockReadTimeout = 10 * time.Second

// Locks writes the GateLocks, which are there only if config/lock is installed.
type Locks struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Namespaces are those whose GateLocks are written, none means all.
	Namespaces map[string]ctrlcache.Config

	mu        sync.Mutex
	installed bool
	// books by namespace, nil until they are listed.
	books map[string]*book
}

// book is what is known of the GateLock of a namespace. This process is its only
// writer, or one of few shards: what it has written last is true until the API
// server says otherwise.
type book struct {
	mu sync.Mutex
	// lock as it was read or written last, nil if it has to be read. One that does
	// not exist has no resource version.
	lock   *v1alpha1.GateLock
	shares map[string]lock.Share

	// waiting are changes that the next write makes all at once: a write is of the
	// whole object, and many Gates may close at the same time.
	waitingMu sync.Mutex
	waiting   []*change
}

// change is that of the share of a Gate in a GateLock. Without a share the Gate
// is to have none.
type change struct {
	gate  string
	share *lock.Share
	// cached is the version of the GateLock that the cache had, empty for none.
	cached string
	// done says that it was made, or failed with err, by whoever wrote.
	done bool
	err  error
}

// Sync looks whether GateLocks are installed, and returns whether that changed.
func (l *Locks) Sync(ctx context.Context) (bool, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := l.APIReader.Get(ctx, client.ObjectKey{Name: gateLocks}, crd)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && servedVersion(crd, "") == "" {
		return false, fmt.Errorf("kind %s %w", v1alpha1.GateLockKind, ErrNotInstalled)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := (err == nil) != l.installed
	if changed {
		l.installed, l.books = err == nil, nil
	}
	return changed, nil
}

// Put makes the shares of a Gate, given as namespace/name, those by namespace
// and removes all others that it has. It returns nil if GateLocks are not
// installed.
func (l *Locks) Put(ctx context.Context, gate string, shares map[string]lock.Share) error {
	books, cached, err := l.open(ctx, shares)
	if err != nil {
		return err
	}
	var errs []error
	for namespace, b := range books {
		c := &change{gate: gate, cached: cached[namespace]}
		if share, ok := shares[namespace]; ok {
			c.share = &share
		}
		if err := l.put(ctx, namespace, b, c); err != nil {
			errs = append(errs, fmt.Errorf("GateLock of namespace %s: %w", namespace, err))
		}
	}
	return errors.Join(errs...)
}

// open returns the books of all namespaces, also of those that have none yet but
// are to get shares, and the versions in the cache. There are none if GateLocks are
// not installed.
func (l *Locks) open(ctx context.Context, shares map[string]lock.Share) (books map[string]*book, cached map[string]string, err error) {
	l.mu.Lock()
	installed := l.installed
	l.mu.Unlock()
	if !installed {
		return nil, nil, nil
	}
	if cached, err = l.cached(ctx); err != nil {
		return nil, nil, fmt.Errorf("reading GateLocks: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.installed {
		return nil, nil, nil // no longer
	}
	if l.books == nil {
		if l.books, err = l.list(ctx); err != nil {
			return nil, nil, fmt.Errorf("reading GateLocks: %w", err)
		}
	}
	add := func(namespace string) {
		if l.books[namespace] == nil {
			l.books[namespace] = &book{}
		}
	}
	for namespace := range shares {
		add(namespace)
	}
	for namespace := range cached { // of a Gate that was in another shard, this may be all that is left
		add(namespace)
	}
	return maps.Clone(l.books), cached, nil
}

// cached returns the versions of the GateLocks in the cache by namespace.
func (l *Locks) cached(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lockReadTimeout)
	defer cancel()
	versions := map[string]string{}
	for _, namespace := range namespacesOf(l.Namespaces) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateLockKind + "List"))
		if err := l.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			versions[list.Items[i].Namespace] = list.Items[i].ResourceVersion
		}
	}
	return versions, nil
}

func (l *Locks) list(ctx context.Context) (map[string]*book, error) {
	books := map[string]*book{}
	for _, namespace := range namespacesOf(l.Namespaces) {
		list := &v1alpha1.GateLockList{}
		if err := l.APIReader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			books[obj.Namespace] = &book{lock: obj, shares: lock.Read(&obj.Spec)}
		}
	}
	return books, nil
}

func (l *Locks) put(ctx context.Context, namespace string, b *book, c *change) error {
	b.waitingMu.Lock()
	b.waiting = append(b.waiting, c)
	b.waitingMu.Unlock()

	b.mu.Lock()
	defer b.mu.Unlock()
	if c.done {
		return c.err
	}
	b.waitingMu.Lock()
	batch := b.waiting
	b.waiting = nil
	b.waitingMu.Unlock()
	err := l.commit(ctx, namespace, b, batch)
	for _, c := range batch {
		c.done, c.err = true, err
	}
	return err
}

// commit makes changes in one write, none if there is nothing to change.
func (l *Locks) commit(ctx context.Context, namespace string, b *book, batch []*change) error {
	for retry := 0; ; retry++ {
		if err := l.refresh(ctx, namespace, b, batch); err != nil {
			return err
		}
		if !b.enter(batch) {
			return nil
		}
		anew := b.lock.ResourceVersion == ""
		err := l.write(ctx, b.lock)
		if err == nil {
			return nil
		}
		b.lock, b.shares = nil, nil
		raced := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || !anew && apierrors.IsNotFound(err)
		switch {
		case anew && apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // there is no such namespace, so nothing to lock, or not for long
		case !raced || retry == conflictRetries:
			return err
		}
	}
}

// enter makes changes in the book and returns whether there were any.
func (b *book) enter(batch []*change) bool {
	changed := false
	for _, c := range batch {
		was, has := b.shares[c.gate]
		if has == (c.share != nil) && (!has || was.Equal(*c.share)) {
			continue
		}
		changed = true
		if has {
			lock.Remove(&b.lock.Spec, c.gate, was)
			delete(b.shares, c.gate)
		}
		if c.share != nil {
			lock.Put(&b.lock.Spec, c.gate, *c.share)
			b.shares[c.gate] = *c.share
		}
	}
	return changed
}

func (l *Locks) write(ctx context.Context, obj *v1alpha1.GateLock) error {
	if obj.ResourceVersion == "" {
		return l.Client.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
	}
	return l.Client.Update(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
}

// refresh reads a GateLock if it is not known, or if somebody else has written it.
func (l *Locks) refresh(ctx context.Context, namespace string, b *book, batch []*change) error {
	if b.lock != nil {
		known, err := b.current(batch)
		if err != nil || known {
			return err
		}
	}
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.GateLockName}
	obj := &v1alpha1.GateLock{}
	if err := l.APIReader.Get(ctx, key, obj); client.IgnoreNotFound(err) != nil {
		return err
	}
	obj.Namespace, obj.Name = key.Namespace, key.Name
	b.lock, b.shares = obj, lock.Read(&obj.Spec)
	return nil
}

// current returns whether the cache knew of nothing newer.
func (b *book) current(batch []*change) (bool, error) {
	known := b.lock.ResourceVersion
	for _, c := range batch {
		if known == "" || c.cached == "" {
			if known != c.cached {
				return false, nil
			}
			continue
		}
		if newer, err := resourceversion.CompareResourceVersion(c.cached, known); err != nil || newer > 0 {
			return false, err
		}
	}
	return true, nil
}

// sharesOf returns what a Gate has to have in the GateLocks of namespaces. The lock
// is for what spec.suspend holds. A Gate that respects a resume locks nothing.
func (r *GateReconciler) sharesOf(obj *v1alpha1.Gate, closed bool, governed []*target.Object) map[string]lock.Share {
	locked := closed && obj.Spec.ResumePolicy != v1alpha1.ResumePolicyRespect
	refs := map[string][]v1alpha1.TargetReference{obj.Namespace: nil}
	for _, t := range governed {
		if target.Suspends(target.Of(&t.Unstructured)) {
			refs[t.GetNamespace()] = nil
		}
	}
	for _, ref := range obj.Spec.Targets {
		namespace := namespaceOf(ref, obj)
		if a, err := target.For(ref.APIVersion, ref.Kind); err == nil && target.Suspends(a) && r.reaches(obj.Namespace, namespace) && r.watches(namespace) {
			refs[namespace] = append(refs[namespace], ref)
		}
	}
	shares := make(map[string]lock.Share, len(refs))
	for namespace, refs := range refs {
		shares[namespace] = lock.NewShare(locked, refs...)
	}
	return shares
}
