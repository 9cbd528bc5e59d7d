package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/suggest"
)

// DiscoveryCall returns the call that reads a discovery document.
func DiscoveryCall(resource string) Call {
	return Call{verb: "get", resource: resource, name: resource, Role: "system:discovery"}
}

// NoCluster returns the error to print if the cluster cannot be reached.
func NoCluster(err error) error {
	var address *url.Error
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("there is no kubeconfig")
	}
	if errors.As(err, &address) {
		server := address.URL
		if parsed, err := url.Parse(server); err == nil {
			server = parsed.Host
		}
		err = fmt.Errorf("%s does not respond: %w", server, address.Err)
	}
	return fmt.Errorf("no cluster: %w; select one with --kubeconfig, --context or KUBECONFIG", err)
}

// Call is a call to the API server, for error messages.
type Call struct {
	verb, resource, namespace, name string
	// Role is a ClusterRole that permits the call.
	Role string
}

// NewCall returns a call to the API server.
func NewCall(verb, resource, namespace, name, role string) Call {
	return Call{verb, resource, namespace, name, role}
}

// explainedError is an error of the API server with a different message.
type explainedError struct {
	error
	cause error
}

func (w explainedError) Unwrap() error { return w.cause }

// VerbEmergency is the verb that permits a user to open Gates without the required approvals.
const VerbEmergency = "emergency"

// Denied returns a message about a verb that the user lacks.
func (a Call) Denied(verb string) string {
	in := ""
	if a.namespace != "" {
		in = fmt.Sprintf(" in namespace %q", a.namespace)
	}
	act := verb + " " + a.resource
	if verb == VerbEmergency {
		act = "open " + a.resource + " in an emergency"
	}
	return fmt.Sprintf("you may not %s%s: that needs the verb %q, which the ClusterRole %s has", act, in, verb, a.Role)
}

// Explain explains an error of the API server in terms of the command: which permission the user lacks, which kind is not installed, or
// that the cluster does not respond. It returns other errors unchanged.
func (a Call) Explain(err error) error {
	var network net.Error
	var address *url.Error
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && !IsPolicyDenial(err):
		return explainedError{errors.New(a.Denied(a.verb)), err}
	case apierrors.IsUnauthorized(err):
		return errors.New("you are not authenticated: log in again")
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && a.name == "", IsUnknownResource(err):
		return fmt.Errorf("this cluster has no %s: install gating-controller first, see docs/start/install.md", a.resource)
	case errors.As(err, &address), errors.As(err, &network):
		return NoCluster(err)
	}
	return err
}

// IsUnknownResource returns whether the API server does not serve a resource.
func IsUnknownResource(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// NotFoundError reports that an object does not exist.
type NotFoundError string

func (e NotFoundError) Error() string { return string(e) }

// notFound returns the error for a missing object. It suggests a similar name, or the command that lists all objects.
func notFound(ctx context.Context, c *Cluster, kind schema.GroupVersionKind, key client.ObjectKey, noun, all string) error {
	text := fmt.Sprintf("there is no %s %q in namespace %q", noun, key.Name, key.Namespace)
	names, err := ObjectNames(ctx, c, key.Namespace, kind)
	if near := nearest(key.Name, names); err == nil && near != "" {
		return NotFoundError(fmt.Sprintf("%s; did you mean %q?", text, near))
	}
	return NotFoundError(fmt.Sprintf("%s; %s shows all", text, all))
}

// nearest returns the most similar name, or otherwise a name that contains name. It is empty if there is none.
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

// IsPolicyDenial returns whether an admission policy has denied a request.
func IsPolicyDenial(err error) bool {
	return err != nil && strings.Contains(err.Error(), "denied request:")
}

// denied matches the text before the message of an admission policy.
var denied = regexp.MustCompile(`(?s)^.*denied request: (user \S+)?`)

// DenialMessage returns the message of an admission policy, rewritten to address the user.
func DenialMessage(err error) string {
	text := err.Error()
	if found := denied.FindStringSubmatchIndex(text); found != nil && found[2] >= 0 {
		return "you" + text[found[1]:]
	}
	return strings.TrimSpace(denied.ReplaceAllString(text, ""))
}
