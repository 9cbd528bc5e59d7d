package harness

import (
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomizing is held by Kustomize, because kyaml keeps the schemas in global variables.
var kustomizing sync.Mutex

// Kustomize returns what "kubectl kustomize" prints for a folder. It runs in this process, because each run of kubectl parses the schemas
// of Kubernetes, which takes half a second of CPU time.
func Kustomize(folder string) (string, error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return "", err
	}
	rendered, err := objects.AsYaml()
	return string(rendered), err
}
