package ledger

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// errUnknownRequester is returned for an open request in a line while the stamps are StampsUnknown.
var errUnknownRequester = errors.New(msgUnknownRequester)

// intake handles the new requests of a Gate.
type intake struct {
	*Ledger
	stamps Stamps
	now    time.Time
	// last is the accepted request with the latest time.
	last *Request
	// over lists the close requests that had already ended when the controller read them.
	over []*Request
	// closedBy lists the close requests in lines. An open request in an annotation may be older than one of them.
	closedBy []*Request
	outcomes []Request
}

// lines handles the requests in the annotation v1alpha1.UnhandledAnnotation, in the order of admission.
func (p *intake) lines() {
	for _, r := range p.recorded(p.now) {
		p.lastLine = max(p.lastLine, r.line)
		if r.isLastHandled(p.findRecord(r.Action)) {
			continue // already handled as an annotation that was replaced before the status was written
		}
		r.Err = p.parse(r, p.now)
		if r.Err == nil && p.stamps == StampsUnknown && p.needsApproval(r) {
			r.Err = errUnknownRequester // deferring it would delay later close requests
		}
		p.take(r, p.acceptedAt(p.now))
		if r.Action == v1alpha1.RequestClose && r.Err == nil && !r.At.After(p.now.Add(MaxSkew)) {
			p.closedBy = append(p.closedBy, r)
		}
	}
}

// annotations handles the requests in the annotations for open and close requests.
func (p *intake) annotations() {
	at := p.acceptedAt(p.now)
	for _, r := range p.unhandled(p.now) {
		if p.stamps == StampsUnknown && p.needsApproval(r) {
			continue
		}
		if r.Action == v1alpha1.RequestOpen && r.Err == nil {
			r.Err = p.closedSince(r, p.closedBy...)
		}
		p.take(r, at)
	}
}

// closedSince returns an error if r is an open request and may be older than one of the close requests that affects it or that it
// affects.
func (p *intake) closedSince(r *Request, closes ...*Request) error {
	for _, closed := range closes {
		if r.Action == v1alpha1.RequestOpen && (concerns(closed.Targets, r.Targets) || concerns(r.Targets, closed.Targets)) && !r.At.After(closed.At.Add(slack(r.source, closed.source))) {
			return fmt.Errorf(msgClosedSince, closed)
		}
	}
	return nil
}

// take accepts or refuses a new request, and records it as handled.
func (p *intake) take(r *Request, acceptedAt metav1.MicroTime) {
	handled := p.handledRecord(r.Action)
	restored := handles(handled, r)
	if r.Err == nil {
		if p.has(handled, r) {
			return // Flux has restored this value after a refused one
		}
		if restored {
			r.Err = errRestored
		} else if r.Err = p.closedSince(r, p.over...); r.Err == nil {
			r.Err = p.accept(handled, r, p.toAccepted(p.stamps, r, acceptedAt), p.now)
		}
		if end := r.End(p.limit); r.Action == v1alpha1.RequestClose && !end.IsZero() && !p.now.Before(end) {
			p.over = append(p.over, r) // accepted or not, it refuses open requests that are not later
			p.voidOlder(r)
		}
	}
	p.outcomes = append(p.outcomes, *r)
	if r.Err == nil && (p.last == nil || !r.At.Before(p.last.At)) {
		p.last = r
	}
}
