package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// restlessGates is how many of the largest Gates are in one namespace.
	restlessGates = 12
	// maxResident is how many MiB the controller may use with them.
	maxResident = 300
)

var restless = scenario{
	name: "restless", title: "A close beside the largest Gates of another namespace", run: runRestless,
	about: `
Twelve Gates of one namespace are the largest that validation accepts: 100 cron periods each, all of which begin and end every two minutes, and 20 exceptions
with 100 such periods each. Gates of another namespace, with one target each, are closed one after the other, without and with the twelve. Measured is
from before the request is sent until a watch has seen the target held. The yardstick is as above. The tables have one decision on such a Gate, its pages of
92 days and its calendar of 365 days, each beside the same for a Gate with one window for each night or day.`,
}

func runRestless(ctx context.Context, b *bench) (*result, error) {
	urgent, err := b.urgentGates(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	r := &result{}
	without, err := b.closesOf(ctx, urgent)
	if err != nil {
		return nil, err
	}
	r.closings("without the largest Gates", without)
	large, err := b.restlessFleet(ctx)
	if err != nil {
		return nil, err
	}
	with, err := b.closesOf(ctx, urgent)
	if err != nil {
		return nil, err
	}
	r.closings(fmt.Sprintf("with %d of the largest Gates in another namespace", restlessGates), with)
	used, err := b.useOfMemory(ctx)
	if err != nil {
		return nil, err
	}
	r.figure("Heap of the controller", used.heap/mebi, "MiB", "with the largest Gates")
	r.figure("Resident memory of the controller", used.resident/mebi, "MiB", "the same")
	if used.resident > maxResident*mebi {
		r.miss(false, "Resident memory: %s MiB, the limit is %d MiB.", beyond(used.resident/mebi, maxResident), maxResident)
	}
	for _, s := range []suite{
		{"Decisions", "./internal/gate", []string{"-bench", "Decide$", "-benchmem"}}, {"Pages", "./internal/ui", []string{"-bench", "Largest"}},
		{"Calendars", "./internal/calendarfeed", []string{"-bench", "Largest"}},
	} {
		t, err := b.runSuite(ctx, s)
		if err != nil {
			return nil, err
		}
		r.tables = append(r.tables, t)
	}
	if err := b.removeGates(ctx, append(large, urgent.gates...)); err != nil {
		return nil, err
	}
	return r, b.stopController()
}

// closesOf closes Gates one after the other, and opens each again.
func (b *bench) closesOf(ctx context.Context, urgent *urgentFleet) (all []closing, err error) {
	for i, gate := range urgent.gates {
		c, err := b.closing(ctx, gate, urgent.targets[i], urgent.bystander)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		again := b.observer.expect(urgent.targets[i:i+1], false)
		if err := b.request(ctx, gate, false); err != nil {
			return nil, err
		}
		if err := b.observer.wait(ctx, again); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// restlessFleet makes the largest Gates, with their exceptions, and waits until all are decided.
func (b *bench) restlessFleet(ctx context.Context) (gates []client.ObjectKey, err error) {
	const group = "restless"
	keys, err := b.targets(ctx, group, 1, restlessGates)
	if err != nil {
		return nil, err
	}
	periods := func(schedule string, n int) (all []v1alpha1.Period) {
		for i := range n {
			all = append(all, v1alpha1.Period{Name: fmt.Sprintf("p%d", i), Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Minute}})
		}
		return all
	}
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: periods("*/2 * * * *", v1alpha1.MaxPeriods/2)}
	for _, p := range periods("*/2 * * * *", v1alpha1.MaxPeriods/2) {
		p.Name = "c" + p.Name
		spec.ClosePeriods = append(spec.ClosePeriods, v1alpha1.ClosePeriod{Period: p})
	}
	now := time.Now().Truncate(time.Second)
	return keys, inParallel(setUpAtOnce, keys, func(key client.ObjectKey) error {
		for i := range v1alpha1.MaxEffectiveExceptions {
			e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: fmt.Sprintf("%s-%d", key.Name, i)}}
			e.Spec = v1alpha1.GateExceptionSpec{
				GateRef: v1alpha1.GateReference{Name: key.Name}, TimeZone: "UTC", LeadTime: ptr.To(v1alpha1.Duration{Duration: time.Hour}),
				ValidFrom: metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.AddDate(0, 0, 80)), ClosePeriods: periods("1-59/2 * * * *", v1alpha1.MaxPeriods),
			}
			if err := b.client.Create(ctx, e); err != nil {
				return err
			}
		}
		gate := gateNamed(key)
		gate.Spec = spec
		if err := b.client.Create(ctx, gate); err != nil {
			return err
		}
		return b.observer.every(ctx, []client.ObjectKey{key}, "decided", func(gate *v1alpha1.Gate) bool { return gate.Status.ObservedGeneration == gate.Generation })
	})
}
