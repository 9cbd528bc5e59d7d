package gate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// noon is now in these tests unless they say otherwise: a Monday.
var noon = utc("2026-11-23T12:00:00Z")

// utc returns the instant of an RFC 3339 text.
func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func instant(s string) *metav1.Time { return &metav1.Time{Time: utc(s)} }

func duration(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

func weekly(name, start, end string, days ...v1alpha1.DayOfWeek) v1alpha1.Period {
	return v1alpha1.Period{Name: name, Start: ptr.To(start), End: ptr.To(end), DaysOfWeek: days}
}

func monthly(name, start, end string, weeks []v1alpha1.WeekOfMonth, days ...v1alpha1.DayOfWeek) v1alpha1.Period {
	p := weekly(name, start, end, days...)
	p.WeeksOfMonth = weeks
	return p
}

func cron(name, schedule string, d time.Duration) v1alpha1.Period {
	return v1alpha1.Period{Name: name, Schedule: ptr.To(schedule), Duration: duration(d)}
}

func dated(name, from, until string) v1alpha1.Period {
	return v1alpha1.Period{Name: name, From: ptr.To(v1alpha1.DateTime(from)), Until: ptr.To(v1alpha1.DateTime(until))}
}

func closing(p v1alpha1.Period, mode v1alpha1.Override) v1alpha1.ClosePeriod {
	return v1alpha1.ClosePeriod{Period: p, Override: mode}
}

// closed returns a Gate that is closed by default, changed by edits.
func closed(edits ...func(*v1alpha1.GateSpec)) *v1alpha1.Gate {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	for _, edit := range edits {
		edit(&g.Spec)
	}
	return g
}

// opened returns a Gate that is opened by default, changed by edits.
func opened(edits ...func(*v1alpha1.GateSpec)) *v1alpha1.Gate {
	return closed(append([]func(*v1alpha1.GateSpec){func(s *v1alpha1.GateSpec) { s.Default = v1alpha1.StateOpened }}, edits...)...)
}

func window(d time.Duration) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) { s.Window = duration(d) }
}

func windows(periods ...v1alpha1.Period) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) { s.OpenPeriods = periods }
}

func closePeriods(periods ...v1alpha1.ClosePeriod) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) { s.ClosePeriods = periods }
}

// accepted makes a Gate accept requests at their own times.
func accepted(t *testing.T, g *v1alpha1.Gate, requests ...request) *v1alpha1.Gate {
	t.Helper()
	for _, r := range requests {
		annotate(g, r.action, r.at)
		for _, handled := range handle(g, utc(r.now)) {
			if handled.Err != nil {
				t.Fatalf("%s at %s is refused: %s", r.action, r.at, handled.Err)
			}
		}
	}
	return g
}

// request is an annotation that is observed at now and requests an action at a time.
type request struct {
	action v1alpha1.RequestAction
	at     string
	now    string
}

// open and shut are observed at their own times.
func open(at string) request             { return request{v1alpha1.RequestOpen, at, beforeSlash(at)} }
func shut(at string) request             { return request{v1alpha1.RequestClose, at, beforeSlash(at)} }
func (r request) seen(at string) request { r.now = at; return r }

func beforeSlash(value string) string {
	at, _, _ := strings.Cut(value, "/")
	return at
}

func annotate(g *v1alpha1.Gate, action v1alpha1.RequestAction, value string) {
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	g.Annotations[string(action)+".gate.fluxcd.io/requestedAt"] = value
}

// zone gives a period a time zone of its own.
func zone(name v1alpha1.TimeZone, p v1alpha1.Period) v1alpha1.Period {
	p.TimeZone = name
	return p
}
