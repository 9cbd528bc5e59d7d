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

// documented are the kinds of objects that the commands of pages create.
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

// Documented creates the namespaces that a page of the docs names, for a test that runs the commands of the page. At the end of the test,
// it deletes all objects that were created meanwhile, so that the test can run again. The test must not run in parallel with others.
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

// names returns the names of all objects of the documented kinds.
func (c *ControlPlane) names(ctx context.Context) (all []string, err error) {
	err = c.eachDocumented(ctx, func(obj *metav1.PartialObjectMetadata) error {
		all = append(all, nameOf(obj))
		return nil
	})
	return all, err
}

// deleteOthers deletes all documented objects except the given ones. It returns an error as long as such objects exist.
func (c *ControlPlane) deleteOthers(ctx context.Context, some []string) error {
	return c.eachDocumented(ctx, func(obj *metav1.PartialObjectMetadata) error {
		if slices.Contains(some, nameOf(obj)) {
			return nil
		}
		err := client.IgnoreNotFound(c.Client.Delete(ctx, obj))
		if len(obj.Finalizers) > 0 { // their controller may not be running
			before := obj.DeepCopy()
			obj.Finalizers = nil
			err = errors.Join(err, client.IgnoreNotFound(c.Client.Patch(ctx, obj, client.MergeFrom(before))))
		}
		return errors.Join(err, fmt.Errorf("%s is there", nameOf(obj)))
	})
}

// nameOf returns the kind, namespace and name of an object. A recreated object has the same name.
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
