package ledger

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
)

// emergencySource is the source in the line of an emergency: an open request that needs no approvals.
const emergencySource = "emergency"

// lineForm matches a line written by the policy gate-request-stamp: number, action, source, value, requester and reason.
var lineForm = regexp.MustCompile(`^([1-9][0-9]{0,17})\t(open|close)\t(` + v1alpha1.SourceAnnotation + `|` + v1alpha1.SourceWebhook + `|` + emergencySource + `)\t([^\t]*)\t([^\t]*)\t([^\t]*)$`)

// unhandledLines returns the lines of the annotation v1alpha1.UnhandledAnnotation.
func unhandledLines(g *v1alpha1.Gate) []string {
	text := g.Annotations[v1alpha1.UnhandledAnnotation]
	if text == "" { // the usual case
		return nil
	}
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
}

// recorded returns the requests that were replaced or removed before the controller handled them, in the order of admission. A malformed
// line counts as a close request without an end, because it may have been one.
func (l *Ledger) recorded(now time.Time) (all []*Request) {
	for _, line := range unhandledLines(l.gate) {
		r, ok := parseLine(line)
		if !ok {
			r = &Request{
				Action: v1alpha1.RequestClose, Annotation: v1alpha1.UnhandledAnnotation, Value: FormatUnlimited(now.Truncate(time.Microsecond)),
				source: v1alpha1.SourceAnnotation, Reason: "a line of " + v1alpha1.UnhandledAnnotation + " cannot be read",
			}
		}
		if !ok || r.line > l.lastLine {
			all = append(all, r)
		}
	}
	return all
}

// parseLine returns the request in a line. It returns false if the line is malformed.
func parseLine(line string) (*Request, bool) {
	fields := lineForm.FindStringSubmatch(line)
	if fields == nil {
		return nil, false
	}
	number, err := strconv.ParseInt(fields[1], 10, 64)
	r := &Request{
		Action: v1alpha1.RequestAction(fields[2]), Annotation: v1alpha1.UnhandledAnnotation, Value: fields[4],
		By: format.OneLine(fields[5], MaxRequestedBy), Reason: format.OneLine(fields[6], MaxMessage), source: fields[3], line: number,
	}
	if r.source == emergencySource {
		r.source, r.emergency = v1alpha1.SourceAnnotation, true
	}
	byReceiver := strings.HasPrefix(r.By, v1alpha1.ReceiverRequester)
	if byReceiver && r.source != v1alpha1.SourceWebhook {
		r.By, r.Reason = "", "" // as in unhandledIn
	}
	return r, err == nil && (byReceiver || r.source != v1alpha1.SourceWebhook)
}

// pending returns the unhandled requests for an action: first those in lines, then the one in its annotation.
func (l *Ledger) pending(action v1alpha1.RequestAction, now time.Time) []*Request {
	all := slices.DeleteFunc(l.recorded(now), func(r *Request) bool { return r.Action != action })
	if r := l.unhandledIn(annotationsOf(action)); r != nil {
		all = append(all, r)
	}
	return all
}

// ClosesByRequest returns whether a Gate has a close request that is new or due, and a close request is in force at an instant. Such a Gate
// is closed regardless of its calendars.
func ClosesByRequest(g *v1alpha1.Gate, now time.Time) bool {
	due := func(r v1alpha1.AcceptedRequest) bool {
		return r.State == v1alpha1.RequestPlanned && r.Action == v1alpha1.RequestClose && !r.RequestedAt.After(now)
	}
	l := Read(g)
	if len(l.pending(v1alpha1.RequestClose, now)) == 0 && !slices.ContainsFunc(g.Status.Requests, due) {
		return false
	}
	l.Apply(StampsUnknown, now)
	return l.isClosed(now)
}

// RemoveLines removes the lines in decided from g, because they have been handled. It keeps lines that were added since, and returns
// whether it changed g.
func RemoveLines(g, decided *v1alpha1.Gate) bool {
	handled, before := unhandledLines(decided), unhandledLines(g)
	rest := slices.DeleteFunc(slices.Clone(before), func(l string) bool { return slices.Contains(handled, l) })
	if len(rest) == len(before) {
		return false
	}
	if len(rest) == 0 {
		delete(g.Annotations, v1alpha1.UnhandledAnnotation)
	} else {
		g.Annotations[v1alpha1.UnhandledAnnotation] = strings.Join(rest, "\n")
	}
	return true
}
