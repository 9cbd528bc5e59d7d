package api_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// labelled returns a GateLock with the given numbers of labels, of entries per label, and of labels that each entry matches.
func labelled(labels, locks, matched int) lockv1alpha1.GateLockSpec {
	match := map[string]string{}
	for i := range matched {
		match[fmt.Sprintf("key-%d", i)] = "a"
	}
	spec := lockv1alpha1.GateLockSpec{Labels: map[string]lockv1alpha1.LabelLocks{}}
	for i := range labels {
		var all lockv1alpha1.LabelLocks
		for range locks {
			all = append(all, lockv1alpha1.LabelLock{MatchLabels: match, Gates: []string{"a/b"}})
		}
		spec.Labels[fmt.Sprintf("Kustomization/key-0=%d", i)] = all
	}
	return spec
}

func TestGateLockLabelsAreBounded(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	for name, tc := range map[string]struct {
		spec lockv1alpha1.GateLockSpec
		want string
	}{
		"the maximum number of entries of a label": {labelled(1, lockv1alpha1.MaxLabelLocks, 1), ""},
		"the maximum number of labels":             {labelled(lockv1alpha1.MaxLockedLabels, 1, 1), ""},
		"the maximum number of labels of an entry": {labelled(1, 1, 32), ""},
		"one entry too many":                       {labelled(1, lockv1alpha1.MaxLabelLocks+1, 1), "spec.labels.Kustomization/key-0=0: Too many: 513: must have at most 512 items"},
		"one label too many":                       {labelled(lockv1alpha1.MaxLockedLabels+1, 1, 1), "spec.labels: Too many: 8193: must have at most 8192 items"},
		"one label too many in an entry":           {labelled(1, 1, 33), "Too many: 33: must have at most 32 items"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Name: lockv1alpha1.GateLockName, Namespace: w.Namespace}, Spec: tc.spec}
			err := w.Client.Create(t.Context(), obj, client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	obj := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Name: lockv1alpha1.GateLockName}, Spec: labelled(lockv1alpha1.MaxLockedLabels, 1, 1)}
	w.Create(obj) // the object can contain all of them
}
