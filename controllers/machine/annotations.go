package machine

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

const (
	// requestAnnotation of a Machine requests new certificates from the provider Canonical Kubernetes. The value is the validity period of
	// the new certificates. The provider reports the progress in statusAnnotation.
	requestAnnotation = "v1beta2.k8sd.io/refresh-certificates"
	statusAnnotation  = "v1beta2.k8sd.io/refresh-certificates-status"
	// expiryAnnotation contains the time at which the certificates expire.
	expiryAnnotation = "machine.cluster.x-k8s.io/certificates-expiry"
	// controlPlaneLabel is set on the Machines of the control plane, and clusterNameLabel on all Machines of a cluster.
	controlPlaneLabel = "cluster.x-k8s.io/control-plane"
	clusterNameLabel  = "cluster.x-k8s.io/cluster-name"
)

// machineKind is the kind of Cluster API Machines.
var machineKind = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}

// newMachine returns an empty Machine in the given API version. Only the metadata of Machines is read.
func newMachine(version string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(machineKind.WithVersion(version))
	return m
}

// list reads the Machines of a namespace from the API server.
func (r *Reconciler) list(ctx context.Context, version, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machineKind.WithVersion(version).GroupVersion().WithKind(machineKind.Kind + "List"))
	if err := r.APIReader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	machines := make([]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		machines[i] = &list.Items[i]
		machines[i].SetGroupVersionKind(machineKind.WithVersion(version))
	}
	return machines, nil
}

func fullName(m *metav1.PartialObjectMetadata) string { return client.ObjectKeyFromObject(m).String() }

// baseName returns the name in namespace/name.
func baseName(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// machineState returns the facts about a Machine that decisions depend on.
func machineState(m *metav1.PartialObjectMetadata, selected bool) machinecerts.Machine {
	_, controlPlane := m.Labels[controlPlaneLabel]
	return machinecerts.Machine{
		Name: fullName(m), Cluster: m.Namespace + "/" + m.Labels[clusterNameLabel], ControlPlane: controlPlane, Selected: selected,
		Deleting: !m.DeletionTimestamp.IsZero(), Expiry: m.Annotations[expiryAnnotation], Status: m.Annotations[statusAnnotation],
		Record: recordOn(m), Request: requestOn(m),
	}
}

// recordOn returns the record on a Machine, nil if there is none. It ignores a record that was written by another field manager or
// restored from a backup.
func recordOn(m *metav1.PartialObjectMetadata) *machinecerts.Record {
	if !isOurs(m, v1alpha1.RefreshAnnotation) {
		return nil
	}
	return machinecerts.ParseRecord(m.Annotations[v1alpha1.RefreshAnnotation])
}

// requestOn returns the requester of a refresh of a Machine, None if there is no request.
func requestOn(m *metav1.PartialObjectMetadata) machinecerts.Request {
	switch _, ok := m.Annotations[requestAnnotation]; {
	case !ok:
		return machinecerts.None
	case isOurs(m, requestAnnotation):
		return machinecerts.Ours
	}
	return machinecerts.Others
}

// isOurs returns whether this controller owns an annotation.
func isOurs(m *metav1.PartialObjectMetadata, annotation string) bool {
	for _, entry := range m.ManagedFields {
		if entry.Manager != v1alpha1.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err == nil && owned.Metadata.Annotations["f:"+annotation] != nil {
			return true
		}
	}
	return false
}

// annotate applies the annotations of this controller to a Machine, and removes its other annotations. The write is conditional on the
// version that was read.
func (r *Reconciler) annotate(ctx context.Context, m *metav1.PartialObjectMetadata, annotations map[string]string) error {
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(m.GroupVersionKind())
	config.SetName(m.Name)
	config.SetNamespace(m.Namespace)
	config.SetUID(m.UID) // otherwise, a deleted Machine would be created again
	config.SetResourceVersion(m.ResourceVersion)
	config.SetAnnotations(annotations)
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return err
	}
	m.ResourceVersion, m.Annotations, m.ManagedFields = config.GetResourceVersion(), config.GetAnnotations(), config.GetManagedFields()
	return nil
}

// clearStatus removes the annotation with the status of the provider.
func (r *Reconciler) clearStatus(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	before := m.DeepCopy()
	delete(m.Annotations, statusAnnotation)
	return r.Patch(ctx, m, ownwrites.Locked(before), client.FieldOwner(v1alpha1.FieldManager))
}
