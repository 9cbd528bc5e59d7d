package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// role is the environment variable with the role of a process that TestKilledTestRunLeavesNoProcesses starts.
const role = "HARNESS_ROLE"

// The first thread never ends, so goroutines must not run on it.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "go":
		err = asGo()
	case "tests":
		err = asTests()
	}
	fmt.Println(err)
	os.Exit(1)
}

// asGo acts as the go command: it runs tests and waits.
func asGo() error {
	tests := exec.Command("/proc/self/exe")
	tests.Env = append(os.Environ(), role+"=tests")
	tests.Stdout = os.Stdout
	return tests.Run()
}

// asTests starts a control plane on a thread that ends, and prints the process IDs.
func asTests() error {
	endWithGo()
	var c *ControlPlane
	var err error
	thread := make(chan int)
	go func() {
		// The thread ends because the goroutine ends without unlocking it.
		runtime.LockOSThread()
		c, err = StartControlPlane()
		thread <- syscall.Gettid()
	}()
	path := fmt.Sprintf("/proc/self/task/%d", <-thread)
	if err != nil {
		return err
	}
	if err := Eventually(context.Background(), stopTimeout, "the thread has ended", func() error {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return nil
		}
		return errors.New("it is there")
	}); err != nil {
		return err
	}
	if err := c.answers(context.Background()); err != nil {
		return err
	}
	fmt.Println(os.Getpid(), c.etcd.cmd.Process.Pid, c.apiServer.cmd.Process.Pid)
	select {}
}

func TestKilledTestRunLeavesNoProcesses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "go")
	if err := os.Symlink(os.Args[0], path); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path)
	command.Env = append(os.Environ(), role+"=go", "TMPDIR="+dir)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fork(command); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var tests, etcd, apiServer int
	if _, err := fmt.Sscan(line, &tests, &etcd, &apiServer); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	for pid, name := range map[int]string{tests: "exe", etcd: "etcd", apiServer: "kube-apiserver"} {
		if got := running(pid); got != name {
			t.Fatalf("process %d runs %q, not %s", pid, got, name)
		}
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	for _, pid := range []int{tests, etcd, apiServer} {
		if err := Eventually(t.Context(), stopTimeout, "all have ended", func() error {
			if name := running(pid); name != "" {
				return fmt.Errorf("%s runs", name)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// running returns the name of the program that a process runs, empty if it has ended.
func running(pid int) string {
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // missing, or empty for a zombie
	program, _, _ := strings.Cut(string(command), "\x00")
	if program == "" {
		return ""
	}
	return filepath.Base(program)
}
