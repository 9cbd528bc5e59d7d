package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMonitoringPageListsAlerts compares docs/operate/monitoring.md with the alerts.
func TestMonitoringPageListsAlerts(t *testing.T) {
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, For string
					Labels     map[string]string
				}
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(root, "config", "monitoring", "prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			lasts := "at once"
			if rule.For != "" {
				lasts = "for " + rule.For
			}
			severity := rule.Labels["severity"]
			want[rule.Alert+": "+strings.ToUpper(severity[:1])+severity[1:]+", "+lasts] = true
		}
	}
	if len(want) < 10 {
		t.Fatalf("only %d alerts", len(want))
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "operate", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, alerts, _ := strings.Cut(string(page), "\n## Alerts\n")
	shown := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^### (\w+)\n\n(\w+, [a-z0-9 ]+)\. .+(?:\n.+)*\n\n\S.+$`).FindAllStringSubmatch(alerts, -1) {
		shown[found[1]+": "+found[2]] = true
	}
	same(t, "alert", shown, want)
}

// TestMonitoringPageListsPanels compares docs/operate/monitoring.md with the dashboard.
func TestMonitoringPageListsPanels(t *testing.T) {
	var dashboard struct{ Panels []struct{ Title string } }
	content, err := os.ReadFile(filepath.Join(root, "config", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, panel := range dashboard.Panels {
		want[panel.Title] = true
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "operate", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| panel | answers |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	shown := map[string]bool{}
	for line := range strings.Lines(table) {
		for title := range strings.SplitSeq(strings.Split(line, "|")[1], ",") {
			shown[strings.TrimSpace(title)] = true
		}
	}
	same(t, "panel", shown, want)
}
