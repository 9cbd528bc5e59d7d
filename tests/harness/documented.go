package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// documented are the kinds of objects that the commands of a page create.
var documented = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.GateReceiverKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.CalendarFeedKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
}

// Documented creates namespaces that a page of the docs names, for a test that runs its
// commands. At the end of the test everything is gone that was created in the meantime,
// so that it can run again. No other test runs beside it.
func (c *ControlPlane) Documented(t testing.TB, namespaces ...string) {
	t.Helper()
	for _, name := range namespaces {
		err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	before, err := c.names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := Eventually(ctx, readyTimeout, "what the page has created is gone", func() error { return c.deleteOthers(ctx, before) }); err != nil {
			t.Error(err)
		}
	})
}

// names returns those of all objects of the kinds.
func (c *ControlPlane) names(ctx context.Context) (all []string, err error) {
	err = c.eachDocumented(ctx, func(obj *metav1.PartialObjectMetadata) error {
		all = append(all, nameOf(obj))
		return nil
	})
	return all, err
}

// deleteOthers deletes all objects that are not among some. The error has what is there.
func (c *ControlPlane) deleteOthers(ctx context.Context, some []string) error {
	return c.eachDocumented(ctx, func(obj *metav1.PartialObjectMetadata) error {
		if slices.Contains(some, nameOf(obj)) {
			return nil
		}
		err := client.IgnoreNotFound(c.Client.Delete(ctx, obj))
		if len(obj.Finalizers) > 0 { // their controller may not run
			before := obj.DeepCopy()
			obj.Finalizers = nil
			err = errors.Join(err, client.IgnoreNotFound(c.Client.Patch(ctx, obj, client.MergeFrom(before))))
		}
		return errors.Join(err, fmt.Errorf("%s is there", nameOf(obj)))
	})
}

// nameOf is the same for an object that was deleted and is there again.
func nameOf(obj *metav1.PartialObjectMetadata) string {
	return obj.Kind + " " + obj.Namespace + "/" + obj.Name
}

func (c *ControlPlane) eachDocumented(ctx context.Context, do func(*metav1.PartialObjectMetadata) error) (err error) {
	for _, kind := range documented {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := c.Client.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			err = errors.Join(err, do(&list.Items[i]))
		}
	}
	return err
}
