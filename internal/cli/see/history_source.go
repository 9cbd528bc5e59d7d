package see

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// promotionItem is a promotion of a GatedSource. The JSON format is public.
type promotionItem struct {
	// Metadata identifies the GatedSource.
	Metadata explain.Metadata `json:"metadata"`

	v1alpha1.Promotion `json:",inline"`
}

// promotionScope selects promotions and contains the flags for their output.
type promotionScope struct {
	from, now time.Time
	*term.Output
}

// runSourceHistory prints the promotions of GatedSources.
func runSourceHistory(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc *kube.Scope, keys []client.ObjectKey, f promotionScope) error {
	if sc.All || sc.Selector != "" || sc.StatusSelector != "" {
		return errors.New("--all-namespaces, --selector and --status-selector are for gates: name each gatedsource, also as source/NAMESPACE/NAME")
	}
	items := []promotionItem{}
	for _, key := range keys {
		g, err := c.GatedSource(ctx, key)
		if err != nil {
			return err
		}
		items = append(items, promotionsSince(t, g, f.from)...)
	}
	slices.SortStableFunc(items, func(a, b promotionItem) int { return b.At.Compare(a.At.Time) })
	return historyReport[promotionItem]{term.SourcePromotion, items, writePromotions, func() error {
		return printPromotions(t, f, items, len(keys) > 1)
	}}.print(t, f.Output)
}

// promotionsSince returns the promotions of a GatedSource since a time. It warns if the recorded history starts later.
func promotionsSince(t *term.Terminal, g *v1alpha1.GatedSource, from time.Time) (items []promotionItem) {
	all := g.Status.Promotions
	for i := range all {
		if !all[i].At.Time.Before(from) {
			items = append(items, promotionItem{explain.Metadata{Namespace: g.Namespace, Name: g.Name}, all[i]})
		}
	}
	if n := len(all); !from.IsZero() && n == v1alpha1.MaxPromotions && all[n-1].At.After(from) {
		t.Warn("gatedsource %s/%s has no history before %s: it keeps its last %d promotions", g.Namespace, g.Name, all[n-1].At.UTC().Format(time.RFC3339), v1alpha1.MaxPromotions)
	}
	return items
}

func printPromotions(t *term.Terminal, f promotionScope, items []promotionItem, named bool) error {
	headers := []string{term.TimeHeader("WHEN", f.now), "REVISION", "FROM", "REASON", "BY", "MESSAGE"}
	if named {
		headers = slices.Insert(headers, 1, "SOURCE")
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		by, reasons := approvers(item.Approvals)
		if item.Reason == v1alpha1.RolledBackReason {
			by, reasons = item.RequestedBy, item.Message
		}
		rows[i] = []string{
			item.At.In(f.now.Location()).Format("2006-01-02 15:04:05"), shortRevision(item.Revision, f.IsWide()), shortRevision(item.From, f.IsWide()),
			describe.Words(item.Reason, ""), term.OrDash(by), term.OrDash(reasons),
		}
		if named {
			rows[i] = slices.Insert(rows[i], 1, item.Metadata.Namespace+"/"+item.Metadata.Name)
		}
	}
	return f.Table(t.Out).Print(headers, rows...)
}

// approvers returns the names of the approvers, and their reasons.
func approvers(approvals []v1alpha1.RevisionApproval) (by, reasons string) {
	var names, why []string
	for _, a := range approvals {
		if names = append(names, a.ApprovedBy); a.Message != "" {
			why = append(why, a.Message)
		}
	}
	return strings.Join(names, ", "), strings.Join(why, "; ")
}

// writePromotions writes promotions as CSV (RFC 4180), with times in UTC.
func writePromotions(w io.Writer, items []promotionItem, noHeaders bool) error {
	table := csv.NewWriter(w)
	if !noHeaders {
		_ = table.Write([]string{"at", "namespace", "gatedSource", "revision", "from", "reason", "approvedBy", "approvalReasons", "requestedBy", "requestMessage"})
	}
	for _, i := range items {
		by, reasons := approvers(i.Approvals)
		_ = table.Write([]string{i.At.UTC().Format(time.RFC3339), i.Metadata.Namespace, i.Metadata.Name, escapeFormula(i.Revision), escapeFormula(i.From), i.Reason, escapeFormula(by), escapeFormula(reasons),
			escapeFormula(i.RequestedBy), escapeFormula(i.Message)})
	}
	table.Flush()
	return table.Error()
}
