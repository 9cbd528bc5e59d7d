package view

import (
	"fmt"
	"testing"

	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

func TestReferencesToOtherNamespacesMustBeAllowed(t *testing.T) {
	const refused = `targets in %s cannot be held from namespace "shop": the controller runs with --no-cross-namespace-refs`
	const unwatched = "the controller does not watch %s: it runs with --watch-all-namespaces=false"
	unwatching := Reach{AllowCrossNamespaceRefs: true, Namespaces: map[string]ctrlcache.Config{"shop": {}}}
	for name, tc := range map[string]struct {
		reach     Reach
		namespace string
		want      string
	}{
		"the same":                    {Reach{}, "shop", ""},
		"another":                     {Reach{}, "bank", fmt.Sprintf(refused, `namespace "bank"`)},
		"all":                         {Reach{}, "*", fmt.Sprintf(refused, "other namespaces")},
		"another, allowed":            {Reach{AllowCrossNamespaceRefs: true}, "bank", ""},
		"another, allowed, unwatched": {unwatching, "bank", fmt.Sprintf(unwatched, `namespace "bank"`)},
		"all, allowed, unwatched":     {unwatching, "*", fmt.Sprintf(unwatched, "other namespaces")},
	} {
		if got := tc.reach.OutOfReach("targets", "held", "shop", tc.namespace); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
