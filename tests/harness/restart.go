package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// KillAPIServer kills the kube-apiserver. The returned function starts it again with the same arguments.
func (c *ControlPlane) KillAPIServer() (func(context.Context) error, error) {
	return c.restart(&c.apiServer), c.apiServer.Kill()
}

// KillEtcd kills etcd. The returned function starts it again with the same data.
func (c *ControlPlane) KillEtcd() (func(context.Context) error, error) {
	return c.restart(&c.etcd), c.etcd.Kill()
}

// restart starts a program again and waits until the API server is ready.
func (c *ControlPlane) restart(part **Process) func(context.Context) error {
	return func(ctx context.Context) error {
		process, err := (*part).program.start(ctx, c.dir)
		if err != nil {
			return err
		}
		*part = process
		return c.apiServer.becomesReady(ctx)
	}
}

// PauseAPIServer suspends the kube-apiserver, which looks like a network partition: connections stay open without responses. The returned
// function resumes it.
func (c *ControlPlane) PauseAPIServer() (func() error, error) {
	paused := c.apiServer
	if err := paused.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	resume := func() error { return paused.Signal(syscall.SIGCONT) }
	return resume, Eventually(context.Background(), readyTimeout, "the kube-apiserver is stopped", func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", paused.cmd.Process.Pid))
		if err == nil && !strings.Contains(string(status), "\nState:\tT") {
			err = errors.New("it runs")
		}
		return err
	})
}
