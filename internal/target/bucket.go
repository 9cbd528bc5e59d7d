package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets/status,verbs=get;patch

var bucket = fields.New[sourcev1.Bucket]()

var _ = register(install(suspend(sourcev1.GroupVersion, sourcev1.BucketKind, bucket, &bucket.Spec.Suspend,
	&bucket.Status.Artifact.Revision), bucket, &bucket.Status.Artifact.Revision))
