package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// latest is the version of this tree, and previous that of the tag before it, or of this tree if there is no tag yet.
	latest, previous = "v0.1.0-node", "v0.1.0-previous"
	pause            = "pause:1"
	repository       = "fluxcd/gating-controller"
)

// buildImages writes the images as OCI layouts, named by their versions, and the program of pause.
func buildImages(ctx context.Context, folder string) error {
	release := filepath.Join(folder, "release")
	if err := program(ctx, filepath.Join(harness.Root(), "release"), "go", "build", "-o", release, "."); err != nil {
		return err
	}
	if err := program(ctx, filepath.Join(harness.Root(), "tests", "node"), "go", "build", "-o", filepath.Join(folder, "pause"), "./pause"); err != nil {
		return err
	}
	if err := checkout(ctx, folder); err != nil {
		return err
	}
	for _, version := range []string{latest, previous} {
		root := rootOf(version, folder)
		if err := program(ctx, root, release, "-root="+root, "-version="+version, "-platform=linux/"+runtime.GOARCH, "-out="+filepath.Join(folder, version), "image"); err != nil {
			return err
		}
	}
	return nil
}

// checkout checks out the tag before this commit, if any.
func checkout(ctx context.Context, folder string) error {
	tag, err := exec.CommandContext(ctx, "git", "-C", harness.Root(), "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^").Output()
	if err != nil {
		return nil //nolint:nilerr // there is no tag
	}
	return program(ctx, harness.Root(), "git", "clone", "--quiet", "--branch="+strings.TrimSpace(string(tag)), harness.Root(), filepath.Join(folder, "before"))
}

// rootOf returns the repository for the build of a version.
func rootOf(version, folder string) string {
	before := filepath.Join(folder, "before")
	if _, err := os.Stat(before); err != nil || version == latest {
		return harness.Root()
	}
	return before
}

func program(ctx context.Context, folder, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// serveImages starts a registry with the output of buildImages, and returns its address.
func serveImages(folder string) (string, error) {
	registry := harness.StartRegistry()
	for _, version := range []string{latest, previous} {
		if err := registry.PushLayout(repository, version, filepath.Join(folder, version, "image")); err != nil {
			return "", err
		}
	}
	name, tag, _ := strings.Cut(pause, ":")
	return registry.Address(), registry.PushProgram("library/"+name, tag, filepath.Join(folder, "pause"))
}
