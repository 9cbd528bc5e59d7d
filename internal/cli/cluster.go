package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/suggest"
)

// cluster is a cluster as a command sees it.
type cluster struct {
	client.WithWatch
	// namespace is the one that the user means.
	namespace string
	config    *rest.Config
	// role is the one that the command needs, for errors.
	role string
	// warn says on standard error what is left out.
	warn func(format string, args ...any)
}

// begin connects to the cluster and reads the clock, as most commands do first.
func (s *session) begin() (c *cluster, now time.Time, err error) {
	if now, err = s.now(); err != nil {
		return nil, now, err
	}
	c, err = s.cluster()
	return c, now, err
}

// cluster connects to the cluster that the flags name. Nothing is asked yet.
func (s *session) cluster() (*cluster, error) {
	namespace, _, err := s.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, noCluster(err)
	}
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return nil, noCluster(err)
	}
	config.QPS, config.Burst = -1, -1 // the API server shares itself out fairly; an emergency does not wait here
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	mapper, err := s.config.ToRESTMapper()
	if err != nil {
		return nil, noCluster(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme(), Mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{ourKinds(), mapper}}})
	if err != nil {
		return nil, noCluster(err)
	}
	return &cluster{WithWatch: c, namespace: namespace, config: config, role: "gate-viewer", warn: s.warn}, nil
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// ourKinds maps our kinds, and those of Kubernetes that commands ask for, without asking the API server what it has.
func ourKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{v1alpha1.GateKind, v1alpha1.GateExceptionKind, v1alpha1.GatedSourceKind, v1alpha1.GateReceiverKind, v1alpha1.CalendarFeedKind} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, meta.RESTScopeRoot)
	return mapper
}

// noCluster says that there is no cluster to ask.
func noCluster(err error) error {
	var address *url.Error
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("there is no kubeconfig")
	}
	if errors.As(err, &address) {
		server := address.URL
		if parsed, err := url.Parse(server); err == nil {
			server = parsed.Host
		}
		err = fmt.Errorf("%s does not answer: %w", server, address.Err)
	}
	return fmt.Errorf("no cluster: %w; name one with --kubeconfig, --context or KUBECONFIG", err)
}

// asked is what somebody asks of the API server, for errors.
type asked struct {
	verb, resource, namespace, name string
	// role is one that would allow it.
	role string
}

// worded is an error of the API server in other words.
type worded struct {
	error
	cause error
}

func (w worded) Unwrap() error { return w.cause }

// verbEmergency is the verb that permits a user to open Gates without the required approvals.
const verbEmergency = "emergency"

// refused returns the message that the user lacks a verb.
func (a asked) refused(verb string) string {
	in := ""
	if a.namespace != "" {
		in = fmt.Sprintf(" in namespace %q", a.namespace)
	}
	act := verb + " " + a.resource
	if verb == verbEmergency {
		act = "open " + a.resource + " in an emergency"
	}
	return fmt.Sprintf("you may not %s%s: that needs the verb %q, which the ClusterRole %s has", act, in, verb, a.role)
}

// explain says what an error of the API server means for who has asked.
func (a asked) explain(err error) error {
	var network net.Error
	var address *url.Error
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && !isPolicy(err):
		return worded{errors.New(a.refused(a.verb)), err}
	case apierrors.IsUnauthorized(err):
		return errors.New("the API server does not know you: log in again")
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && a.name == "", isUnknownResource(err):
		return fmt.Errorf("this cluster has no %s: install gating-controller first, see docs/start/install.md", a.resource)
	case errors.As(err, &address), errors.As(err, &network):
		return noCluster(err)
	}
	return err
}

func isUnknownResource(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// scope says which Gates a command is about.
type scope struct {
	names         []string
	all           bool
	selector      string
	statusOfReady string
}

// eachGate calls a function with each Gate of a scope, a page at a time: nobody needs all of them at once.
func (c *cluster) eachGate(ctx context.Context, sc scope, do func(*v1alpha1.Gate)) error {
	namespace := c.namespace
	if sc.all {
		namespace = ""
	}
	opts := &client.ListOptions{Namespace: namespace, Limit: 500, Raw: &metav1.ListOptions{LabelSelector: sc.selector}}
	matches, err := statusSelector(sc.statusOfReady)
	if err != nil {
		return err
	}
	for {
		list := &v1alpha1.GateList{}
		if err := c.List(ctx, list, opts); err != nil {
			return asked{"list", "gates", namespace, "", c.role}.explain(err)
		}
		for i := range list.Items {
			if matches(&list.Items[i]) {
				do(&list.Items[i])
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return nil
		}
	}
}

// gates returns the Gates of a scope: those that it names, or all.
func (c *cluster) gates(ctx context.Context, sc scope) (gates []*v1alpha1.Gate, err error) {
	if len(sc.names) == 0 {
		err := c.eachGate(ctx, sc, func(g *v1alpha1.Gate) { gates = append(gates, g) })
		return gates, err
	}
	for _, name := range sc.names {
		g, err := c.gate(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(gates, func(other *v1alpha1.Gate) bool { return other.UID == g.UID }) {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// gate returns the Gate that an argument names.
func (c *cluster) gate(ctx context.Context, arg string) (*v1alpha1.Gate, error) {
	_, key, err := parseName(arg, c.namespace, gateName)
	if err != nil {
		return nil, err
	}
	return c.gateAt(ctx, key)
}

// gateAt returns a Gate.
func (c *cluster) gateAt(ctx context.Context, key client.ObjectKey) (*v1alpha1.Gate, error) {
	g := &v1alpha1.Gate{}
	err := c.Get(ctx, key, g)
	if apierrors.IsNotFound(err) && !isUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind), key, "gate", "kubectl gate list -A")
	}
	return g, asked{"get", "gates", key.Namespace, key.Name, c.role}.explain(err)
}

// unknownError reports that an object does not exist.
type unknownError string

func (e unknownError) Error() string { return string(e) }

// notFound says that an object does not exist, and which one may be meant, or else which command shows all.
func notFound(ctx context.Context, c *cluster, kind schema.GroupVersionKind, key client.ObjectKey, noun, all string) error {
	text := fmt.Sprintf("there is no %s %q in namespace %q", noun, key.Name, key.Namespace)
	names, err := objectNames(ctx, c, key.Namespace, kind)
	if near := nearest(key.Name, names); err == nil && near != "" {
		return unknownError(fmt.Sprintf("%s; did you mean %q?", text, near))
	}
	return unknownError(fmt.Sprintf("%s; %s shows all", text, all))
}

// objectNames returns the names of the objects of a kind in a namespace.
func objectNames(ctx context.Context, c *cluster, namespace string, kind schema.GroupVersionKind) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	err = c.List(ctx, list, client.InNamespace(namespace))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

// nearest returns the name that somebody may mean, empty if none is near.
func nearest(name string, names []string) string {
	best, least := "", 1+max(2, len(name)/3)
	sorted := slices.Sorted(slices.Values(names))
	for _, other := range sorted {
		if d := suggest.Distance(name, other); d < least {
			best, least = other, d
		}
	}
	if i := slices.IndexFunc(sorted, func(other string) bool { return len(name) > 2 && strings.Contains(other, name) }); best == "" && i >= 0 {
		return sorted[i]
	}
	return best
}
