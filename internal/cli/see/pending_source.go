package see

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/target"
)

// promotes returns the changes that all users of the pinned source would make if the pin moved to the waiting revision. It uses the
// artifact of the followed source, which would then also be the artifact of the pinned source.
func (d *differ) promotes(ctx context.Context, obj *unstructured.Unstructured, w *explain.Waiting) *pendingDiff {
	source := readSource(ctx, d.objects, obj)
	result := &pendingDiff{found: found{Changes: []dryrun.Change{}}, url: gitURL(source)}
	if result.Cause = missingArtifact(source, w.Waits); result.Cause != "" {
		return result
	}
	users, err := d.pinnedSourceUsers(ctx, obj)
	if err != nil {
		result.Cause = term.OneLine(err.Error())
		return result
	}
	for _, user := range users {
		u := userDiff{Target: explain.RefOf(user), Revision: explain.Wait(user, nil, time.Time{}).Revision}
		if u.Target.Kind == kustomizev1.KustomizationKind {
			u.found = d.find(ctx, user, source)
		} else {
			u.found = found{[]dryrun.Change{}, "charts are not rendered"}
		}
		result.Users = append(result.Users, u)
	}
	return result
}

// missingArtifact returns why a source does not have the artifact of a revision, empty if it has the artifact.
func missingArtifact(source *unstructured.Unstructured, revision string) string {
	if source == nil {
		return noSource
	}
	if has, _, _ := unstructured.NestedString(source.Object, target.ArtifactRevisionPath...); has != revision {
		return fmt.Sprintf("%s/%s has %s, and keeps no other revision", source.GetKind(), source.GetName(), shortRevision(has, false))
	}
	return ""
}

// pinnedSourceUsers returns the Kustomizations and HelmReleases that refer to the pinned source of a GatedSource.
func (d *differ) pinnedSourceUsers(ctx context.Context, obj *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if d.users == nil {
		d.users = map[explain.Ref][]*unstructured.Unstructured{}
		for _, kind := range []schema.GroupVersionKind{kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind)} {
			mapping, err := d.objects.Mapper.RESTMapping(kind.GroupKind())
			if meta.IsNoMatchError(err) {
				continue
			} else if err != nil {
				return nil, kube.NoCluster(err)
			}
			if err := d.objects.Each(ctx, mapping, d.namespace, "", func(user *unstructured.Unstructured) {
				if ref, ok := explain.SourceOf(user); ok {
					d.users[sourceKey(ref)] = append(d.users[sourceKey(ref)], user.DeepCopy())
				}
			}); err != nil {
				return nil, err
			}
		}
	}
	pinned, _ := explain.Pinned(obj)
	return d.users[sourceKey(pinned)], nil
}
