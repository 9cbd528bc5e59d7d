package gate

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// proceed is a request in the annotation v1alpha1.ProceedRequestedAtAnnotation.
type proceed struct {
	v1alpha1.ProceedRequest
	// err is the reason why the request is refused, empty if it is accepted.
	err string
}

// maxAhead bounds how far the clock of the requester may be ahead.
const maxAhead = time.Minute

// takeProceed removes the request to proceed from the status of an open Gate, and returns it, or nil if there is none. It refuses a
// request from before the opening, or not later than the last accepted one, because Flux may have restored it from Git.
func takeProceed(obj *v1alpha1.Gate, status *v1alpha1.ReleaseStatus) *proceed {
	if status.Proceed == nil {
		return nil
	}
	p := &proceed{ProceedRequest: *status.Proceed}
	status.Proceed, status.LastHandledProceed = nil, p.Value
	v, err := annotations.Proceed.Parse(p.Value)
	wave, named := v.Keys["wave"]
	at, before := v.At, timeOrZero(status.Waves.ProceededAt)
	switch {
	case err != nil:
		p.err = "it " + err.Error()
	case at.After(p.RecordedAt.Add(maxAhead)):
		p.err = msgProceedAhead
	case at.Before(obj.Status.LastTransition.At.Truncate(time.Second)):
		p.err = msgProceedBeforeOpening
	case !at.After(before):
		p.err = msgProceedNotLater + before.UTC().Format(time.RFC3339Nano)
	case named && wave != status.Waves.Current:
		p.err = msgProceedOtherWave + cmp.Or(status.Waves.Current, msgAllReleased)
	default:
		status.Waves.ProceededAt = ptr.To(metav1.NewMicroTime(at))
	}
	return p
}

func timeOrZero(at *metav1.MicroTime) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
