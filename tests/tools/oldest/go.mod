// A module of its own: the APIs of the oldest Flux that is supported, 2.6, from which CRDs are generated.
module github.com/fluxcd/gating-controller/tests/tools/oldest

go 1.26.0

require (
	github.com/fluxcd/helm-controller/api v1.3.0 // the oldest Flux that is supported
	github.com/fluxcd/image-automation-controller/api v0.41.2 // the oldest Flux that is supported
	github.com/fluxcd/image-reflector-controller/api v0.35.2 // the oldest Flux that is supported
	github.com/fluxcd/kustomize-controller/api v1.6.1 // the oldest Flux that is supported
	github.com/fluxcd/source-controller/api v1.6.2 // the oldest Flux that is supported
)

require (
	github.com/fluxcd/pkg/apis/acl v0.7.0 // indirect
	github.com/fluxcd/pkg/apis/kustomize v1.10.0 // indirect
	github.com/fluxcd/pkg/apis/meta v1.12.0 // indirect
	github.com/fxamacker/cbor/v2 v2.8.0 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/net v0.40.0 // indirect
	golang.org/x/text v0.25.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	k8s.io/apiextensions-apiserver v0.33.0 // indirect
	k8s.io/apimachinery v0.33.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
	k8s.io/utils v0.0.0-20250321185631-1f6e0b77f77e // indirect
	sigs.k8s.io/controller-runtime v0.21.0 // indirect
	sigs.k8s.io/json v0.0.0-20241014173422-cfa47c3a1cc8 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v4 v4.7.0 // indirect
	sigs.k8s.io/yaml v1.4.0 // indirect
)
