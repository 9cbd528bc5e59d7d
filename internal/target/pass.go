package target

import (
	"cmp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/internal/fields"
)

var (
	handledPath   = fields.Path(kustomization, &kustomization.Status.LastHandledReconcileAt)
	attemptedPath = fields.Path(kustomization, &kustomization.Status.LastAttemptedRevision)
	timeoutPath   = fields.Path(kustomization, &kustomization.Spec.Timeout)
	intervalPath  = fields.Path(kustomization, &kustomization.Spec.Interval)
	digestPath    = fields.Path(helmRelease, &helmRelease.Status.LastAttemptedConfigDigest)
	// passPaths lists the paths that the evaluation of a pass reads.
	passPaths = [][]string{handledPath, attemptedPath, digestPath}
)

// ReadyOf returns the condition Ready of an object, nil if it has none.
func ReadyOf(obj *Object) *metav1.Condition { return obj.condition(fluxmeta.ReadyCondition) }

// Handled returns the last reconcile request that Flux has handled for a trimmed object, empty if there is none.
func Handled(obj *Object) string { return text(obj, handledPath) }

// Progress is the progress that Flux has reported for an object: the last handled reconcile request, the last attempted revision, and
// the last observed generation. For a HelmRelease, the revision includes the digest of the values. For a source, it is the revision of
// the artifact.
type Progress [3]string

// ProgressNames lists the names of the parts of a Progress.
var ProgressNames = [len(Progress{})]string{"request for a reconciliation", "revision", "generation"}

// ProgressOf returns the Progress of a trimmed object.
func ProgressOf(obj *Object) Progress {
	generation, _, _ := unstructured.NestedInt64(obj.Object, ObservedGenerationPath...)
	revision := cmp.Or(text(obj, attemptedPath), Revision(obj))
	if digest := text(obj, digestPath); digest != "" {
		revision += " " + digest
	}
	return Progress{Handled(obj), revision, strconv.FormatInt(generation, 10)}
}

const (
	leastTimeout   = 30 * time.Second
	defaultTimeout = time.Minute
	helmTimeout    = 5 * time.Minute
	// passGrace is added for the start of a reconciliation and for the report of its result.
	passGrace = 30 * time.Second
)

// ReconcileTimeout returns an upper bound for the duration of one reconciliation of an object: its spec.timeout or the default of Flux,
// plus passGrace.
func ReconcileTimeout(obj *Object) time.Duration {
	timeout, ok := duration(obj, timeoutPath)
	if !ok {
		timeout = defaultTimeout
		interval, _ := duration(obj, intervalPath)
		switch kind := obj.GetKind(); {
		case kind == kustomizev1.KustomizationKind:
			timeout = interval - leastTimeout
		case kind == helmv2.HelmReleaseKind:
			timeout = helmTimeout
		case kind == imagev1.ImageRepositoryKind && interval > 0:
			timeout = interval
		}
	}
	return max(timeout, leastTimeout) + passGrace
}

func duration(obj *Object, path []string) (time.Duration, bool) {
	d, err := time.ParseDuration(text(obj, path))
	return d, err == nil
}

func text(obj *Object, path []string) string { return textAt(&obj.Unstructured, path) }
