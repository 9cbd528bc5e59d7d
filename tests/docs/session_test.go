package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/markdown"
)

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	failures int
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.Errorf("%v", args...) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures++
	r.Logf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// follow follows blocks in a folder, and returns their output and the number of failures.
func follow(t *testing.T, text string) (printed string, failures int) {
	t.Helper()
	r := &recorder{TB: t}
	s := Start(r, Reader{Folder: t.TempDir(), Words: strings.NewReplacer("shop", "world-1")})
	defer func() {
		failures = r.failures
		if caught := recover(); caught != nil && caught != any(r) {
			panic(caught)
		}
	}()
	return s.Follow(markdown.Blocks(strings.ReplaceAll(text, "~~~", "```"))...), 0
}

func TestSessionRunsPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page, prints string
		failures     int
	}{
		"a variable lasts":              {"~~~sh\ntoken=a\n~~~\n~~~sh\necho \"$token\"\n~~~\n~~~text\na\n~~~\n", "a\n", 0},
		"another text":                  {"~~~sh\necho a\n~~~\n~~~text\nb\n~~~\n", "a\n", 1},
		"a command fails":               {"~~~sh\nfalse\necho a\n~~~\n~~~sh\necho b\n~~~\n", "", 1},
		"an unknown variable":           {"~~~sh\necho $none\n~~~\n", "", 1},
		"a broken command":              {"~~~sh\nif\n~~~\n", "", 1},
		"a file":                        {"~~~yaml\n# a/b.yaml\nnamespace: shop\n~~~\n~~~sh\ncat a/b.yaml\n~~~\n", "# a/b.yaml\nnamespace: world-1\n", 0},
		"a block without a name":        {"~~~yaml\na: 1\n~~~\n~~~sh\nls\n~~~\n", "", 0},
		"a here-document":               {"~~~sh\ncat <<EOT\n$((1+1))\nEOT\n~~~\n", "2\n", 0},
		"standard input":                {"~~~sh\ncat\necho a\n~~~\n", "a\n", 0},
		"a console":                     {"~~~console\n$ echo shop\nshop\n$ echo b; echo c >&2; false\nb\nc\n~~~\n", "world-1\nb\nc\n", 0},
		"other times and widths":        {"~~~console\n$ echo 'a  2026-12-01T05:00:00Z   in 5m  v1.2.3'\na    2027-01-01 05:00 UTC     in 2h    v0.1.0\n~~~\n", "a  2026-12-01T05:00:00Z   in 5m  v1.2.3\n", 0},
		"another output":                {"~~~console\n$ kubectl apply -f a || echo a\nb\n~~~\n", "", 1},
		"a command that takes a moment": {"~~~console\n$ [ -e seen ] && echo a || touch seen\na\n~~~\n", "a\n", 0},
		"a change runs once":            {"~~~console\n$ : kubectl create; [ -e seen ] && echo a || touch seen\na\n~~~\n", "", 1},
		"no commands":                   {"~~~yaml\na: 1\n~~~\n", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed, failures := follow(t, c.page)
			if failures != c.failures || c.prints != "" && printed != c.prints {
				t.Errorf("got output %q and %d failures", printed, failures)
			}
		})
	}
}

func TestSessionHasCopyOfConfig(t *testing.T) {
	t.Parallel()
	s := Start(t, Reader{Kubeconfig: "/none", Env: []string{"GATING_URL=http://x"}, Path: []string{"/first"}})
	if _, err := os.Stat(filepath.Join(s.Folder, "config", "default", "kustomization.yaml")); err != nil {
		t.Error(err)
	}
	out, err := s.Run(`echo "$KUBECONFIG $GATING_URL ${PATH%%:*} $TZ"; pwd`)
	if want := "/none http://x /first UTC\n" + s.Folder + "\n"; err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := s.Bash(t.Context(), "false | true\necho a"); err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestVolatileTextIsNormalized(t *testing.T) {
	t.Parallel()
	const page = "NAME   UNTIL                     WHY\nweb    2026-12-01 05:00:00 UTC   main@sha1:0123456789abcdef, v1.2.3, 3m ago, 6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55  \n\n"
	const prints = "NAME                 UNTIL                  WHY\nweb                  2027-01-02T06:00:00Z   main@sha1:fedcba9876543210, (devel), 2h1m ago, 00000000-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	if Stable(page) != Stable(prints) {
		t.Errorf("%q is not %q", Stable(page), Stable(prints))
	}
	if Stable(page) == Stable(strings.Replace(prints, "web ", "db ", 1)) {
		t.Error("texts with different names are equal")
	}
}
