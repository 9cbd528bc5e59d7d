package v1alpha1

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// GateReceiverKind is the kind of a GateReceiver.
	GateReceiverKind = "GateReceiver"

	// ReceiverWebhookPath is the prefix of the paths of all webhooks, as for a
	// Receiver of notification-controller.
	ReceiverWebhookPath = "/hook/"

	// ReceiverTokenKey is the key of the token in the Secret of a GateReceiver or
	// a CalendarFeed, as for a Receiver of notification-controller.
	ReceiverTokenKey = "token"

	// ReceiverPreviousTokenKey is the key of a second token in that Secret, which
	// also works. For a rotation, it has the previous token until all clients use
	// the new one.
	ReceiverPreviousTokenKey = "previousToken"

	// ReceiverSigningTokenKey is the key of the signing token in the Secret of a
	// GateReceiver. If it is missing, signatures are verified with the token.
	ReceiverSigningTokenKey = "signingToken"

	// ReceiverPreviousSigningTokenKey is the key of a second signing token in that
	// Secret, which also works. For a rotation, it has the previous signing token
	// until the sender uses the new one.
	ReceiverPreviousSigningTokenKey = "previousSigningToken"

	// DefaultReceiverInterval is the default of spec.interval of a GateReceiver
	// and a CalendarFeed.
	DefaultReceiverInterval = 10 * time.Minute

	// DefaultSignatureHeader is the default of spec.signature.header.
	DefaultSignatureHeader = "X-Signature"

	// DefaultSignaturePayload is the default of spec.signature.payload, if
	// spec.signature.timestampHeader is set.
	DefaultSignaturePayload = "{timestamp}:{body}"

	// SignatureHex is the encoding of a signature in upper or lower case
	// hexadecimal digits. It is the default.
	SignatureHex = "hex"

	// SignatureBase64 is the encoding of a signature in base64 with padding (RFC
	// 4648, section 4).
	SignatureBase64 = "base64"

	// DefaultOIDCAudience is the default of the audience of an OIDCProvider.
	DefaultOIDCAudience = "gating-controller"
)

// The types of a GateReceiver. Types that notification-controller also has
// work in the same way.
const (
	// GenericReceiver accepts all webhooks. Only the secret path proves that the
	// sender may make a request, so such a webhook can close Gates, but not open
	// them.
	GenericReceiver = "generic"
	// GenericHMACReceiver accepts webhooks with an HMAC of the body in a header,
	// as specified in spec.signature. By default, the header is X-Signature, with
	// the value sha256=<hex>, sha512=<hex> or sha1=<hex>.
	GenericHMACReceiver = "generic-hmac"
	// GenericOIDCReceiver accepts webhooks with an OpenID Connect token from one
	// of spec.oidcProviders in the header Authorization: Bearer.
	GenericOIDCReceiver = "generic-oidc"
	// GitHubReceiver accepts webhooks of GitHub with a valid signature in
	// X-Hub-Signature-256.
	GitHubReceiver = "github"
	// GitLabReceiver accepts webhooks of GitLab with the token in X-Gitlab-Token,
	// with a Standard Webhooks signature by the signing token, or with both if the
	// Secret has both tokens.
	GitLabReceiver = "gitlab"
	// FluxEventReceiver accepts events from Providers of type generic and
	// generic-hmac of notification-controller. An event without a signature can
	// close Gates, but not open them. If the Secret has a signing token, events
	// without a signature are refused.
	FluxEventReceiver = "flux-event"
	// StandardWebhooksReceiver accepts webhooks that are signed as specified by
	// Standard Webhooks, with the headers webhook-id, webhook-timestamp and
	// webhook-signature.
	StandardWebhooksReceiver = "standard-webhooks"
	// AlertmanagerReceiver accepts webhooks of Alertmanager with the token in the
	// header Authorization: Bearer.
	AlertmanagerReceiver = "alertmanager"
)

