package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyTimeout is long, because other tests may use all cores.
	readyTimeout = 2 * time.Minute
	// stopTimeout is more than the 30 seconds that kustomize-controller sleeps at most between two attempts to fetch an artifact.
	stopTimeout  = 45 * time.Second
	pollInterval = 50 * time.Millisecond
)

// program is the program that a Process runs.
type program struct {
	path      string
	args, env []string
	// ready is called until it returns nil. If it is nil, start does not wait.
	ready func(context.Context) error
}

// Process is a running program. The kernel kills it when this process ends for any reason.
type Process struct {
	// Log is the path of its output.
	Log string
	// Webhooks is the URL at which it accepts webhooks, empty if it does not.
	Webhooks string

	program program
	name    string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// start starts a program with its log in the folder dir, and waits until it is ready.
func (p program) start(ctx context.Context, dir string) (*Process, error) {
	name := filepath.Base(p.path)
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()                                                                                                               //nolint:errcheck // the process has its own descriptor
	process := &Process{program: p, name: name, Log: log.Name(), cmd: exec.Command(p.path, p.args...), exited: make(chan struct{})} //nolint:gosec,noctx // a program of ours that outlives ctx
	process.cmd.Env = append(os.Environ(), p.env...)
	process.cmd.Stdout, process.cmd.Stderr = log, log
	if err := fork(process.cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = process.cmd.Wait()
		close(process.exited)
	}()
	if err := process.becomesReady(ctx); err != nil {
		return nil, errors.Join(err, process.Stop())
	}
	return process, nil
}

// run starts a program and waits until its health endpoint is ready, if it has one.
func (c *ControlPlane) run(ctx context.Context, path, health string, env []string, args ...string) (*Process, error) {
	p := program{path: path, args: args, env: env}
	if health != "" {
		p.ready = answers("http://" + health + "/readyz")
	}
	return p.start(ctx, c.dir)
}

func (p *Process) becomesReady(ctx context.Context) error {
	if p.program.ready == nil {
		return nil
	}
	return Eventually(ctx, readyTimeout, p.name+" is ready", func() error {
		select {
		case <-p.exited:
			return Permanent(fmt.Errorf("it exited, see %s", p.Log))
		default:
		}
		return p.program.ready(ctx)
	})
}

// forks passes functions to the thread that starts all processes.
var forks = sync.OnceValue(func() chan<- func() {
	forks := make(chan func())
	go func() {
		runtime.LockOSThread()
		for fork := range forks {
			fork()
		}
	}()
	return forks
})

// fork starts a command that the kernel kills when this process ends. The kernel does so when the thread that started the command ends, so
// the command is started by a thread that lives as long as this process.
func fork(cmd *exec.Cmd) error {
	// Only this process handles Ctrl-C, and then stops the others in order.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	started := make(chan error)
	forks() <- func() { started <- cmd.Start() }
	return <-started
}

// answers returns an error unless a URL returns status 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
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
}

// Stop terminates the process and waits for its end.
func (p *Process) Stop() error { return p.signal(syscall.SIGTERM) }

// Signal sends a signal without waiting for its effect.
func (p *Process) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

// ID returns the process ID.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill kills the process without a graceful shutdown.
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
	// SIGQUIT makes the process log its goroutines, which shows what blocks it. The log is removed with the control plane.
	err := errors.Join(fmt.Errorf("%s did not stop", p.name), p.cmd.Process.Signal(syscall.SIGQUIT))
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		err = errors.Join(err, p.cmd.Process.Kill())
	}
	log, readErr := os.ReadFile(p.Log)
	if _, goroutines, ok := strings.Cut(string(log), "SIGQUIT: quit"); ok {
		log = []byte(goroutines[:min(len(goroutines), 64<<10)])
	}
	return errors.Join(err, readErr, fmt.Errorf("its goroutines: %s", log[max(0, len(log)-64<<10):]))
}
