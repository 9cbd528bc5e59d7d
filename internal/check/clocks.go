package check

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ServerTime is when an API server was asked for the time, what it said, which is cut off to the second, and when.
type ServerTime struct{ Before, Reported, After time.Time }

// Skew returns how far the clock here is ahead of that of the API server at least, negative if it is behind.
func (a ServerTime) Skew() time.Duration {
	switch {
	case a.Before.After(a.Reported.Add(time.Second)):
		return a.Before.Sub(a.Reported.Add(time.Second))
	case a.After.Before(a.Reported):
		return a.After.Sub(a.Reported)
	}
	return 0
}

// tolerable is how far clocks may be apart before it matters to people.
const tolerable = 2 * time.Second

// Clocks finds clocks that are not right. If the API server does not say what time it is, it has not been asked.
func Clocks(asked ServerTime, gates []v1alpha1.Gate) (findings []Finding) {
	if asked.Reported.IsZero() {
		findings = append(findings, Finding{Warning, "clocks", "the API server does not say what time it is", "let its answers have the header Date: a proxy may take it out"})
	} else if skew := asked.Skew(); skew.Abs() > tolerable {
		how := "ahead of"
		if skew < 0 {
			how = "behind"
		}
		findings = append(findings, Finding{Warning, "clocks", fmt.Sprintf("the clock of this machine is %s %s that of the API server: requests that you make count from another time than you mean", skew.Abs().Round(time.Second), how), "set the clock of this machine, as by NTP"})
	}
	for i := range gates {
		opened := meta.FindStatusCondition(gates[i].Status.Conditions, v1alpha1.OpenedCondition)
		ready := meta.FindStatusCondition(gates[i].Status.Conditions, fluxmeta.ReadyCondition)
		switch {
		case opened != nil && opened.Reason == v1alpha1.TimeUnknownReason || ready != nil && ready.Reason == v1alpha1.TimeUnknownReason:
			findings = append(findings, Finding{Error, gateName(&gates[i]), "it stays closed, because the API server does not tell the controller what time it is", "let the answers of the API server have the header Date: a proxy may take it out"})
		case opened != nil && strings.HasSuffix(opened.Message, gate.ClocksDiffer):
			findings = append(findings, Finding{Warning, gateName(&gates[i]), gate.ClocksDiffer + ": it opens only when both say so, and closes when either does", "set the clocks of the nodes, as by NTP"})
		}
	}
	return findings
}
