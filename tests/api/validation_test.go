package api_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// subject is a kind whose specs are judged by the API server and by Go.
type subject struct {
	kind string
	// validate has the Go code judge a spec, as the paths of the errors. It
	// reports at the path "decode" what Go cannot even decode.
	validate func(spec string) []string
	bad      []badSpec
	good     map[string]string
}

var subjects = []subject{
	{v1alpha1.GateKind, validate, badSpecs, goodSpecs},
	{v1alpha1.GateExceptionKind, validateException, badExceptions, goodExceptions},
}

// admit has the API server judge a Gate with a spec in YAML.
func admit(t *testing.T, spec string) error {
	t.Helper()
	return admitKind(t, v1alpha1.GateKind, spec)
}

// admitKind has the API server judge an object of a kind with a spec in YAML.
func admitKind(t *testing.T, kind, spec string) error {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetGenerateName("spec-")
	return cluster.Client.Create(t.Context(), obj, client.DryRunAll)
}

func validate(spec string) []string {
	g := &v1alpha1.Gate{}
	if err := yaml.UnmarshalStrict([]byte(spec), &g.Spec); err != nil {
		return []string{"decode"}
	}
	return pathsOf(gate.Validate(g))
}

func validateException(spec string) []string {
	e := &v1alpha1.GateException{}
	if err := yaml.UnmarshalStrict([]byte(spec), &e.Spec); err != nil {
		return []string{"decode"}
	}
	return pathsOf(gate.ValidateException(e))
}

func pathsOf(errs field.ErrorList) (paths []string) {
	for _, err := range errs {
		paths = append(paths, err.Field)
	}
	return paths
}

// each runs a test for each kind.
func each(t *testing.T, test func(t *testing.T, s subject)) {
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) { test(t, s) })
	}
}

// causes returns what the API server said, as "path: message".
func causes(t *testing.T, err error) []string {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want an error of the validation", err)
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		// CEL rules are not evaluated on an object that is wrong otherwise, and
		// the API server says so in a cause of its own.
		if cause.Field != "<nil>" {
			all = append(all, cause.Field+": "+cause.Message)
		}
	}
	return all
}

func TestABadSpecIsRefusedInTheWordsOfAUser(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for _, tc := range s.bad {
			t.Run(tc.name, func(t *testing.T) {
				err := admitKind(t, s.kind, tc.spec)
				if tc.cause == "" {
					if err != nil {
						t.Errorf("the API server sees more than expected, move the row: %v", err)
					}
					return
				}
				if err == nil {
					t.Fatal("accepted")
				}
				all := causes(t, err)
				if len(all) != 1 {
					t.Errorf("%d causes, want one clear error: %q", len(all), all)
				}
				if !strings.HasPrefix(all[0], tc.path+": ") || !strings.Contains(all[0], tc.cause) {
					t.Errorf("got  %q\nwant %q at %q", all[0], tc.cause, tc.path)
				}
			})
		}
	})
}

// A manifest is judged by the command line without an API server, so that both
// must come to the same result.
func TestGoRefusesWhatTheAPIServerRefuses(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for _, tc := range s.bad {
			t.Run(tc.name, func(t *testing.T) {
				paths := s.validate(tc.spec)
				if len(paths) == 0 {
					t.Fatal("accepted")
				}
				for _, path := range paths {
					if path != "decode" && !strings.HasPrefix(path, tc.path) && !strings.HasPrefix(tc.path, path) {
						t.Errorf("got an error at %s, the API server has it at %s", path, tc.path)
					}
				}
			})
		}
	})
}

func TestAGoodSpecIsAcceptedByBoth(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for name, spec := range s.good {
			t.Run(name, func(t *testing.T) {
				if err := admitKind(t, s.kind, spec); err != nil {
					t.Error("the API server:", err)
				}
				if paths := s.validate(spec); len(paths) > 0 {
					t.Error("Go: error at", paths)
				}
			})
		}
	})
}

// A duration of zero with a default is the one difference: in Go it cannot be
// told from none.
func TestADurationOfZero(t *testing.T) {
	for spec, cause := range map[string]string{
		`{default: closed, interval: 0s}`: causeInterval,
	} {
		err := admit(t, spec)
		if err == nil || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: got %v, want %q", spec, err, cause)
		}
	}
}
