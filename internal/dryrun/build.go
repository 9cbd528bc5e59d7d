package dryrun

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
)

// Build returns the objects that a Kustomization makes of an artifact that is unpacked in a folder. It changes files there.
// Variables come from ConfigMaps and Secrets that the client reads.
func Build(ctx context.Context, c client.Client, ks *unstructured.Unstructured, dir string) ([]*unstructured.Unstructured, error) {
	path := filepath.Join(dir, filepath.Clean("/"+text(ks, "spec", "path")))
	if _, err := kustomize.NewGenerator(dir, *ks).WriteFile(path); err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	built, err := kustomize.SecureBuild(dir, path, false)
	if err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	if _, ok, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild"); ok {
		always := text(ks, "spec", "postBuild", "substituteStrategy") == "Always"
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
	labels, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "annotations")
	utils.SetCommonMetadata(objects, labels, annotations)
	return objects, normalize.UnstructuredList(objects)
}
