package see

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestExceptionStateFollowsReason(t *testing.T) {
	record := func(reason string, from time.Duration) v1alpha1.ExceptionRecord {
		return v1alpha1.ExceptionRecord{Reason: reason, ValidFrom: metav1.NewTime(now.Add(from))}
	}
	limited := record(v1alpha1.InForceReason, 0)
	limited.Only = "Kustomization/apps"
	for want, r := range map[string]v1alpha1.ExceptionRecord{
		"in force, only for Kustomization/apps": limited,
		"is broken":                             record(v1alpha1.TooManyExceptionsReason, -time.Hour), "in force": record(v1alpha1.InForceReason, 0), "begins": record(v1alpha1.PendingReason, time.Hour), "waits": record(v1alpha1.OverlappedReason, -time.Hour), "is over": record(v1alpha1.ExpiredReason, 0),
	} {
		if got := exceptionState(r, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
