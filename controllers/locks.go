package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// lockPatience is Locks.Patience by default. The Gates of other namespaces wait as long at most, if
// those of one with a GateLock that is slow to be written keep all workers busy.
const lockPatience = 2 * time.Second

// Locks writes the GateLocks, which are there only if config/lock is installed.
type Locks struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Namespaces are those whose GateLocks are written, none means all.
	Namespaces map[string]ctrlcache.Config
	// Patience is how long a Gate waits for the write of a GateLock, 2s if zero.
	Patience time.Duration

	mu        sync.Mutex
	installed bool
	// books by namespace, nil until they are listed.
	books map[string]*book
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
		for _, b := range l.books {
			b.abandon()
		}
		l.installed, l.books = err == nil, nil
	}
	return changed, nil
}

// Put begins to make the shares of a Gate, given as namespace/name, those by namespace
// and to remove all others that it has. What was put before and is not written yet is out of
// date from now on. There is nothing to do if GateLocks are not installed.
func (l *Locks) Put(ctx context.Context, gate string, shares map[string]lock.Share) *LockWrites {
	books, cached, err := l.open(ctx, shares)
	writes := &LockWrites{unread: err, pending: map[string]bool{}, failed: map[string]error{}}
	puts := map[string]func() error{}
	for namespace, b := range books {
		c := newChange(gate, nil, cached[namespace])
		if share, ok := shares[namespace]; ok {
			c.share = &share
		}
		if asked := b.order(c); asked != nil {
			puts[namespace] = func() error { return l.put(ctx, namespace, b, c, asked) }
			writes.pending[namespace] = true
		}
	}
	if len(puts) == 0 {
		return writes
	}
	writes.ended = make(chan lockWritten, len(puts)) // nobody may wait for them any more
	go func() {
		var group errgroup.Group
		group.SetLimit(writesAtOnce)
		for namespace, put := range puts {
			group.Go(func() error {
				writes.ended <- lockWritten{namespace, put()}
				return nil
			})
		}
	}()
	return writes
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
			l.books[namespace] = newBook()
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
			b := newBook()
			b.learn(&list.Items[i], lock.Read(&list.Items[i].Spec))
			books[list.Items[i].Namespace] = b
		}
	}
	return books, nil
}

// put makes a change that was ordered, or waits for the same one that was asked for before.
func (l *Locks) put(ctx context.Context, namespace string, b *book, c, asked *change) error {
	if asked == c {
		if !c.queued {
			made, err := l.look(ctx, namespace, b, c)
			outdated := b.looked(c, made || err != nil)
			if made || err != nil || outdated != nil {
				return cmp.Or(err, outdated)
			}
		}
		go l.flush(ctx, namespace, b)
	}
	return b.wait(ctx, asked, l.patience())
}

func (l *Locks) patience() time.Duration { return cmp.Or(l.Patience, lockPatience) }

// look reads a GateLock and returns whether a change changes nothing. It does not wait for
// who writes it.
func (l *Locks) look(ctx context.Context, namespace string, b *book, c *change) (bool, error) {
	alone := false
	select {
	case b.writing <- struct{}{}:
		alone = true
		defer func() { <-b.writing }()
	default:
	}
	obj, err := l.read(ctx, namespace)
	if err != nil {
		return false, err
	}
	shares := lock.Read(&obj.Spec)
	if alone {
		b.learn(obj, shares)
	}
	return c.isIn(shares), nil
}

// read reads a GateLock. One that does not exist has no resource version.
func (l *Locks) read(ctx context.Context, namespace string) (*v1alpha1.GateLock, error) {
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.GateLockName}
	obj := &v1alpha1.GateLock{}
	err := l.APIReader.Get(ctx, key, obj)
	obj.Namespace, obj.Name = key.Namespace, key.Name
	return obj, client.IgnoreNotFound(err)
}

// flush makes all changes that wait. It goes on if nobody waits for it any more.
func (l *Locks) flush(ctx context.Context, namespace string, b *book) {
	b.writing <- struct{}{}
	defer func() { <-b.writing }()
	w := b.begin()
	if w == nil {
		return // who wrote before has made them, too
	}
	late := time.AfterFunc(l.patience(), func() { b.isLate(w) })
	defer late.Stop()
	b.end(w, l.commit(ctx, namespace, b, w.changes))
}

// commit makes changes in one write, none if there is nothing to change.
func (l *Locks) commit(ctx context.Context, namespace string, b *book, batch []*change) error {
	for retry := 0; ; retry++ {
		if err := l.refresh(ctx, namespace, b, batch); err != nil {
			return err
		}
		changed := b.enter(batch)
		if len(changed) == 0 {
			return nil
		}
		anew := b.lock.ResourceVersion == ""
		err := l.write(ctx, b.lock)
		if err == nil {
			b.written(changed)
			return nil
		}
		raced := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || !anew && apierrors.IsNotFound(err)
		b.forget(raced)
		switch {
		case anew && apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // there is no such namespace, so nothing to lock, or not for long
		case !raced || retry == conflictRetries:
			return err
		}
	}
}

// refresh reads a GateLock if it is not known, or if somebody else has written it.
func (l *Locks) refresh(ctx context.Context, namespace string, b *book, batch []*change) error {
	current := b.lock != nil
	for _, c := range batch {
		if !current {
			break
		}
		var err error
		if current, err = isCurrent(b.lock.ResourceVersion, c.cached); err != nil {
			return err
		}
	}
	if current {
		return nil
	}
	obj, err := l.read(ctx, namespace)
	if err == nil {
		b.learn(obj, lock.Read(&obj.Spec))
	}
	return err
}

func (l *Locks) write(ctx context.Context, obj *v1alpha1.GateLock) error {
	if obj.ResourceVersion == "" {
		return l.Client.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
	}
	return l.Client.Update(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
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
