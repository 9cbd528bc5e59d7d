package gate

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// maxProceed bounds the stored value of the annotation v1alpha1.ProceedRequestedAtAnnotation, in bytes. Valid values are shorter.
const maxProceed = 128

// withProceed returns the release status with the request from the annotation v1alpha1.ProceedRequestedAtAnnotation. After it is recorded,
// the request counts even if Flux removes the annotation. Another request is recorded only after this one has taken effect.
func withProceed(g *v1alpha1.Gate, now time.Time) *v1alpha1.ReleaseStatus {
	release := ptr.Deref(g.Status.Release, v1alpha1.ReleaseStatus{})
	release.Proceed = &v1alpha1.ProceedRequest{
		Value: proceedOf(g), RequestedBy: format.OneLine(g.Annotations[v1alpha1.ProceedRequestedByAnnotation], ledger.MaxRequestedBy), Message: format.OneLine(g.Annotations[v1alpha1.ProceedReasonAnnotation], ledger.MaxMessage),
		RecordedAt: metav1.NewMicroTime(now.Truncate(time.Microsecond)),
	}
	return &release
}

// HasNewProceed returns whether a Gate has a request to proceed that is not in the status of its release.
func HasNewProceed(g *v1alpha1.Gate, release *v1alpha1.ReleaseStatus) bool {
	value := proceedOf(g)
	return value != "" && (release == nil || release.Proceed == nil && release.LastHandledProceed != value)
}

// proceedOf returns the value of the annotation v1alpha1.ProceedRequestedAtAnnotation, cut to maxProceed bytes.
func proceedOf(g *v1alpha1.Gate) string {
	value := g.Annotations[v1alpha1.ProceedRequestedAtAnnotation]
	return strings.ToValidUTF8(value[:min(len(value), maxProceed)], "")
}
