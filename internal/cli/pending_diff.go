package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// pendingItem is what pending prints for programs.
type pendingItem struct {
	explain.Waiting
	Diff *pendingDiff `json:"diff,omitempty"`
}

// pendingDiff says what would change if a Kustomization went on.
type pendingDiff struct {
	Changes []dryrun.Change `json:"changes"`
	// Cause says why nothing is known.
	Cause string `json:"cause,omitempty"`
	// url is that of the Git repository.
	url string
}

// isWhole returns whether all is known.
func (d *pendingDiff) isWhole() bool {
	for _, change := range d.Changes {
		if change.Action == dryrun.Unknown {
			return false
		}
	}
	return d.Cause == ""
}

// differ finds out what would change.
type differ struct {
	*objects
	dry  client.Client
	open dryrun.Opener
}

// differ returns one. The address is that of source-controller, as http://localhost:8080, empty if the API server passes on what is asked.
func (s *session) differ(o *objects, address string) (*differ, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	dry, err := client.New(o.config, client.Options{Scheme: scheme, Mapper: o.RESTMapper()})
	if err != nil {
		return nil, noCluster(err)
	}
	if address == "" {
		asks, err := discovery.NewDiscoveryClientForConfig(o.config)
		if err != nil {
			return nil, noCluster(err)
		}
		return &differ{o, dry, throughAPIServer(asks)}, nil
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--source-address %q: it must be an address such as http://localhost:8080", address)
	}
	return &differ{o, dry, directly(at)}, nil
}

// throughAPIServer opens artifacts through the proxy of the API server for Services.
func throughAPIServer(asks *discovery.DiscoveryClient) dryrun.Opener {
	return func(ctx context.Context, address string) (io.ReadCloser, error) {
		at, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		host := strings.Split(strings.TrimSuffix(at.Hostname(), "."), ".")
		if len(host) < 2 || net.ParseIP(at.Hostname()) != nil || len(host) > 2 && host[2] != "svc" {
			return nil, fmt.Errorf("the address of the artifact is %s, which is not a Service: name another with --source-address", address)
		}
		port := at.Port()
		if port == "" {
			port = "80"
		}
		service := fmt.Sprintf("%s:%s:%s", at.Scheme, host[0], port)
		body, err := asks.RESTClient().Get().AbsPath("/api/v1/namespaces", host[1], "services", service, "proxy", at.Path).Stream(ctx)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("you may not get services/proxy in namespace %q: ask for that, or run \"kubectl -n %s port-forward svc/%s 8080:%s\" and add --source-address http://localhost:8080",
				host[1], host[1], host[0], port)
		}
		return body, err
	}
}

// directly opens artifacts at another address.
func directly(at *url.URL) dryrun.Opener {
	return func(ctx context.Context, address string) (io.ReadCloser, error) {
		artifact, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath(artifact.Path).String(), http.NoBody)
		if err != nil {
			return nil, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			return nil, errors.Join(fmt.Errorf("%s: %s", request.URL, answer.Status), answer.Body.Close())
		}
		return answer.Body, nil
	}
}

// diff says what would change if an object went on, nil if that is not a Kustomization for which a revision waits.
func (d *differ) diff(ctx context.Context, obj *unstructured.Unstructured, w *explain.Waiting) *pendingDiff {
	if w.Reason != explain.NewRevision || w.Target.Kind != "Kustomization" {
		return nil
	}
	result := &pendingDiff{Changes: []dryrun.Change{}}
	changes, err := d.changes(ctx, obj, result)
	if err != nil {
		result.Cause = oneLine(err.Error())
	}
	result.Changes = append(result.Changes, changes...)
	return result
}

func (d *differ) changes(ctx context.Context, obj *unstructured.Unstructured, result *pendingDiff) ([]dryrun.Change, error) {
	if _, remote, _ := unstructured.NestedMap(obj.Object, "spec", "kubeConfig"); remote {
		return nil, errors.New("it applies to another cluster")
	}
	source := d.source(ctx, obj)
	if source == nil {
		return nil, errors.New("its source does not exist, or you may not read it")
	}
	result.url, _, _ = unstructured.NestedString(source.Object, "spec", "url")
	parent, err := os.MkdirTemp("", "kubectl-gate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(parent) //nolint:errcheck // what is left of a copy harms nobody
	dir := filepath.Join(parent, "artifact")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := dryrun.Fetch(ctx, source, dir, d.open); err != nil {
		return nil, err
	}
	built, err := dryrun.Build(ctx, d.dry, obj, dir)
	if err != nil {
		return nil, err
	}
	return dryrun.Diff(ctx, d.dry, obj, built)
}

// maxShown is how long a value of a field may be, in bytes.
const maxShown = 120

// printDiff says what would change.
func (s *session) printDiff(w *pendingItem) {
	fmt.Fprintf(s.Out, "\n%s/%s in %s: %s -> %s\n", w.Target.Kind, w.Target.Name, w.Target.Namespace, shortRevision(w.Revision, false), shortRevision(w.Waits, false))
	if hint := commits(w); hint != "" {
		fmt.Fprintf(s.Out, "  commits: %s\n", hint)
	}
	switch {
	case w.Diff.Cause != "":
		fmt.Fprintf(s.Out, "  %s: %s\n", s.paint(yellow, "unknown"), w.Diff.Cause)
	case len(w.Diff.Changes) == 0:
		fmt.Fprintln(s.Out, "  nothing would change")
	}
	for _, change := range w.Diff.Changes {
		text := s.paint(colorOf(change.Action), change.Action)
		if change.Cause != "" {
			text += ": " + oneLine(change.Cause)
		}
		fmt.Fprintf(s.Out, "  %s %s\n", change.Object, text)
		for _, field := range change.Fields {
			fmt.Fprintf(s.Out, "    %s: %s -> %s\n", field.Path, valueOf(field.Before), valueOf(field.After))
		}
	}
}

func colorOf(action string) string {
	switch action {
	case dryrun.Created:
		return green
	case dryrun.Deleted:
		return red
	}
	return yellow
}

// valueOf writes a value of a field in one line.
func valueOf(value any) string {
	if value == nil {
		return "(none)"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	text := oneLine(string(raw))
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

var commit = regexp.MustCompile(`sha1:([0-9a-f]{40})$`)

// commits says how to see the commits between two revisions of a Git repository.
func commits(w *pendingItem) string {
	before, after := commit.FindStringSubmatch(w.Revision), commit.FindStringSubmatch(w.Waits)
	if before == nil || after == nil {
		return ""
	}
	hint := fmt.Sprintf("git log --oneline %s..%s", before[1][:12], after[1][:12])
	if w.Diff.url != "" {
		hint += " in " + path.Base(strings.TrimSuffix(w.Diff.url, ".git"))
	}
	return hint
}
