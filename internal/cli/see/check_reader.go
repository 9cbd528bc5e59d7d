package see

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// checkReader reads the installation for check. If a resource cannot be read, it records that and continues.
type checkReader struct {
	cluster   *kube.Cluster
	clock     clock.PassiveClock
	now       time.Time
	discovery *discovery.DiscoveryClient
	// installed contains the kinds that are installed in the cluster, by Kind.group.
	installed map[string]*schema.GroupVersionKind
	// resources contains the names of their resources, such as gitrepositories.source.toolkit.fluxcd.io, by the same keys.
	resources map[string]string
	deployed  []check.Controller
	// useKinds registers the kinds of the controllers. kindsKnown is true if --suspend-kinds is set.
	useKinds   func([]check.Controller) error
	kindsKnown bool
	// all is true if the user is permitted to list the Gates of all namespaces.
	all    bool
	unread []unread
}

// unread is a resource that could not be read.
type unread struct{ verb, resource, why string }

// connect reads the version, the kinds and the time of the cluster.
func (r *checkReader) connect(ctx context.Context) (times check.ServerTime, err error) {
	config := rest.CopyConfig(r.cluster.RESTConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			before := r.clock.Now()
			response, err := next.RoundTrip(req)
			if err == nil && times.Before.IsZero() {
				times.Before, times.After = before, r.clock.Now()
				times.Reported, _ = http.ParseTime(response.Header.Get("Date"))
			}
			return response, err
		})
	})
	if r.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return times, kube.NoCluster(err)
	}
	if _, err := r.discovery.RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return times, kube.DiscoveryCall("/version").Explain(err)
	}
	lists, err := r.discovery.ServerPreferredResources() //nolint:contextcheck // it takes no context
	if err != nil && len(lists) == 0 {
		return times, kube.DiscoveryCall("/apis").Explain(err)
	}
	r.installed, r.resources = map[string]*schema.GroupVersionKind{}, map[string]string{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			gvk := gv.WithKind(resource.Kind)
			if key := gvk.GroupKind().String(); r.installed[key] == nil && !strings.Contains(resource.Name, "/") {
				r.installed[key] = &gvk
				r.resources[key] = schema.GroupResource{Group: gv.Group, Resource: resource.Name}.String()
			}
		}
	}
	return times, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// document returns the published schema of our API version, nil if the API server does not serve this version.
func (r *checkReader) document(ctx context.Context) ([]byte, error) {
	raw, err := r.discovery.RESTClient().Get().AbsPath("/openapi/v3/apis/" + v1alpha1.GroupVersion.String()).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return raw, kube.DiscoveryCall("/openapi/v3").Explain(err)
}

// record records that a resource could not be read if err is not nil. It returns whether the resource was read.
func (r *checkReader) record(verb, resource string, err error) bool {
	if err == nil {
		return true
	}
	why := ""
	if !apierrors.IsForbidden(err) {
		why = term.OneLine(err.Error())
	}
	if u := (unread{verb, resource, why}); !slices.Contains(r.unread, u) {
		r.unread = append(r.unread, u)
	}
	return false
}

// list lists the objects of a kind. If they cannot be read, it records that and returns false.
func (r *checkReader) list(ctx context.Context, gvk schema.GroupVersionKind, resource string, opts ...client.ListOption) ([]unstructured.Unstructured, bool) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	err := r.cluster.List(ctx, list, opts...)
	return list.Items, r.record("list", resource, err)
}

func (r *checkReader) controllers(ctx context.Context) ([]check.Controller, bool) {
	found, err := kube.Controllers(ctx, r.cluster)
	return found, r.record("list", "deployments.apps", err)
}

// leases returns the Leases in the namespaces of the controllers, or of all namespaces if there are no controllers.
func (r *checkReader) leases(ctx context.Context, controllers []check.Controller) (leases []unstructured.Unstructured) {
	var done []string
	if len(controllers) == 0 {
		controllers = []check.Controller{{}}
	}
	for _, c := range controllers {
		if slices.Contains(done, c.Namespace) {
			continue
		}
		done = append(done, c.Namespace)
		items, _ := r.list(ctx, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases.coordination.k8s.io", client.InNamespace(c.Namespace))
		leases = append(leases, items...)
	}
	return leases
}

// admission returns the policies and their bindings, and false if some of them cannot be read.
func (r *checkReader) admission(ctx context.Context) (check.Admission, bool) {
	var all check.Admission
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		key := kind + ".admissionregistration.k8s.io"
		if r.installed[key] == nil {
			continue
		}
		items, ok := r.list(ctx, *r.installed[key], r.resources[key])
		if !ok {
			return nil, false
		}
		all = append(all, items...)
	}
	return all, true
}

// gates returns the Gates that the user is permitted to read: all Gates, or the Gates in the namespace.
func (r *checkReader) gates(ctx context.Context, defined bool) (gates []v1alpha1.Gate) {
	if !defined {
		return nil
	}
	for _, r.all = range []bool{true, false} {
		gates = nil
		err := r.cluster.EachGate(ctx, kube.Scope{All: r.all}, func(g *v1alpha1.Gate) { gates = append(gates, *g) })
		if err == nil {
			return gates
		}
		what := "gates." + api.Group
		if r.all {
			what += " of all namespaces"
		}
		r.unread = append(r.unread, unread{verb: "list", resource: what})
	}
	return nil
}

