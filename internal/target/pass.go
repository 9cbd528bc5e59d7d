package target

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	handledPath  = []string{"status", "lastHandledReconcileAt"}
	timeoutPath  = []string{"spec", "timeout"}
	intervalPath = []string{"spec", "interval"}
	// passPaths are what a pass needs to know of an object.
	passPaths = [][]string{handledPath, timeoutPath, intervalPath}
)

// ReconcileRequestAnnotation asks the controllers of Flux for a reconciliation, with a
// value that they have not handled yet.
const ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"

// ReadyOf returns the condition Ready of an object, nil if it has none.
func ReadyOf(obj *Object) *metav1.Condition { return obj.condition("Ready") }

// Handled returns the request for a reconciliation that the controller of a trimmed
// object of Flux has handled last, empty if there is none.
func Handled(obj *Object) string {
	value, _, _ := unstructured.NestedString(obj.Object, handledPath...)
	return value
}

const (
	leastTimeout   = 30 * time.Second
	defaultTimeout = time.Minute
	helmTimeout    = 5 * time.Minute
	// passGrace is added for what happens before a reconciliation begins, and for what
	// is reported after it.
	passGrace = 30 * time.Second
)

// MaxPass bounds how long a pass lasts. A reconciliation that runs then goes on.
const MaxPass = time.Hour

// PassTimeout returns how long one reconciliation of a trimmed object may take: its
// spec.timeout, or what Flux takes in its place, and half a minute, but not more than
// MaxPass.
func PassTimeout(obj *Object) time.Duration {
	timeout, ok := duration(obj, timeoutPath)
	if !ok {
		timeout = defaultTimeout
		interval, _ := duration(obj, intervalPath)
		switch kind := obj.GetKind(); {
		case kind == "Kustomization":
			timeout = interval - leastTimeout
		case kind == "HelmRelease":
			timeout = helmTimeout
		case kind == "ImageRepository" && interval > 0:
			timeout = interval
		}
	}
	return min(max(timeout, leastTimeout)+passGrace, MaxPass)
}

func duration(obj *Object, path []string) (time.Duration, bool) {
	text, _, _ := unstructured.NestedString(obj.Object, path...)
	d, err := time.ParseDuration(text)
	return d, err == nil
}
