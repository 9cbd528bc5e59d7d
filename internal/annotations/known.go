package annotations

import (
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/suggest"
)

// Writers of annotations that users must not write.
const (
	byController = "only the controller writes it"
	byAPIServer  = "only the API server writes it, with config/policies"
)

// known maps each of our annotations to its writer. The writer is empty if users write the annotation, even if the API server stamps it
// with config/policies.
var known = map[string]string{
	v1alpha1.OpenRequestedAtAnnotation: "", v1alpha1.OpenRequestedByAnnotation: "", v1alpha1.OpenReasonAnnotation: "", v1alpha1.OpenEmergencyAnnotation: "",
	v1alpha1.OpenReceivedAnnotation:     byController,
	v1alpha1.CloseRequestedAtAnnotation: "", v1alpha1.CloseRequestedByAnnotation: "", v1alpha1.CloseReasonAnnotation: "",
	v1alpha1.CloseReceivedAnnotation:   byController,
	v1alpha1.PassRequestedAtAnnotation: "", v1alpha1.PassRequestedByAnnotation: "", v1alpha1.PassReasonAnnotation: "", v1alpha1.PassGatesAnnotation: "",
	v1alpha1.RollbackRequestedAtAnnotation: "", v1alpha1.RollbackRequestedByAnnotation: "", v1alpha1.RollbackReasonAnnotation: "", v1alpha1.RollbackGatesAnnotation: "",
	v1alpha1.ProceedRequestedAtAnnotation: "", v1alpha1.ProceedRequestedByAnnotation: "", v1alpha1.ProceedReasonAnnotation: "",
	v1alpha1.ApproveRequestedAtAnnotation: "", v1alpha1.ApproveReasonAnnotation: "",
	v1alpha1.ApproveRequestedByAnnotation: byAPIServer, v1alpha1.AuthorsAnnotation: byAPIServer, v1alpha1.UnhandledAnnotation: byAPIServer,
	v1alpha1.GatesAnnotation: "", v1alpha1.ActivateIntoAnnotation: "", uninstall: "",
	v1alpha1.DeliveriesAnnotation: byController, v1alpha1.HeldByAnnotation: byController, v1alpha1.PassAnnotation: byController,
	v1alpha1.ActivatedAnnotation: byController, v1alpha1.ActivatedFromAnnotation: byController, v1alpha1.PinnedByAnnotation: byController,
	v1alpha1.RefreshAnnotation: byController, suspendedBy: byAPIServer,
}

// Annotations that only the policies in config read.
const (
	uninstall   = api.Group + "/uninstall"
	suspendedBy = api.Group + "/suspendedBy"
)

// A Problem is an annotation without the expected effect, with the cause.
type Problem struct{ Key, Cause string }

// Unknown returns a problem for each unknown annotation in one of our domains.
func Unknown(annotations map[string]string) (problems []Problem) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain, _, _ := strings.Cut(key, "/")
		if _, ok := known[key]; ok || !isOurs(domain) {
			continue
		}
		cause := "unknown annotation: it has no effect"
		if meant := closest(key); meant != "" {
			cause = "unknown annotation, did you mean " + meant + "?"
		}
		problems = append(problems, Problem{key, cause})
	}
	return problems
}

// InManifest returns a problem for each annotation in a manifest that is unknown or that users must not write.
func InManifest(annotations map[string]string) []Problem {
	problems := Unknown(annotations)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if writer := known[key]; writer != "" {
			problems = append(problems, Problem{key, writer + ": remove it from the manifest"})
		}
	}
	return problems
}

func isOurs(domain string) bool {
	return slices.ContainsFunc([]string{api.Group, api.RequestDomain}, func(ours string) bool { return domain == ours || strings.HasSuffix(domain, "."+ours) })
}

// closest returns the annotation that the author of a key probably meant. It ignores case and dashes.
func closest(key string) string {
	plain := func(key string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key)) }
	names := map[string]string{}
	for name := range known {
		names[plain(name)] = name
	}
	return names[suggest.Closest(plain(key), slices.Sorted(maps.Keys(names)))]
}
