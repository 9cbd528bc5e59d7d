package see

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
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/fields"
)

// pendingItem is an item of the output of pending.
type pendingItem struct {
	explain.Waiting
	Diff *pendingDiff `json:"diff,omitempty"`
}

// pendingDiff contains the changes that a Kustomization would make if it were released, or the users of a pinned source if the pin moved.
type pendingDiff struct {
	found
	// Users are the objects that apply the pinned source of a GatedSource.
	Users []userDiff `json:"users,omitempty"`
	// url is the URL of the Git repository.
	url string
}

// userDiff contains the changes that a user of a pinned source would make.
type userDiff struct {
	Target explain.Ref `json:"target"`
	// Revision is the revision in effect, empty if there is none.
	Revision string `json:"revision,omitempty"`
	found
}

// found contains changes, or the reason why they are unknown.
type found struct {
	Changes []dryrun.Change `json:"changes"`
	// Cause is the reason why the changes are unknown.
	Cause string `json:"cause,omitempty"`
}

// isWhole returns whether all changes are known.
func (d *pendingDiff) isWhole() bool {
	return d.found.isWhole() && !slices.ContainsFunc(d.Users, func(u userDiff) bool { return !u.isWhole() })
}

func (f found) isWhole() bool {
	return f.Cause == "" && !slices.ContainsFunc(f.Changes, func(c dryrun.Change) bool { return c.Action == dryrun.Unknown })
}

// differ computes changes with dry runs.
type differ struct {
	objects *kube.Objects
	dry     client.Client
	open    dryrun.Opener
	// namespace is the namespace of the users of pinned sources, empty for all namespaces.
	namespace string
	// users maps pinned sources to their users. It is nil until the users have been read.
	users map[explain.Ref][]*unstructured.Unstructured
}

// newDiffer returns a differ that fetches artifacts from --source-address, or through the API server if that is empty.
func newDiffer(o *kube.Objects, f *pendingFlags) (*differ, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	dry, err := client.New(o.Cluster.RESTConfig, client.Options{Scheme: scheme, Mapper: o.Cluster.RESTMapper()})
	if err != nil {
		return nil, kube.NoCluster(err)
	}
	d := &differ{objects: o, dry: dry, namespace: o.Cluster.Namespace}
	if f.namespaces {
		d.namespace = ""
	}
	if f.sourceAddress == "" {
		dc, err := discovery.NewDiscoveryClientForConfig(o.Cluster.RESTConfig)
		if err != nil {
			return nil, kube.NoCluster(err)
		}
		d.open = throughAPIServer(dc)
		return d, nil
	}
	at, err := url.Parse(f.sourceAddress)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--source-address %q: it must be an address such as http://localhost:8080", f.sourceAddress)
	}
	d.open = directly(at)
	return d, nil
}

// throughAPIServer opens artifacts through the proxy of the API server for Services.
func throughAPIServer(dc *discovery.DiscoveryClient) dryrun.Opener {
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
		body, err := dc.RESTClient().Get().AbsPath("/api/v1/namespaces", host[1], "services", service, "proxy", at.Path).Stream(ctx)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("you may not get services/proxy in namespace %q: get that permission, or run \"kubectl -n %s port-forward svc/%s 8080:%s\" and add --source-address http://localhost:8080",
				host[1], host[1], host[0], port)
		}
		return body, err
	}
}

// directly opens artifacts at an address other than the one in their URL.
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
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusOK {
			return nil, errors.Join(fmt.Errorf("%s: %s", request.URL, response.Status), response.Body.Close())
		}
		return response.Body, nil
	}
}

// diff returns the changes that would occur if a Kustomization were released, or if the pin of a GatedSource moved. It returns nil for
// other objects, and if no new revision is waiting.
func (d *differ) diff(ctx context.Context, obj *unstructured.Unstructured, w *explain.Waiting) *pendingDiff {
	if w.Reason != explain.NewRevision {
		return nil
	}
	switch w.Target.Kind {
	case kustomizev1.KustomizationKind:
		source := readSource(ctx, d.objects, obj)
		return &pendingDiff{found: d.find(ctx, obj, source), url: gitURL(source)}
	case v1alpha1.GatedSourceKind:
		return d.promotes(ctx, obj, w)
	}
	return nil
}

