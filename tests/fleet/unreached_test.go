package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

const freeze = `./each-cluster.sh freeze fleet -n flux-system --for 12h --reason "incident 77"`

func TestClusterWithoutAPIServerIsReportedAndFrozenLater(t *testing.T) {
	w := newWorld(t)
	w.gates()
	restart, err := other.KillAPIServer()
	w.must(err)
	s := w.sh("ls clusters | " + freeze)
	if restartErr := restart(context.WithoutCancel(t.Context())); restartErr != nil {
		t.Fatal(restartErr)
	}
	if want := strings.TrimSpace(markdown.BlockOf(t, page, "text", "NOT done")); s.code != 3 || s.last() != want {
		t.Errorf("got %+v, want %q", s, want)
	}
	w.has(s, "eu-canary: flux-system/fleet: closed", "eu-1: error: ")
	w.closedBy(canary, "admin")
	w.opened(other)

	if s := w.sh("echo eu-1 | " + freeze); s.code != 0 || s.last() != "Done in all 1 clusters." {
		t.Errorf("got %+v", s)
	}
	w.closedBy(other, "admin")
}

func TestUnresponsiveClusterDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	w.gates()
	resume, err := other.PauseAPIServer()
	w.must(err)
	t.Cleanup(func() { _ = resume() })
	s := w.sh("ls clusters | "+freeze, "TIMEOUT=1s", "TRIES=2")
	w.must(resume())
	if s.code != 3 || s.last() != "Done in 1 of 2 clusters. NOT done in: eu-1" {
		t.Errorf("got %+v", s)
	}
	w.closedBy(canary, "admin")
}

// If the API server has accepted the request, but the Gate does not close, that is not a success.
func TestClusterWithoutControllerIsReported(t *testing.T) {
	w := newWorld(t)
	w.gates()
	w.must(other.gating.Stop())
	s := w.sh("ls clusters | " + freeze)
	w.must(other.startGating(context.WithoutCancel(t.Context())))
	if s.code != 3 || s.last() != "Done in 1 of 2 clusters. NOT done in: eu-1" {
		t.Errorf("got %+v", s)
	}
	w.has(s, "the controller has not handled it")
	w.closedBy(other, "admin")
}

// receivers creates a token in each cluster, and returns lines for each-webhook.sh.
func (w *world) receivers(tokens map[*member]string) (lines string) {
	w.Helper()
	for _, m := range members {
		must(m.Kubectl(w.Context(), "-n", namespace, "create", "secret", "generic", "fleet-webhook", "--from-literal=token="+tokens[m]))
	}
	w.gates()
	for _, m := range members {
		must(m.Kubectl(w.Context(), "-n", namespace, "wait", "--for=condition=ready", "gatereceiver/fleet", "--timeout=1m"))
		path := must(m.Kubectl(w.Context(), "-n", namespace, "get", "gatereceiver", "fleet", "-o=jsonpath={.status.webhookPath}"))
		lines += fmt.Sprintf("%s %s%s\n", m.name, m.gating.Webhooks, path)
	}
	return lines
}

func TestWebhookRefusedByOneClusterFails(t *testing.T) {
	w := newWorld(t)
	lines := w.receivers(map[*member]string{canary: "one-0123456789abcdef", other: "two-0123456789abcdef"})
	w.write("receivers.txt", lines)
	const send = `./each-webhook.sh 'a "quoted" reason' < receivers.txt`

	s := w.sh(send, "TOKEN=one-0123456789abcdef")
	if s.code != 3 || s.last() != "Taken by 1 of 2 clusters. NOT taken by: eu-1" {
		t.Errorf("a wrong token: %+v", s)
	}
	w.has(s, "eu-canary: 200 close requested", "eu-1: 404")
	w.closedBy(canary, "GateReceiver flux-system/fleet")
	if reason := w.in[canary].ReadGate("fleet").LatestRequest().Message; reason != `a "quoted" reason` {
		t.Errorf("the reason is %q", reason)
	}
	w.opened(other)

	w.write("receivers.txt", strings.TrimSuffix(lines, "\n")+" two-0123456789abcdef") // without a final line break
	if s := w.sh(send, "TOKEN=one-0123456789abcdef"); s.code != 0 || s.last() != "Taken by all 2 clusters." {
		t.Errorf("a separate token: %+v", s)
	}
	w.closedBy(other, "GateReceiver flux-system/fleet")

	w.must(other.gating.Stop())
	s = w.sh(send, "TOKEN=one-0123456789abcdef", "TRIES=2", "TIMEOUT=5")
	w.must(other.startGating(context.WithoutCancel(t.Context())))
	if s.code != 3 || s.last() != "Taken by 1 of 2 clusters. NOT taken by: eu-1" {
		t.Errorf("no cluster is reachable: %+v", s)
	}
}