// scope returns the list option for the namespace to check, or for all namespaces if r.all is set.
func (r *checkReader) scope() client.ListOption {
	if r.all {
		return client.InNamespace("")
	}
	return client.InNamespace(r.cluster.Namespace)
}

func (r *checkReader) exceptions(ctx context.Context) []*v1alpha1.GateException {
	namespace := r.cluster.Namespace
	if r.all {
		namespace = ""
	}
	found, err := r.cluster.Exceptions(ctx, []string{namespace})
	r.record("list", "gateexceptions."+api.Group, err)
	return found
}

func (r *checkReader) calendars(ctx context.Context, gates []v1alpha1.Gate) timetable.Calendars {
	var all []*v1alpha1.Gate
	for i := range gates {
		all = append(all, &gates[i])
	}
	found, err := kube.Calendars(ctx, r.cluster, r.now, all...)
	r.record("get", "configmaps", err)
	return found
}

// kinds returns the kinds of the cluster.
func (r *checkReader) kinds() (kinds []string) {
	for kind := range r.installed {
		kinds = append(kinds, kind)
	}
	return kinds
}

// objects returns the names, labels and annotations of the objects that Gates can hold.
func (r *checkReader) objects(ctx context.Context) (objects []*unstructured.Unstructured) {
	for _, a := range target.All() {
		key := a.GroupKind().String()
		if r.installed[key] != nil {
			objects = append(objects, r.metadata(ctx, key, r.scope())...)
		}
	}
	return objects
}

// metadata returns the names, labels and annotations of the objects of an installed kind. key is Kind.group.
func (r *checkReader) metadata(ctx context.Context, key string, in client.ListOption) (objects []*unstructured.Unstructured) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(*r.installed[key])
	if !r.record("list", r.resources[key], r.cluster.List(ctx, list, in)) {
		return nil
	}
	for i := range list.Items {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(*r.installed[key])
		obj.SetNamespace(list.Items[i].Namespace)
		obj.SetName(list.Items[i].Name)
		obj.SetLabels(list.Items[i].Labels)
		obj.SetAnnotations(list.Items[i].Annotations)
		objects = append(objects, obj)
	}
	return objects
}

// unsupported returns the objects of kinds that Gates refer to but no controller can hold. It returns none if the kinds of the
// controllers are unknown.
func (r *checkReader) unsupported(ctx context.Context, gates []v1alpha1.Gate) (objects []*unstructured.Unstructured) {
	if !r.kindsKnown && len(r.deployed) == 0 {
		return nil
	}
	read := map[string]bool{}
	for i := range gates {
		for _, ref := range gates[i].Spec.Targets {
			if _, err := target.For(ref.APIVersion, ref.Kind); err == nil {
				continue
			}
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			namespace := cmp.Or(ref.Namespace, gates[i].Namespace)
			if namespace == v1alpha1.AnyName || ref.NamespaceSelector != nil {
				namespace = metav1.NamespaceAll
			}
			for key, gvk := range r.installed {
				if gvk.Kind == ref.Kind && (ref.APIVersion == "" || gvk.Group == group) && !read[key+" "+namespace] {
					read[key+" "+namespace] = true
					objects = append(objects, r.metadata(ctx, key, client.InNamespace(namespace))...)
				}
			}
		}
	}
	return objects
}

// known returns objects by name. Objects that apply Gates or the controller include their specs.
func (r *checkReader) known(ctx context.Context, gates []v1alpha1.Gate, objects []*unstructured.Unstructured, installs []applier.Reference) applier.Objects {
	known := applier.Objects{}
	for _, obj := range objects {
		known[applier.Reference{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}] = obj
	}
	appliers := slices.Clone(installs)
	for i := range gates {
		appliers = append(appliers, applier.Appliers(gates[i].Labels)...)
	}
	for i, a := range appliers {
		adapter, err := target.For("", a.Kind)
		if err != nil || slices.Contains(appliers[:i], a) || r.installed[adapter.GroupKind().String()] == nil {
			continue
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(*r.installed[adapter.GroupKind().String()])
		err = r.cluster.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if r.record("get", r.resources[adapter.GroupKind().String()], err) {
			known[a] = obj
		}
	}
	return known
}

// denied returns the permissions that commands need but the user does not have.
func (r *checkReader) denied(ctx context.Context) (denied []check.Right) {
	for _, right := range check.Rights {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": map[string]any{
				"namespace": r.cluster.Namespace, "verb": right.Verb, "group": right.Group, "resource": right.Resource,
			}},
		}}
		if !r.record("create", "selfsubjectaccessreviews.authorization.k8s.io", r.cluster.Create(ctx, review)) {
			return nil
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			denied = append(denied, right)
		}
	}
	return denied
}

// unreadFindings returns a finding for each resource that could not be read.
func (r *checkReader) unreadFindings() (findings []check.Finding) {
	for _, verb := range []string{"get", "list", "create"} {
		var resources []string
		for _, u := range r.unread {
			switch {
			case u.verb == verb && u.why == "":
				resources = append(resources, u.resource)
			case u.verb == verb:
				findings = append(findings, check.Finding{Severity: check.Warning, Object: u.resource, Message: "it cannot be read, so the checks that need it are skipped: " + u.why})
			}
		}
		if len(resources) > 0 {
			findings = append(findings, check.Finding{
				Severity: check.Note, Object: "you", Message: fmt.Sprintf("you may not %s %s, so the checks that need it are skipped", verb, strings.Join(resources, ", ")),
				Action: "run the command as a user with these permissions",
			})
		}
	}
	return findings
}
