package dryrun

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
)

// Build returns the objects that a Kustomization builds from an artifact that was unpacked into a folder. It modifies files in that
// folder. Variables come from ConfigMaps and Secrets read by the client.
func Build(ctx context.Context, c client.Client, ks *unstructured.Unstructured, dir string) ([]*unstructured.Unstructured, error) {
	typed, err := kustomizationOf(ks)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Clean("/"+typed.Spec.Path))
	if _, err := kustomize.NewGenerator(dir, *ks).WriteFile(path); err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	built, err := kustomize.SecureBuild(dir, path, false)
	if err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	if post := typed.Spec.PostBuild; post != nil {
		always := post.SubstituteStrategy == kustomizev1.SubstituteStrategyAlways
		for _, res := range built.Resources() {
			out, err := kustomize.SubstituteVariables(ctx, c, *ks, res, kustomize.SubstituteWithAlways(always))
			if err != nil {
				return nil, fmt.Errorf("postBuild of %s %s: %w", res.GetKind(), res.GetName(), err)
			}
			if out == nil {
				continue
			}
			if _, err := built.Replace(res); err != nil {
				return nil, err
			}
		}
	}
	manifests, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	objects, err := utils.ReadObjects(bytes.NewReader(manifests))
	if err != nil {
		return nil, err
	}
	if common := typed.Spec.CommonMetadata; common != nil {
		utils.SetCommonMetadata(objects, common.Labels, common.Annotations)
	}
	return objects, normalize.UnstructuredList(objects)
}

// kustomizationOf converts an object to a Kustomization.
func kustomizationOf(obj *unstructured.Unstructured) (*kustomizev1.Kustomization, error) {
	ks := &kustomizev1.Kustomization{}
	return ks, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, ks)
}
