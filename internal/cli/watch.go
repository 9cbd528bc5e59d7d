package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// watchGates prints the row of a Gate each time that it changes, after those that were printed, until it is interrupted.
func (s *session) watchGates(ctx context.Context, c *cluster, sc scope, t *table, printed [][]string) error {
	namespace := c.namespace
	if sc.all {
		namespace = ""
	}
	matches, err := statusSelector(sc.statusOfReady)
	if err != nil {
		return err
	}
	shown := map[string]string{}
	for _, row := range printed {
		name, text := fingerprint(row, sc.all)
		shown[name] = text
	}
	for {
		opts := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{LabelSelector: sc.selector}}
		events, err := c.Watch(ctx, &v1alpha1.GateList{}, opts)
		if err != nil {
			return asked{"watch", "gates", namespace, "", "gate-viewer"}.explain(err)
		}
		for event := range events.ResultChan() {
			g, ok := event.Object.(*v1alpha1.Gate)
			if !ok || event.Type == watch.Deleted || !matches(g) || len(sc.names) > 0 && !slices.Contains(sc.names, g.Name) {
				continue
			}
			now, err := s.now()
			if err != nil {
				return err
			}
			row := s.gateRow(g, now, sc.all, t.wide)
			name, text := fingerprint(row, sc.all)
			if shown[name] == text {
				continue
			}
			shown[name] = text
			if err := t.print(nil, row); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil // somebody has ended it
		}
	}
}

// fingerprint returns the name in a row, and what else it says. How far away a time is changes by itself.
func fingerprint(row []string, namespaces bool) (name, text string) {
	n := 1
	if namespaces {
		n = 2
	}
	return strings.Join(row[:n], "/"), distances.ReplaceAllString(strings.Join(row[n:], "|"), "")
}

var distances = regexp.MustCompile(` \(in ([0-9]+[smhd])+\)`)