// GateReceiverSpec specifies how webhooks are verified, and which requests
// they make on which Gates.
// +kubebuilder:validation:XValidation:rule="self.type != 'generic-oidc' || has(self.oidcProviders) && size(self.oidcProviders) > 0",message="generic-oidc receivers must define at least one oidcProvider"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-oidc' || !has(self.oidcProviders) || size(self.oidcProviders) == 0",message="oidcProviders can only be set when type is generic-oidc"
// +kubebuilder:validation:XValidation:rule="self.type != 'generic-oidc' || !has(self.secretRef)",message="secretRef cannot be set when type is generic-oidc"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-oidc' || has(self.secretRef)",message="secretRef is required when type is not generic-oidc"
// +kubebuilder:validation:XValidation:rule="!has(self.events) || size(self.events) == 0 || self.type in ['github', 'gitlab', 'standard-webhooks', 'flux-event', 'alertmanager']",message="events can only be set when type is github, gitlab, standard-webhooks, flux-event or alertmanager: use filter"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-hmac' || !has(self.signature)",message="signature can only be set when type is generic-hmac"
// +kubebuilder:validation:XValidation:rule="has(self.action) != has(self.actionExpr)",message="exactly one of action and actionExpr must be set"
// +kubebuilder:validation:XValidation:rule="self.type != 'generic' || has(self.action) && self.action == 'close'",fieldPath=".type",message="type generic can only close, because the path is its only secret: set action: close without actionExpr, or use a type that verifies its sender, such as generic-hmac or generic-oidc"
// +kubebuilder:validation:XValidation:rule="!has(self.targetsExpr) || has(self.targets)",message="targetsExpr requires targets, which limit its results: to allow any Kustomization, set targets: [{kind: Kustomization, name: '*'}]"
// +kubebuilder:validation:XValidation:rule="has(self.targetsExpr) || !has(self.targets) || self.targets.all(t, t.name != '*')",fieldPath=".targets",message="the name * requires targetsExpr, because a request must name its targets"
type GateReceiverSpec struct {
	// type determines how webhooks are verified: generic, generic-hmac,
	// generic-oidc, github, gitlab, standard-webhooks, flux-event or alertmanager.
	// With generic, and with flux-event without a signature, only the secret path
	// proves that the sender may make a request. Such webhooks can close Gates,
	// but not open them.
	// +kubebuilder:validation:Enum=generic;generic-hmac;generic-oidc;github;gitlab;standard-webhooks;flux-event;alertmanager
	// +required
	Type string `json:"type"`

	// interval is the interval at which the controller reads the Secret again. At
	// least 1s, such as 1m. Defaults to 10m. A new token may need this time until
	// it works. A token that is removed from the Secret stops working immediately.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// secretRef refers to a Secret in the same namespace. Its key token has the
	// token, which the path is derived from. Its key signingToken has the key for
	// signatures and defaults to token. If the Secret has both, a webhook needs
	// both. Leading and trailing white space is ignored. The optional keys
	// previousToken and previousSigningToken have tokens that also work. Required
	// for all types except generic-oidc, for which it is not allowed.
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 253 && self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretRef.name must be the name of a Secret, such as webhook-token: lower case letters, digits, dashes and dots"
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// signature specifies how the sender signs webhooks. Only for type
	// generic-hmac. If omitted, the header X-Signature has the algorithm sha256,
	// sha512 or sha1, an equals sign, and the HMAC of the body in hexadecimal
	// digits.
	// +optional
	Signature *ReceiverSignature `json:"signature,omitempty"`

	// oidcProviders lists the issuers whose OpenID Connect tokens are accepted. A
	// token is verified by the provider whose issuerURL equals the claim iss of
	// the token. At most 10, with 65,536 characters together. Required for type
	// generic-oidc, and not allowed for other types.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.map(p, size(p.issuerURL) + (has(p.audience) ? size(p.audience) : 0) + (has(p.variables) ? p.variables.map(v, size(v.name) + size(v.expression)).sum() : 0) + p.validations.map(v, size(v.expression) + size(v.message)).sum()).sum() <= 65536",message="all oidcProviders can have at most 65,536 characters together: use fewer or shorter variables and validations, or another GateReceiver"
	// +listType=map
	// +listMapKey=issuerURL
	// +optional
	OIDCProviders []OIDCProvider `json:"oidcProviders,omitempty"`

	// events lists the accepted events, ignoring case. Webhooks with other events
	// are refused. If omitted, all events are accepted. The event of a webhook is
	// X-GitHub-Event (github), X-Gitlab-Event (gitlab), type in the body
	// (standard-webhooks), the reason of the event (flux-event), or the status
	// firing or resolved (alertmanager). At most 100. Not allowed for other types:
	// use filter.
	//
	// Example: [ping, workflow_run]
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Events []string `json:"events,omitempty"`

	// gateRefs lists the Gates on which webhooks make requests, in the same
	// namespace. From 1 to 10.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	GateRefs []GateReference `json:"gateRefs"`

	// filter is a CEL expression of type bool that selects webhooks. If it is
	// false, the webhook makes no request, and the response is 200. If omitted,
	// all webhooks are selected. The variables are req, the body, which is empty
	// unless it is a JSON object; headers, with names in lower case and without
	// the values of secret headers; and, for generic-oidc, claims, the claims of
	// the token.
	//
	// Example: req.workflow_run.head_branch == 'main'
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Filter string `json:"filter,omitempty"`

	// action is the requested action: open or close. Exactly one of action and
	// actionExpr must be set. Must be close for type generic.
	// +optional
	Action RequestAction `json:"action,omitempty"`

	// actionExpr is a CEL expression of type string that returns the requested
	// action: 'open', 'close', or '' for no request. The variables are the same
	// as for filter. Exactly one of action and actionExpr must be set. Not
	// allowed for type generic.
	//
	// Example: req.status == 'firing' ? 'close' : 'open'
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ActionExpr string `json:"actionExpr,omitempty"`

	// targets limit the requests to these targets of the Gates. At most 16. With
	// targetsExpr, they are the targets that it can return, and a name can be *.
	// If omitted, requests are for the whole Gates.
	//
	// Example: [{kind: Kustomization, name: apps}]
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Targets []ReceiverTarget `json:"targets,omitempty"`

	// targetsExpr is a CEL expression of type list(string) that returns the
	// targets of a webhook, each as KIND/NAME, or as KIND/NAMESPACE/NAME for
	// another namespace. All of them must be among targets. If the list is empty,
	// the webhook makes no request. The variables are the same as for filter.
	// Requires targets.
	//
	// Example: "['Kustomization/' + req.app]"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	TargetsExpr string `json:"targetsExpr,omitempty"`

	// window is the duration of the requests, from 1s to 8784h (366 days), such as
	// 30m. An open request does not last longer than spec.window of the Gate, but
	// a close request can. Defaults to spec.window of the Gate.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8784h')",message="window must be a duration from 1s to 8784h (366 days), such as 1h"
	// +optional
	Window *Duration `json:"window,omitempty"`

	// suspend makes the controller respond to verified webhooks with 503, so that
	// senders can try again. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReceiverTarget is a target that the requests of a GateReceiver are limited
// to.
type ReceiverTarget struct {
	// kind is the kind of the target, such as Kustomization.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be a kind, such as Kustomization"
	// +required
	Kind string `json:"kind"`

	// name is the name of the target, or * for all targets of the kind.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="name must be the name of an object, such as apps, or *"
	// +required
	Name string `json:"name"`

	// namespace is the namespace of the target. Defaults to the namespace of the
	// GateReceiver.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, such as apps"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ReceiverSignature specifies the header, the format and the signed text of a
// signature.
// +kubebuilder:validation:XValidation:rule="has(self.algorithm) || !has(self.prefix)",message="prefix can only be set with algorithm: without it, a signature begins with the name of its algorithm, such as sha256="
// +kubebuilder:validation:XValidation:rule="has(self.timestampHeader) || !has(self.payload)",message="payload can only be set with timestampHeader: without it, the body alone is signed"
// +kubebuilder:validation:XValidation:rule="!has(self.timestampHeader) || self.timestampHeader.lowerAscii() != (has(self.header) ? self.header.lowerAscii() : 'x-signature')",message="timestampHeader must differ from header"
type ReceiverSignature struct {
	// header is the header that has the signature, such as X-Slack-Signature. A
	// webhook must have this header exactly once. Its value is not available in
	// CEL expressions. Defaults to X-Signature.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="header must be the name of a header, such as X-Signature: letters, digits and dashes"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Header string `json:"header,omitempty"`

	// encoding is the encoding of the HMAC: hex, or base64 with padding. Defaults
	// to hex.
	// +kubebuilder:validation:Enum=hex;base64
	// +optional
	Encoding string `json:"encoding,omitempty"`

	// algorithm is the hash algorithm of the HMAC: sha256, sha512 or sha1. If
	// omitted, a signature begins with the name of its algorithm, such as sha256=.
	// +kubebuilder:validation:Enum=sha256;sha512;sha1
	// +optional
	Algorithm string `json:"algorithm,omitempty"`

	// prefix is the text before each signature, such as v1=. With a prefix, the
	// header can have up to 8 signatures, separated by commas without spaces, of
	// which at least one must be valid. At most 16 characters. Requires algorithm.
	// If omitted, the header has only the signature.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -+./0-~-]+$')",message="prefix must have ASCII characters without commas, such as v1="
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// timestampHeader is the header that has the time of the signature, in seconds
	// since the Unix epoch. The time is part of the signed text. It must differ
	// from the time of the controller by less than 5m, and the same webhook is
	// accepted only once. If omitted, only the body is signed.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="timestampHeader must be the name of a header, such as X-Timestamp: letters, digits and dashes"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimestampHeader string `json:"timestampHeader,omitempty"`

	// payload is the signed text: {timestamp}, a separator without digits, and
	// {body} at the end. Other text may precede {timestamp}. At most 64
	// characters. Requires timestampHeader. Defaults to {timestamp}:{body}.
	//
	// Example: v0:{timestamp}:{body}
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -z|~]*[{]timestamp[}][ -/:-z|~]+[{]body[}]$')",message="payload must be {timestamp}, a separator without digits, and {body}, such as v0:{timestamp}:{body}"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Payload string `json:"payload,omitempty"`
}

// GetHeader returns the header that has the signature. It returns the default
// for a nil signature.
func (in *ReceiverSignature) GetHeader() string {
	if in == nil || in.Header == "" {
		return DefaultSignatureHeader
	}
	return in.Header
}

// GetEncoding returns the encoding of the signature.
func (in *ReceiverSignature) GetEncoding() string {
	if in.Encoding == "" {
		return SignatureHex
	}
	return in.Encoding
}

// GetPayload returns the signed text for a signature with a timestampHeader.
func (in *ReceiverSignature) GetPayload() string {
	if in.Payload == "" {
		return DefaultSignaturePayload
	}
	return in.Payload
}

// +structType=atomic

// OIDCProvider is an issuer of OpenID Connect tokens, as in a Receiver of
// notification-controller.
type OIDCProvider struct {
	// issuerURL is the URL of the issuer, such as
	// https://token.actions.githubusercontent.com. The keys of the issuer are
	// discovered there. It must equal the claim iss of the tokens.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('#') && !self.contains('?') && !self.contains('@')",message="issuerURL must be an https URL, such as https://token.actions.githubusercontent.com, without user, query and fragment"
	// +required
	IssuerURL string `json:"issuerURL"`

	// audience is a value that the claim aud of a token must contain. Defaults to
	// gating-controller.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Audience string `json:"audience,omitempty"`

	// variables are CEL expressions over claims and previous variables. They are
	// evaluated in order, and are available as vars.<name>. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Variables []OIDCVariable `json:"variables,omitempty"`

	// validations are CEL expressions of type bool over claims and vars. All of
	// them must be true. From 1 to 32. At least one is required, because an issuer
	// issues tokens to all of its users.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Validations []OIDCValidation `json:"validations"`
}

// GetAudience returns the audience that a token must have.
func (in *OIDCProvider) GetAudience() string {
	if in.Audience != "" {
		return in.Audience
	}
	return DefaultOIDCAudience
}

// OIDCVariable is a named CEL expression over the claims of a token.
type OIDCVariable struct {
	// name is the name of the variable, a CEL identifier such as workflow.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="name must be a CEL identifier, such as workflow: letters, digits and underscores, not beginning with a digit"
	// +required
	Name string `json:"name"`

	// expression is the CEL expression, such as
	// claims.job_workflow_ref.split('@')[0].
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression"`
}

// OIDCValidation is a CEL expression that must be true for a token.
type OIDCValidation struct {
	// expression is the CEL expression of type bool, such as claims.ref ==
	// 'refs/heads/main'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression"`

	// message is logged by the controller if the expression is false. It is not
	// sent to the sender, because it may reveal what the token lacks. At most 1024
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
}

// GateReceiverStatus is the observed state of a GateReceiver.
type GateReceiverStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// webhookPath is the path for webhooks. It is /hook/ followed by the
	// hexadecimal SHA-256 of the token, the name and the namespace. If the Secret
	// has only a signing token, that is used instead. The path is secret, except
	// for type generic-oidc, which has no token. Empty if the Secret has no token.
	// +optional
	WebhookPath string `json:"webhookPath,omitempty"`

	// conditions of the GateReceiver: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateReceiver receives webhooks that request to open or close Gates.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gtrcv,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Suspended",type="boolean",priority=1,JSONPath=".spec.suspend"
type GateReceiver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec GateReceiverSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status GateReceiverStatus `json:"status,omitzero"`
}

