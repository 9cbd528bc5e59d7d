package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func opensForSome(t *testing.T) {
	w := newWorld(t)
	app, other := w.app("apps"), w.app("other")
	a, b := w.gate(rest, "a", v1alpha1.StateClosed, "*"), w.gate(one, "b", v1alpha1.StateClosed, "*")
	w.ready(a, b)
	w.is(app, a, b)
	w.is(other, a, b)
	w.settled()
	written := w.Record(kustomizations)
	request := func(g *v1alpha1.Gate, annotation string) {
		w.Annotate(g, annotation, time.Now().UTC().Format(time.RFC3339Nano)+"/1h,only=Kustomization/apps")
	}
	request(a, v1alpha1.OpenRequestedAtAnnotation)
	w.is(app, b)
	request(b, v1alpha1.OpenRequestedAtAnnotation)
	w.is(app)
	w.move(a, one)
	w.has(one, a)
	w.settled()
	w.is(app)
	request(b, v1alpha1.CloseRequestedAtAnnotation)
	w.is(app, b)
	w.settled()
	for _, u := range written.All() {
		if v := versionOf(u); u.GetName() == "other" && v.heldBy != fmt.Sprintf("%[1]s/a,%[1]s/b", w.Namespace) {
			t.Errorf("other was %+v", v)
		}
	}
}
