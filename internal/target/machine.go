package target

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

var _ = register(machine{Machine})

// Machine is the kind of Cluster API's Machines. They are not held: while a Gate is open,
// their certificates are refreshed.
var Machine = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}

const (
	// RefreshRequestAnnotation of a Machine asks the provider Canonical Kubernetes for new
	// certificates. Its value is how long they are valid.
	RefreshRequestAnnotation = "v1beta2.k8sd.io/refresh-certificates"
	// RefreshStatusAnnotation is what the provider says about that.
	RefreshStatusAnnotation = "v1beta2.k8sd.io/refresh-certificates-status"
	// CertificatesExpiryAnnotation is when the certificates expire.
	CertificatesExpiryAnnotation = "machine.cluster.x-k8s.io/certificates-expiry"
	// ControlPlaneLabel is on the Machines of the control plane.
	ControlPlaneLabel = "cluster.x-k8s.io/control-plane"
	// ClusterNameLabel is the name of the cluster of a Machine.
	ClusterNameLabel = "cluster.x-k8s.io/cluster-name"
)

// machine is the adapter of Machines. Only their metadata matters.
type machine struct {
	groupKind schema.GroupKind
}

func (m machine) GroupKind() schema.GroupKind { return m.groupKind }

var requestPath = []string{"metadata", "annotations", RefreshRequestAnnotation}

func (machine) levers() [][]string { return [][]string{requestPath} }

func (machine) reads() [][]string { return nil }

func (machine) revisions() [][]string { return nil }

// Observe returns Held if there is a request of ours for a refresh, and Foreign if there
// is one of somebody else.
func (machine) Observe(obj *Object, us Identity) State {
	if _, ok := obj.GetAnnotations()[RefreshRequestAnnotation]; !ok {
		return Free
	}
	if ours, _ := us.owners(&obj.Unstructured, requestPath); ours {
		return Held
	}
	return Foreign
}

// Plan has nothing to hold.
func (machine) Plan(*Object, State, Terms, time.Time) Plan { return Plan{} }

// Differs compares what the provider says and what it was asked for.
func (machine) Differs(before, after *Object) bool {
	was, is := before.GetAnnotations(), after.GetAnnotations()
	for _, name := range []string{RefreshRequestAnnotation, RefreshStatusAnnotation, CertificatesExpiryAnnotation} {
		if was[name] != is[name] {
			return true
		}
	}
	return false
}
