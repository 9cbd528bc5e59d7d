package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// restarted are the parts of the control plane that envtest has started and that run
// anew since.
type restarted map[string]*Process

// KillAPIServer kills the kube-apiserver. It is there again after the function that
// is returned, with the same arguments.
func (c *ControlPlane) KillAPIServer() (func(context.Context) error, error) {
	address, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, err
	}
	return c.kill("kube-apiserver", "--secure-port="+address.Port())
}

// KillEtcd kills etcd. It is there again after the function that is returned, with the
// same data.
func (c *ControlPlane) KillEtcd() (func(context.Context) error, error) {
	address := c.env.ControlPlane.Etcd.URL
	if address == nil {
		return nil, errors.New("etcd has no address")
	}
	return c.kill("etcd", "--listen-client-urls="+address.String())
}

func (c *ControlPlane) kill(name, argument string) (func(context.Context) error, error) {
	pid, err := processWith(argument)
	if err != nil {
		return nil, err
	}
	proc := fmt.Sprintf("/proc/%d/", pid)
	commandLine, err := os.ReadFile(proc + "cmdline") //nolint:gosec // a process of ours
	if err != nil {
		return nil, err
	}
	program, err := os.Readlink(proc + "exe")
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, err
	}
	err = Eventually(context.Background(), stopTimeout, name+" has ended", func() error {
		if other, err := processWith(argument); err == nil {
			return fmt.Errorf("process %d is there", other)
		}
		return nil
	})
	args := strings.Split(strings.TrimSuffix(string(commandLine), "\x00"), "\x00")
	return func(ctx context.Context) error { return c.startAgain(ctx, name, program, args) }, err
}

// startAgain starts a program and waits until the API server is ready.
func (c *ControlPlane) startAgain(ctx context.Context, name, program string, args []string) error {
	log, err := os.CreateTemp(c.dir, name+"-*.log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	p := &Process{name: name, Log: log.Name(), cmd: &exec.Cmd{Path: program, Args: args}, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	c.restarted[name] = p
	return Eventually(ctx, readyTimeout, "the kube-apiserver is ready", func() error {
		select {
		case <-p.exited:
			return Permanent(fmt.Errorf("%s exited, see %s", name, p.Log))
		default:
		}
		_, err := c.ready.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}
