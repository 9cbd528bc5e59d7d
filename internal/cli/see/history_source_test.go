package see

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

func TestPromotionsOfGatedSourceSinceInstant(t *testing.T) {
	at := func(hour int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(hour) * time.Hour)) }
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps", CreationTimestamp: at(-100)}}
	for i := range v1alpha1.MaxPromotions {
		g.Status.Promotions = append(g.Status.Promotions, v1alpha1.Promotion{Revision: "main@sha1:b", At: at(-i), Reason: "GateOpened"})
	}
	for _, tc := range []struct {
		from metav1.Time
		want int
		warn string
	}{
		{metav1.Time{}, 20, ""},
		{at(-3), 4, ""},
		{at(-50), 20, "warning: gatedsource shop/apps has no history before " + at(-19).UTC().Format(time.RFC3339) + ": it keeps its last 20 promotions\n"},
	} {
		var errOut bytes.Buffer
		s := &kube.Factory{Terminal: &term.Terminal{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}}}
		if got := promotionsSince(s.Terminal, g, tc.from.Time); len(got) != tc.want || errOut.String() != tc.warn {
			t.Errorf("since %s: %d, %q", tc.from, len(got), errOut.String())
		}
	}
}

func TestPromotionsAsTable(t *testing.T) {
	var out bytes.Buffer
	err := writePromotions(&out, []promotionItem{{explain.Metadata{Namespace: "shop", Name: "apps"}, v1alpha1.Promotion{
		Revision: "main@sha1:b", From: "main@sha1:a", At: metav1.NewTime(now), Reason: "Approved",
		Approvals: []v1alpha1.RevisionApproval{{ApprovedBy: "alice", Message: "=1+1"}, {ApprovedBy: "bob"}},
	}}, {explain.Metadata{Namespace: "shop", Name: "apps"}, v1alpha1.Promotion{
		Revision: "main@sha1:a", From: "main@sha1:b", At: metav1.NewTime(now), Reason: v1alpha1.RolledBackReason, RequestedBy: "carol", Message: "=2",
	}}}, false)
	at := now.UTC().Format(time.RFC3339) + ",shop,apps,"
	want := "at,namespace,gatedSource,revision,from,reason,approvedBy,approvalReasons,requestedBy,requestMessage\n" +
		at + `main@sha1:b,main@sha1:a,Approved,"alice, bob",'=1+1,,` + "\n" + at + "main@sha1:a,main@sha1:b,RolledBack,,,carol,'=2\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\ngot  %q\nwant %q", err, out.String(), want)
	}
}

func TestGatedSourceHistoryTakesNamesOnly(t *testing.T) {
	const want = "--all-namespaces, --selector and --status-selector are for gates: name each gatedsource, also as source/NAMESPACE/NAME"
	if err := runSourceHistory(t.Context(), &term.Terminal{}, nil, &kube.Scope{All: true}, nil, promotionScope{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