// GateReceiverList is a list of GateReceivers.
// +kubebuilder:object:root=true
type GateReceiverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GateReceiver `json:"items"`
}

// GetConditions returns the conditions of the GateReceiver.
func (in *GateReceiver) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the GateReceiver.
func (in *GateReceiver) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// SetLastHandledReconcileRequest records the last handled reconcile request.
func (in *GateReceiver) SetLastHandledReconcileRequest(token string) {
	in.Status.SetLastHandledReconcileRequest(token)
}

// GetPath returns status.webhookPath.
func (in *GateReceiver) GetPath() string { return in.Status.WebhookPath }

// SetPath sets status.webhookPath.
func (in *GateReceiver) SetPath(path string) { in.Status.WebhookPath = path }

// SetObservedGeneration sets status.observedGeneration.
func (in *GateReceiver) SetObservedGeneration(generation int64) {
	in.Status.ObservedGeneration = generation
}

// GetWebhookPath returns the path of the webhook for a token. It equals that
// of a Receiver of notification-controller with the same name and namespace.
func (in *GateReceiver) GetWebhookPath(token string) string {
	return ReceiverWebhookPath + digestOf(token, in.Name, in.Namespace)
}

// GetInterval returns spec.interval, or its default if it is not set.
func (in *GateReceiver) GetInterval() time.Duration {
	return in.Spec.Interval.Or(DefaultReceiverInterval)
}

// digestOf returns the hexadecimal SHA-256 of the concatenated parts, for a
// secret path.
func digestOf(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, ""))))
}
