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

// ServerTime is the time returned by an API server, rounded down to the second, with the local times before and after the request.
type ServerTime struct{ Before, Reported, After time.Time }

// Skew returns the smallest possible clock skew. It is positive if the local clock is ahead of the API server's clock, negative if it is
// behind.
func (a ServerTime) Skew() time.Duration {
	switch {
	case a.Before.After(a.Reported.Add(time.Second)):
		return a.Before.Sub(a.Reported.Add(time.Second))
	case a.After.Before(a.Reported):
		return a.After.Sub(a.Reported)
	}
	return 0
}

// tolerable is the largest clock skew that is not reported.
const tolerable = 2 * time.Second

// Clocks finds wrong clocks, and reports an API server that does not return its time.
func Clocks(asked ServerTime, gates []v1alpha1.Gate) (findings []Finding) {
	if asked.Reported.IsZero() {
		findings = append(findings, Finding{Warning, "clocks", "the API server does not return its time", "make sure that its responses have the header Date: a proxy may remove it"})
	} else if skew := asked.Skew(); skew.Abs() > tolerable {
		how := "ahead of"
		if skew < 0 {
			how = "behind"
		}
		findings = append(findings, Finding{Warning, "clocks", fmt.Sprintf("the clock of this machine is %s %s that of the API server: your requests take effect at other times than you expect", skew.Abs().Round(time.Second), how), "synchronize the clock of this machine, for example with NTP"})
	}
	for i := range gates {
		opened := meta.FindStatusCondition(gates[i].Status.Conditions, v1alpha1.OpenedCondition)
		ready := meta.FindStatusCondition(gates[i].Status.Conditions, fluxmeta.ReadyCondition)
		switch {
		case opened != nil && opened.Reason == v1alpha1.TimeUnknownReason || ready != nil && ready.Reason == v1alpha1.TimeUnknownReason:
			findings = append(findings, Finding{Error, gateName(&gates[i]), "it stays closed, because the API server does not return its time to the controller", "make sure that the responses of the API server have the header Date: a proxy may remove it"})
		case opened != nil && strings.HasSuffix(opened.Message, gate.ClocksDiffer):
			findings = append(findings, Finding{Warning, gateName(&gates[i]), gate.ClocksDiffer + ": it opens only when both clocks have reached the time, and closes when one of them has", "synchronize the clocks of the nodes, for example with NTP"})
		}
	}
	return findings
}
