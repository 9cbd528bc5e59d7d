package harness

import (
	"context"
	"strings"
)

// StartControllerManager starts the named controllers of kube-controller-manager. It does not wait until they are ready.
func (c *ControlPlane) StartControllerManager(ctx context.Context, controllers ...string) (*Process, error) {
	return c.run(ctx, tool("kube-controller-manager"), "", nil,
		"--kubeconfig="+c.Kubeconfig, "--controllers="+strings.Join(controllers, ","), "--leader-elect=false", "--secure-port=0")
}
