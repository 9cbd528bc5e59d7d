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

// module is the product.
const module = api.Module

// platforms are those that a release has an image for.
var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// source is a commit that is built.
type source struct {
	// root is the folder of the repository.
	root string
	// version as a tag of an image and as the program tells it, such as v0.1.0.
	version string
	// commit is its hash, and at when it was made. Nothing that is built has another time.
	commit string
	at     time.Time
	// platforms are those of the image, repository where it is, as registry/name. Empty is that of config.
	platforms  []v1.Platform
	repository string
}

// isVersion are the versions that are tags of images, too.
var isVersion = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// sourceIn returns the commit that is checked out. A version that is not given is what git describe says, which ends with -dirty if
// something is not committed.
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
		return s, fmt.Errorf("version %q: it is the tag of the image, which has letters, digits, '.', '_' and '-' only", s.version)
	}
	return s, nil
}

func (s source) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", append([]string{"-C", s.root}, args...)...) //nolint:gosec // arguments of ours
	git.Env = inherited()                                                              // GIT_DIR would name another repository
	return output(git)
}

// build builds a program of the product, such as "." for the controller. The same commit, version and version of Go give the same
// file, wherever that happens.
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

// inherited is what a build takes of the environment: where things are. All else that the go command reads there could
// change what is built.
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

// checkout returns the source as it is committed, in a folder of its own: nothing that lies around in the working tree gets into a
// release, and nobody can change it meanwhile.
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

// output returns what a command prints, and what it complains about as the error.
func output(command *exec.Cmd) (string, error) {
	var complaint strings.Builder
	command.Stderr = &complaint
	raw, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args[:2], " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(raw)), nil
}
