package harness

import (
	"context"
	"path/filepath"
	"strings"
)

// StartControllerManager starts some controllers of kube-controller-manager, by
// name. It does not wait until they are ready.
func (c *ControlPlane) StartControllerManager(ctx context.Context, controllers ...string) (*Process, error) {
	return startProcess(ctx, c.dir, "", nil, filepath.Join(Tools(), "bin", "kube-controller-manager"),
		"--kubeconfig="+c.Kubeconfig, "--controllers="+strings.Join(controllers, ","), "--leader-elect=false", "--secure-port=0")
}
