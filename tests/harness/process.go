package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// readyTimeout is generous: two cores may be busy with other tests.
	readyTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
	pollInterval = 50 * time.Millisecond
)

// Process is a controller that runs as a process of its own.
type Process struct {
	// Log is the path of what it printed.
	Log string
	// Webhooks is the URL where it takes them, if it does.
	Webhooks string

	name   string
	cmd    *exec.Cmd
	exited chan struct{}
}

// startProcess starts a program and waits until its health endpoint is ready, if
// there is one.
func startProcess(ctx context.Context, dir, health string, env []string, program string, args ...string) (*Process, error) {
	name := filepath.Base(program)
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()                                                                                            //nolint:errcheck // the process has its own descriptor
	p := &Process{name: name, Log: log.Name(), cmd: exec.Command(program, args...), exited: make(chan struct{})} //nolint:gosec,noctx // a program of ours that outlives ctx
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// Ctrl-C is for us: we end the processes in order. If we are killed they end, too.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	if health == "" {
		return p, nil
	}
	err = Eventually(ctx, readyTimeout, name+" is ready", func() error {
		select {
		case <-p.exited:
			return Permanent(fmt.Errorf("it exited, see %s", p.Log))
		default:
		}
		return get(ctx, "http://"+health+"/readyz")
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// Stop ends the process and waits for its end.
func (p *Process) Stop() error { return p.signal(syscall.SIGTERM) }

// Signal sends a signal and waits for nothing.
func (p *Process) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill ends the process without a chance to tidy up.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

func (p *Process) signal(signal syscall.Signal) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	// What it waits for is in its log then.
	err := errors.Join(fmt.Errorf("%s did not stop, see %s", p.name, p.Log), p.cmd.Process.Signal(syscall.SIGQUIT))
	select {
	case <-p.exited:
		return err
	case <-time.After(stopTimeout):
		return errors.Join(err, p.cmd.Process.Kill())
	}
}

// freeAddress returns an address on loopback that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
