package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fluxcd/gating-controller/api"
)

// module is the path of the main module.
const module = api.Module

// platforms are the platforms of the image.
var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// source is a commit to build.
type source struct {
	// root is the folder of the repository.
	root string
	// version is the tag of the image and the output of --version, such as v0.1.0.
	version string
	// commit is the hash of the commit, and at is its time. All timestamps in the output have that time.
	commit string
	at     time.Time
	// platforms are the platforms of the image. repository is its registry and name, empty for that of config.
	platforms  []v1.Platform
	repository string
}

// isVersion matches versions that can be the tag of an image.
var isVersion = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// sourceIn returns the commit that is checked out. If version is empty, it is the output of git describe, which ends with -dirty if there
// are uncommitted changes.
func sourceIn(ctx context.Context, root, version string) (source, error) {
	s := source{root: root, version: version, platforms: platforms}
	described, err := s.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	commit, seconds, _ := strings.Cut(described, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, err
	}
	s.commit, s.at = commit, time.Unix(at, 0).UTC()
	if s.version == "" {
		if s.version, err = s.git(ctx, "describe", "--tags", "--always", "--dirty"); err != nil {
			return s, err
		}
	}
	if !isVersion.MatchString(s.version) {
		return s, fmt.Errorf("version %q: must be the tag of an image: only letters, digits, '.', '_' and '-'", s.version)
	}
	return s, nil
}

func (s source) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", append([]string{"-C", s.root}, args...)...) //nolint:gosec // arguments of ours
	git.Env = inherited()                                                              // without GIT_DIR, which could name another repository
	return output(git)
}

// build builds a program of the main module, such as "." for the controller. The output is reproducible: it depends only on the commit, the
// version and the version of Go.
func (s source) build(ctx context.Context, program string, platform v1.Platform, to string) error {
	fmt.Fprintf(os.Stderr, "Building %s %s for %s ...\n", path.Join(module, program), s.version, platform)
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", //nolint:gosec // checked by sourceIn
		"-ldflags", "-s -w -X "+module+"/internal/version.release="+s.version, "-o", to, program)
	build.Dir = s.root
	build.Env = append(inherited(), "CGO_ENABLED=0", "GOENV=off", "GOWORK=off", "GO111MODULE=on", "GOFIPS140=off",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	_, err = output(build)
	return err
}

// inherited returns the environment variables that a build inherits: locations and proxies. Other variables that the go command reads
// could change the output.
func inherited() []string {
	var all []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "GOTOOLCHAIN", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	} {
		if value, ok := os.LookupEnv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// checkout extracts the commit into a separate folder, so that uncommitted and later changes of the work tree do not get into a release.
func (s source) checkout(ctx context.Context, folder string) (source, error) {
	archive := filepath.Join(folder, "source.tar")
	if _, err := s.git(ctx, "archive", "--output="+archive, s.commit); err != nil {
		return s, err
	}
	root := filepath.Join(folder, "source")
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // others may read what is public
		return s, err
	}
	if _, err := output(exec.CommandContext(ctx, "tar", "-xf", archive, "-C", root)); err != nil { //nolint:gosec // made above
		return s, err
	}
	s.root = root
	return s, nil
}

// output returns the standard output of a command. Its error includes the standard error.
func output(command *exec.Cmd) (string, error) {
	var complaint strings.Builder
	command.Stderr = &complaint
	raw, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args[:2], " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(raw)), nil
}
