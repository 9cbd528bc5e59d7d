package policies

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/markdown"
)

// The policy of docs/reference/gates.md for Gates that allow initial reconciliations.
func TestNewObjectNeedsVerbOpenByPolicyOnPage(t *testing.T) {
	w := newWorld(t)
	text := markdown.BlockOf(t, "docs/reference/gates.md", "yaml", "new-objects-need-open")
	for _, manifest := range strings.Split(strings.ReplaceAll(text, "metadata.name: flux-system", "metadata.name: "+w.Namespace), "---\n") {
		obj := &unstructured.Unstructured{}
		w.Must(yaml.Unmarshal([]byte(manifest), &obj.Object))
		w.Create(obj)
	}
	w.mayOn("dora", "create", apps)
	w.mayOn("olga", "create", apps)
	w.mayOn("olga", "open", "gates.gating.toolkit.fluxcd.io")
	app := func() client.Object { return w.Kustomization("app") }
	w.Eventually("a new object needs the verb", func() error {
		err := w.Person("dora").Client.Create(w.Context(), app(), client.DryRunAll)
		if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a new object needs the verb open") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	w.Must(w.Person("olga").Client.Create(w.Context(), app(), client.DryRunAll))
}
