package see

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestHistoryRowNamesTargets(t *testing.T) {
	entry := func(e v1alpha1.HistoryEntry) v1alpha1.HistoryEntry {
		e.At, e.Targets = metav1.NewTime(now), "Kustomization/apps"
		return e
	}
	for want, e := range map[string]v1alpha1.HistoryEntry{
		"opened|exception hotfix, only Kustomization/apps":         entry(v1alpha1.HistoryEntry{State: v1alpha1.StateOpened, Reason: v1alpha1.OverlayStartedReason, Exception: "hotfix"}),
		"ended|exception hotfix, only Kustomization/apps":          entry(v1alpha1.HistoryEntry{Reason: v1alpha1.OverlayEndedReason, Exception: "hotfix"}),
		"open requested|only Kustomization/apps":                   entry(v1alpha1.HistoryEntry{Action: v1alpha1.RequestOpen, Reason: v1alpha1.RequestAcceptedReason}),
		"open approved|approved by bob, only Kustomization/apps":   entry(v1alpha1.HistoryEntry{Action: v1alpha1.RequestOpen, Reason: v1alpha1.RequestApprovedReason, ApprovedBy: "bob"}),
		"close withdrawn|in an emergency, only Kustomization/apps": entry(v1alpha1.HistoryEntry{Action: v1alpha1.RequestOpen, Reason: v1alpha1.RequestWithdrawnReason, Emergency: true}),
	} {
		if row := historyRow(&term.Terminal{}, e, now); strings.Join(row[1:3], "|") != want {
			t.Errorf("got %q, want %q", row, want)
		}
	}
}
