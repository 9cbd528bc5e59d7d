package shards

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func auditsBeside(t *testing.T) {
	w := newWorld(t)
	app, free := w.app("apps"), w.app("free")
	a := w.gate(rest, "a", v1alpha1.StateClosed, "apps")
	w.is(app, a)
	w.ready(a)
	written := w.Record(kustomizations)
	b := w.gate(one, "b", v1alpha1.StateOpened, "apps", "free")
	w.mode(b, v1alpha1.ModeAudit)
	w.close(b)
	w.ready(b)
	w.has(one, b)
	w.settled()
	w.Read(b) // the gate counts its targets after it is ready
	if counts := b.Status.Targets.TargetCounts; counts != (v1alpha1.TargetCounts{Total: 2, WouldHold: 2}) {
		t.Errorf("the gate counts %+v", counts)
	}
	if all := written.All(); len(all) > 0 {
		t.Errorf("%d writes", len(all))
	}
	w.mode(b, v1alpha1.ModeEnforce)
	w.is(app, a, b)
	w.is(free, b)
	w.mode(b, v1alpha1.ModeAudit)
	w.is(app, a)
	w.is(free)
	w.open(a)
	w.is(app)
	w.settled()
}
