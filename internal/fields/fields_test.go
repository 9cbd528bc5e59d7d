package fields_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/fields"
)

type object struct {
	Meta `json:",inline"`

	Spec   spec    `json:"spec"`
	Status *status `json:"status,omitempty"`
}

type Meta struct {
	Kind string `json:"kind,omitempty"`
}

type spec struct {
	First   string         `json:"first"`
	Source  source         `json:"sourceRef"`
	Timeout *duration      `json:"timeout,omitempty"`
	List    []string       `json:"list"`
	Since   time.Time      `json:"since"`
	Limits  map[string]int `json:"limits"`
}

type source struct {
	Name string `json:"name"`
}

type duration struct{ Seconds int }

type status struct {
	Handled `json:",inline"`

	Artifact *artifact `json:"artifact"`
}

type Handled struct {
	At string `json:"lastHandledReconcileAt,omitempty"`
}

type artifact struct {
	Revision string `json:"revision"`
}

func TestPathHasJSONNames(t *testing.T) {
	o := fields.New[object]()
	for want, field := range map[string]any{
		"kind":                          &o.Kind,
		"spec":                          &o.Spec,
		"spec.first":                    &o.Spec.First,
		"spec.sourceRef":                &o.Spec.Source,
		"spec.sourceRef.name":           &o.Spec.Source.Name,
		"spec.timeout":                  &o.Spec.Timeout,
		"spec.list":                     &o.Spec.List,
		"spec.since":                    &o.Spec.Since,
		"spec.limits":                   &o.Spec.Limits,
		"status":                        &o.Status,
		"status.lastHandledReconcileAt": &o.Status.At,
		"status.artifact":               &o.Status.Artifact,
		"status.artifact.revision":      &o.Status.Artifact.Revision,
	} {
		if got := strings.Join(fields.Path(o, field), "."); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := fields.Paths(o, &o.Kind, &o.Spec.First), [][]string{{"kind"}, {"spec", "first"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := fields.Name(o, &o.Status.Artifact.Revision); got != "revision" {
		t.Errorf("got %s", got)
	}
}

func TestPointerOutsideObjectPanics(t *testing.T) {
	o := fields.New[object]()
	var other object // with a nil pointer in it
	var text string
	for name, path := range map[string]func(){
		"another object": func() { fields.Path(o, &other.Spec.First) },
		"no field":       func() { fields.Path(&other, &text) },
		"another type":   func() { fields.Path(o, (*int)(nil)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			path()
		}()
	}
}