var (
	repository     = &sourcev1.GitRepository{}
	urlPath        = fields.Path(repository, &repository.Spec.URL)
	kustomization  = &kustomizev1.Kustomization{}
	kubeConfigPath = fields.Path(kustomization, &kustomization.Spec.KubeConfig)
)

// gitURL returns the URL of a source, empty if it has none.
func gitURL(source *unstructured.Unstructured) string {
	if source == nil {
		return ""
	}
	at, _, _ := unstructured.NestedString(source.Object, urlPath...)
	return at
}

// find returns the changes that a Kustomization would make with the artifact of a source.
func (d *differ) find(ctx context.Context, ks, source *unstructured.Unstructured) found {
	changes, err := d.changes(ctx, ks, source)
	result := found{Changes: append([]dryrun.Change{}, changes...)}
	if err != nil {
		result.Cause = term.OneLine(err.Error())
	}
	return result
}

// noSource is the cause for a source that cannot be read.
const noSource = "its source does not exist, or you may not read it"

func (d *differ) changes(ctx context.Context, obj, source *unstructured.Unstructured) ([]dryrun.Change, error) {
	if _, remote, _ := unstructured.NestedMap(obj.Object, kubeConfigPath...); remote {
		return nil, errors.New("it applies to another cluster")
	}
	if source == nil {
		return nil, errors.New(noSource)
	}
	parent, err := os.MkdirTemp("", "kubectl-gate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(parent) //nolint:errcheck // leftovers of a copy are harmless
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

// maxValueLength bounds the length of a printed value, in bytes.
const maxValueLength = 120

// printDiff prints the changes of an item.
func printDiff(t *term.Terminal, w *pendingItem) {
	fmt.Fprintf(t.Out, "\n%s/%s in %s: %s -> %s\n", w.Target.Kind, w.Target.Name, w.Target.Namespace, shortRevision(w.Revision, false), shortRevision(w.Waits, false))
	if hint := commits(w); hint != "" {
		fmt.Fprintf(t.Out, "  commits: %s\n", hint)
	}
	if w.Target.Kind != v1alpha1.GatedSourceKind || w.Diff.Cause != "" {
		printFound(t, w.Diff.found, "  ")
		return
	}
	for _, u := range w.Diff.Users {
		at := ""
		if u.Revision != "" {
			at = ", at " + shortRevision(u.Revision, false)
		}
		fmt.Fprintf(t.Out, "  %s/%s in %s%s\n", u.Target.Kind, u.Target.Name, u.Target.Namespace, at)
		printFound(t, u.found, "    ")
	}
	if len(w.Diff.Users) == 0 {
		fmt.Fprintln(t.Out, "  nothing would change: no Kustomization or HelmRelease here refers to the pinned source")
	}
}

// printFound prints the changes, indented.
func printFound(t *term.Terminal, f found, indent string) {
	switch {
	case f.Cause != "":
		fmt.Fprintf(t.Out, "%s%s: %s\n", indent, t.Paint(term.Yellow, "unknown"), f.Cause)
	case len(f.Changes) == 0:
		fmt.Fprintln(t.Out, indent+"nothing would change")
	}
	for _, change := range f.Changes {
		text := t.Paint(actionColor(change.Action), change.Action)
		if change.Cause != "" {
			text += ": " + term.OneLine(change.Cause)
		}
		fmt.Fprintf(t.Out, "%s%s %s\n", indent, change.Object, text)
		for _, field := range change.Fields {
			fmt.Fprintf(t.Out, "%s  %s: %s -> %s\n", indent, field.Path, formatValue(field.Before), formatValue(field.After))
		}
	}
}

func actionColor(action string) string {
	switch action {
	case dryrun.Created:
		return term.Green
	case dryrun.Deleted:
		return term.Red
	}
	return term.Yellow
}

// formatValue formats the value of a field on one line. It truncates long values.
func formatValue(value any) string {
	if value == nil {
		return "(none)"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	text := term.OneLine(string(raw))
	if len(text) > maxValueLength {
		return strings.ToValidUTF8(text[:maxValueLength], "") + "..."
	}
	return text
}

var commit = regexp.MustCompile(`sha1:([0-9a-f]{40})$`)

// commits returns the command that lists the commits between two revisions of a Git repository, empty for other revisions.
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
