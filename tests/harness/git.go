package harness

import (
	"context"
	"fmt"
	"net/http/cgi" //nolint:gosec // git http-backend is a CGI program, and the server is on loopback
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GitServer serves bare Git repositories on loopback through git http-backend.
type GitServer struct {
	server *httptest.Server
	dir    string
}

// StartGitServer starts a server without repositories. It stores repositories in the folder dir.
func StartGitServer(ctx context.Context, dir string) (*GitServer, error) {
	path, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	return &GitServer{server: httptest.NewServer(backend), dir: dir}, nil
}

// Stop stops the server.
func (s *GitServer) Stop() { s.server.Close() }

// URL returns the URL of a repository.
func (s *GitServer) URL(repository string) string { return s.server.URL + "/" + repository + ".git" }

// Commit creates a commit with one file as the head of the branch main, creates the repository if it is missing, and returns the hash.
// Without a parent, it is a force-push that drops the previous history.
func (s *GitServer) Commit(ctx context.Context, repository, parent, file, content string) (string, error) {
	dir := filepath.Join(s.dir, repository+".git")
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		if _, err := s.git(ctx, "", "init", "--bare", "--quiet", "--initial-branch=main", dir); err != nil {
			return "", err
		}
	}
	in := func(stdin string, args ...string) (string, error) {
		return s.git(ctx, stdin, append([]string{"-C", dir}, args...)...)
	}
	blob, err := in(content, "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	tree, err := in(fmt.Sprintf("100644 blob %s\t%s\n", blob, file), "mktree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-m", content, tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	commit, err := in("", args...)
	if err != nil {
		return "", err
	}
	_, err = in("", "update-ref", "refs/heads/main", commit)
	return commit, err
}

// Branch sets a branch of a repository to a commit. Without a commit, it deletes the branch.
func (s *GitServer) Branch(ctx context.Context, repository, branch, commit string) error {
	args := []string{"-C", filepath.Join(s.dir, repository+".git"), "update-ref", "refs/heads/" + branch, commit}
	if commit == "" {
		args = []string{"-C", filepath.Join(s.dir, repository+".git"), "update-ref", "-d", "refs/heads/" + branch}
	}
	_, err := s.git(ctx, "", args...)
	return err
}

// Prune removes all objects that are not reachable from a branch.
func (s *GitServer) Prune(ctx context.Context, repository string) error {
	_, err := s.git(ctx, "", "-C", filepath.Join(s.dir, repository+".git"), "-c", "gc.reflogExpire=now", "gc", "--quiet", "--prune=now")
	return err
}

func (s *GitServer) git(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // of a test
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
