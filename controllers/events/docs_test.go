package events

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// readFile returns a file of the repository.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestDocsListEachMetadataKey(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "docs", "guides", "notification-messages.md"), "| key | meaning |")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	keys := []string{
		GateKey, StateKey, ReasonKey, RequesterKey, ApproverKey, MessageKey, PeriodKey, ExceptionKey, ActionKey, AtKey,
		eventv1.MetaRevisionKey, eventv1.MetaTokenKey,
	}
	slices.Sort(keys)
	equal(t, documented, keys)
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	MustMakeMetrics(registry)
	registry.MustRegister(NewHeldCertificates(func(context.Context) ([]*target.Object, error) { return nil, nil }))
	descriptions := make(chan *prometheus.Desc, 100)
	registry.Describe(descriptions)
	close(descriptions)
	known := []string{"gating_build_info"} // of internal/app
	for description := range descriptions {
		known = append(known, regexp.MustCompile(`gating_[a-z_]+`).FindString(description.String()))
	}
	used := regexp.MustCompile(`gating_[a-z_]+`).FindAllString(readFile(t, "config", "monitoring", "prometheus_rule.yaml"), -1)
	if len(used) < 3 {
		t.Errorf("the alerts use %q", used)
	}
	for _, name := range used {
		if !slices.Contains(known, name) {
			t.Errorf("there is no metric %s in %q", name, known)
		}
	}
}

// Only held Certificates have metrics of their validity.
func TestValidityOfHeldCertificates(t *testing.T) {
	certificate := func(name, heldBy string) *target.Object {
		obj := &target.Object{Unstructured: *view.NewTarget(target.Certificate.WithVersion("v1"))}
		obj.SetName(name)
		obj.Object["spec"] = map[string]any{"renewal": map[string]any{"policy": "Disabled"}}
		obj.Object["status"] = map[string]any{"notBefore": start.Format(time.RFC3339), "notAfter": start.Add(time.Hour).Format(time.RFC3339)}
		obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: heldBy})
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewal":{"f:policy":{}}}}`),
		}})
		return obj
	}
	released := certificate("released", "ns/a")
	delete(released.Object, "spec")
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewHeldCertificates(func(context.Context) ([]*target.Object, error) {
		return []*target.Object{certificate("held", "ns/a"), certificate("disabled-by-others", ""), released}, nil
	}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			got[metric.GetLabel()[0].GetValue()+" "+strings.TrimPrefix(family.GetName(), "gating_certificate_held_")] = metric.GetGauge().GetValue()
		}
	}
	equal(t, got, map[string]float64{
		"held not_before_timestamp_seconds": float64(start.Unix()), "held expiration_timestamp_seconds": float64(start.Add(time.Hour).Unix()),
	})
}
