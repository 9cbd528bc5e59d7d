package app

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxcd/pkg/runtime/metrics"

	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/calendarfeed"
	"github.com/fluxcd/gating-controller/internal/webauth"
	"github.com/fluxcd/gating-controller/receivers"
)

// ofCertificates has the metrics that are collected at each scrape. A test of the controllers checks them.
var ofCertificates = map[string]string{
	"gating_certificate_held_expiration_timestamp_seconds": "name, namespace", "gating_certificate_held_not_before_timestamp_seconds": "name, namespace",
}

// described returns the labels of metrics by their names.
func described(t *testing.T, of prometheus.Collector) map[string]string {
	t.Helper()
	all := make(chan *prometheus.Desc, 1000)
	of.Describe(all)
	close(all)
	labels := map[string]string{}
	for d := range all {
		found := regexp.MustCompile(`fqName: "([^"]+)".* constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("unknown form: %s", d)
		}
		names := strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' })
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(found[2], -1) {
			names = append(names, label[1])
		}
		slices.Sort(names)
		labels[found[1]] = strings.Join(names, ", ")
	}
	return labels
}

// ours returns the labels of all metrics of the product.
func ours(t *testing.T) map[string]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	events.MustMakeMetrics(registry)
	receivers.MustMakeMetrics(registry)
	calendarfeed.MustMakeMetrics(registry)
	webauth.MustMakeMetrics(registry)
	registry.MustRegister(buildInfo())
	all := described(t, registry)
	maps.Copy(all, ofCertificates)
	return all
}

// ofOthers returns the labels of the metrics of Flux and of controller-runtime.
func ofOthers(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, c := range metrics.NewRecorder().Collectors() {
		maps.Copy(all, described(t, c))
	}
	registered, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("a %T describes nothing", ctrlmetrics.Registry)
	}
	maps.Copy(all, described(t, registered))
	return all
}

func TestMetricsPageListsEachMetricWithLabels(t *testing.T) {
	shown := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ?([^|]*) \\|").FindAllStringSubmatch(referencePage(t, "metrics.md"), -1) {
		if _, twice := shown[row[1]]; twice {
			t.Errorf("%s is there twice", row[1])
		}
		labels := strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
		slices.Sort(labels)
		shown[row[1]] = strings.Join(labels, ", ")
	}
	others := ofOthers(t)
	for name, labels := range ours(t) {
		if got, ok := shown[name]; !ok || got != labels {
			t.Errorf("%s: the page says %t with labels %q, it has %q", name, ok, got, labels)
		}
		delete(shown, name)
	}
	for name, got := range shown {
		if labels, ok := others[name]; !ok || got != labels {
			t.Errorf("%s: the page has it with labels %q, it is there %t with %q", name, got, ok, labels)
		}
	}
}

// dashboard has the parts of config/monitoring/dashboard.json that a test reads.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID                       int
		Title, Type, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr, LegendFormat, RefID string }
	}
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 30 || len(d.Panels) < 8 {
		t.Errorf("%q, %q, version %d, %d panels", d.UID, d.Title, d.SchemaVersion, len(d.Panels))
	}
	known := ours(t)
	maps.Copy(known, ofOthers(t))
	ids, asks := map[int]bool{}, 0
	check := func(where, expr string) {
		asks++
		names := regexp.MustCompile(`\b(?:gating|gotk|leader|controller_runtime|workqueue|rest_client)_[a-z_]+`).FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing: %s", where, expr)
		}
		for _, name := range names {
			if _, ok := known[name]; !ok && known[strings.TrimSuffix(name, "_bucket")] == "" {
				t.Errorf("%s: there is no metric %s", where, name)
			}
		}
		if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
			t.Errorf("%s: brackets: %s", where, expr)
		}
	}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Description == "" || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
			t.Errorf("panel %d %q: its id, its description or its place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			check(v.Name, v.Query)
		}
	}
	if asks < 10 {
		t.Errorf("only %d queries", asks)
	}
}