// The first response is lost.
const losing = `#!/bin/sh
PATH=${PATH#"$PWD/bin:"}
[ -e lost ] && exec curl "$@"
touch lost
curl "$@" > /dev/null
printf 000
exit 28
`

func TestWebhookWithLostResponseIsAcceptedOnce(t *testing.T) {
	w := newWorld(t)
	const token = "one-0123456789abcdef"
	canaryAlone, _, _ := strings.Cut(w.receivers(map[*member]string{canary: token, other: token}), "\n")
	w.write("receivers.txt", canaryAlone)
	w.program("curl", losing)
	// Other tests run the real curl and openssl, if they are installed.
	s := w.sh("PATH=$PWD/bin:"+filepath.Join(programs, "standins")+":$PATH ./each-webhook.sh again < receivers.txt", "TOKEN="+token)
	if s.code != 0 || s.last() != "Taken by all 1 clusters." {
		t.Errorf("got %+v", s)
	}
	w.has(s, "eu-canary: 409")
	w.closedBy(canary, "GateReceiver flux-system/fleet")
}

// program writes a program to bin.
func (w *world) program(name, text string) {
	w.Helper()
	w.write(filepath.Join("bin", name), text)
	w.must(os.Chmod(filepath.Join(w.dir, "bin", name), 0o700))
}

// The substitute for kubectl counts its calls per context, and exits with the code in the name of the context.
const kubectl = `#!/bin/sh
for last; do before=${context-} context=$last; [ "$before" = --context ] && break; done
echo once >> "$COUNT/${context#exit/}"
echo "said  by \\ $context"
exit "${context#exit/}"
`

func TestEachClusterReportsAllResults(t *testing.T) {
	for name, c := range map[string]struct {
		clusters, out, last string
		code                int
		tries               map[string]int
	}{
		"all":              {clusters: "exit/0", out: "exit/0: said  by \\ exit/0\n", last: "Done in all 1 clusters.", tries: map[string]int{"0": 1}},
		"nothing was done": {clusters: "exit/2\n", last: "Done in 0 of 1 clusters. NOT done in: exit/2", code: 2, tries: map[string]int{"2": 3}},
		"not all":          {clusters: "exit/0\n\nexit/3\nexit/124\n", last: "Done in 1 of 3 clusters. NOT done in: exit/3 exit/124", code: 3, tries: map[string]int{"3": 1, "124": 1}},
		"no plug-in":       {clusters: "exit/1\n", last: "Done in 0 of 1 clusters. NOT done in: exit/1", code: 2},
		"no clusters":      {clusters: "\n", last: "NOT done: standard input names no cluster", code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{TB: t, dir: t.TempDir()}
			w.write("clusters.txt", c.clusters)
			w.program("kubectl", kubectl)
			s := w.sh("PATH=$PWD/bin:$PATH COUNT=$PWD " + filepath.Join(harness.Root(), "config", "samples", "fleet", "each-cluster.sh") + " list < clusters.txt")
			if s.code != c.code || s.last() != c.last || c.out != "" && s.out != c.out {
				t.Errorf("got %+v", s)
			}
			for context, want := range c.tries {
				if got := strings.Count(string(must(os.ReadFile(filepath.Join(w.dir, context)))), "once"); got != want {
					t.Errorf("%d tries in %s, want %d", got, context, want)
				}
			}
		})
	}
}
