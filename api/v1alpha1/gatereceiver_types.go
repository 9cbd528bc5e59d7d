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

	// ReceiverWebhookPath is how the path of every webhook begins, as for a
	// Receiver of notification-controller.
	ReceiverWebhookPath = "/hook/"

	// ReceiverTokenKey is the key of the token in the Secret of a GateReceiver or
	// a CalendarFeed, as for a Receiver of notification-controller.
	ReceiverTokenKey = "token"

	// ReceiverPreviousTokenKey is the key of a second token in the same Secret
	// that also works: the previous one, until the sender has the new one.
	ReceiverPreviousTokenKey = "previousToken"

	// ReceiverSigningTokenKey is the key of the token that signs webhooks, in the
	// Secret of a GateReceiver. Without it, the key token also signs.
	ReceiverSigningTokenKey = "signingToken"

	// ReceiverPreviousSigningTokenKey is the key of a second signing token in the
	// same Secret that also works: the previous one, until the sender has the new
	// one.
	ReceiverPreviousSigningTokenKey = "previousSigningToken"

	// DefaultReceiverInterval applies if a GateReceiver or a CalendarFeed has no
	// spec.interval.
	DefaultReceiverInterval = 10 * time.Minute

	// DefaultSignatureHeader is the header that has the signature for type
	// generic-hmac if spec.signature names none.
	DefaultSignatureHeader = "X-Signature"

	// DefaultSignaturePayload is the text that a sender with a timestampHeader
	// signs unless spec.signature specifies another one.
	DefaultSignaturePayload = "{timestamp}:{body}"

	// SignatureHex is the encoding of a signature in hexadecimal digits of either
	// case, the default.
	SignatureHex = "hex"

	// SignatureBase64 is the encoding of a signature in base64 with padding (RFC
	// 4648, section 4).
	SignatureBase64 = "base64"

	// DefaultOIDCAudience is the audience that a token must be for, if its
	// provider names none.
	DefaultOIDCAudience = "gating-controller"
)

// The types of a GateReceiver. Those that notification-controller also has
// mean the same there.
const (
	// GenericReceiver accepts any request to its path. The path is its only
	// secret, so it can close Gates, but not open them.
	GenericReceiver = "generic"
	// GenericHMACReceiver accepts a request with the HMAC of the body in a header,
	// as specified in spec.signature. By default, it is X-Signature with
	// sha256=<hex>, sha512=<hex> or sha1=<hex>.
	GenericHMACReceiver = "generic-hmac"
	// GenericOIDCReceiver takes a request with an OpenID Connect token of one of
	// spec.oidcProviders as Authorization: Bearer.
	GenericOIDCReceiver = "generic-oidc"
	// GitHubReceiver takes a webhook of GitHub with its X-Hub-Signature-256.
	GitHubReceiver = "github"
	// GitLabReceiver takes a webhook of GitLab with the token as X-Gitlab-Token, a
	// signature by the signing token as in Standard Webhooks, or both.
	GitLabReceiver = "gitlab"
	// FluxEventReceiver accepts events from the Providers generic and generic-hmac
	// of notification-controller. A signature must be valid. It is required if the
	// Secret has a signing token, and to open a Gate.
	FluxEventReceiver = "flux-event"
	// StandardWebhooksReceiver takes a webhook that is signed as Standard Webhooks
	// specifies, with webhook-id, webhook-timestamp and webhook-signature.
	StandardWebhooksReceiver = "standard-webhooks"
	// AlertmanagerReceiver takes a webhook of Alertmanager with the token as
	// Authorization: Bearer.
	AlertmanagerReceiver = "alertmanager"
)

// GateReceiverSpec determines which webhooks become requests on which Gates.
// +kubebuilder:validation:XValidation:rule="self.type != 'generic-oidc' || has(self.oidcProviders) && size(self.oidcProviders) > 0",message="generic-oidc receivers must define at least one oidcProvider"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-oidc' || !has(self.oidcProviders) || size(self.oidcProviders) == 0",message="oidcProviders can only be set when type is generic-oidc"
// +kubebuilder:validation:XValidation:rule="self.type != 'generic-oidc' || !has(self.secretRef)",message="secretRef cannot be set when type is generic-oidc"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-oidc' || has(self.secretRef)",message="secretRef is required when type is not generic-oidc"
// +kubebuilder:validation:XValidation:rule="!has(self.events) || size(self.events) == 0 || self.type in ['github', 'gitlab', 'standard-webhooks', 'flux-event', 'alertmanager']",message="events are for types github, gitlab, standard-webhooks, flux-event and alertmanager only: use filter"
// +kubebuilder:validation:XValidation:rule="self.type == 'generic-hmac' || !has(self.signature)",message="signature can only be set when type is generic-hmac"
// +kubebuilder:validation:XValidation:rule="has(self.action) != has(self.actionExpr)",message="exactly one of action and actionExpr must be set"
// +kubebuilder:validation:XValidation:rule="self.type != 'generic' || has(self.action) && self.action == 'close'",fieldPath=".type",message="type generic can only close, because the path is its only secret: set action: close without actionExpr, or use a type that verifies its sender, such as generic-hmac or generic-oidc"
type GateReceiverSpec struct {
	// Type of the sender. It decides how webhooks are verified: generic,
	// generic-hmac, generic-oidc, github, gitlab, standard-webhooks, flux-event or
	// alertmanager. The path is the only secret of type generic and of an event of
	// Flux without a signature, so they can close Gates, but not open them.
	// +kubebuilder:validation:Enum=generic;generic-hmac;generic-oidc;github;gitlab;standard-webhooks;flux-event;alertmanager
	// +required
	Type string `json:"type"`

	// Interval is how often the Secret is read again even if nothing has changed.
	// At least 1s, such as 1m. Defaults to 10m. A new token works once it is read;
	// one that is removed from the Secret stops working at once.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// SecretRef names the Secret of the sender, in the same namespace. Its key
	// token has the token, and its key signingToken has the key of signatures if
	// that is another one. If both are there, a webhook needs both. White space
	// around them is ignored. The tokens in previousToken and previousSigningToken
	// also work. Required for all types except generic-oidc, which must not have
	// it.
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 253 && self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretRef.name must be the name of a Secret, such as webhook-token: lower case letters, digits, dashes and dots"
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// Signature describes how the sender signs webhooks, for type generic-hmac
	// only. If omitted, the header X-Signature has sha256=, sha512= or sha1=, and
	// the HMAC of the body in hex.
	// +optional
	Signature *ReceiverSignature `json:"signature,omitempty"`

	// OIDCProviders are the issuers whose OpenID Connect tokens are accepted. A
	// token is verified by the provider whose issuerURL equals its claim iss. At
	// most 10, with 65,536 characters together. Required for type generic-oidc,
	// and only allowed there.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.map(p, size(p.issuerURL) + (has(p.audience) ? size(p.audience) : 0) + (has(p.variables) ? p.variables.map(v, size(v.name) + size(v.expression)).sum() : 0) + p.validations.map(v, size(v.expression) + size(v.message)).sum()).sum() <= 65536",message="all oidcProviders can have at most 65,536 characters together: use fewer or shorter variables and validations, or another GateReceiver"
	// +listType=map
	// +listMapKey=issuerURL
	// +optional
	OIDCProviders []OIDCProvider `json:"oidcProviders,omitempty"`

	// Events are the events to accept; a webhook with another one is refused. If
	// omitted, all are accepted. They are compared, ignoring case, with
	// X-GitHub-Event (github), X-Gitlab-Event (gitlab), type in the body
	// (standard-webhooks), the reason of the event (flux-event), or the status
	// firing or resolved (alertmanager). At most 100. Other types must not have
	// them: use filter.
	//
	// Example: [ping, workflow_run]
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Events []string `json:"events,omitempty"`

	// GateRefs name the Gates on which a webhook makes its request, in the same
	// namespace. From 1 to 10.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	GateRefs []GateReference `json:"gateRefs"`

	// Filter is a CEL expression of type bool that decides whether a webhook
	// counts. If it is false, the sender gets 200 and nothing is requested. If
	// omitted, all webhooks count. It reads the body as req (an empty object if it
	// is not a JSON object), the headers as headers with names in lower case, and
	// for generic-oidc the claims of the token as claims. Headers with secrets are
	// empty.
	//
	// Example: req.workflow_run.head_branch == 'main'
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Filter string `json:"filter,omitempty"`

	// Action that each webhook requests: open or close. Exactly one of action
	// and actionExpr must be set. It must be close for type generic.
	// +optional
	Action RequestAction `json:"action,omitempty"`

	// ActionExpr is a CEL expression of type string that returns the requested
	// action: 'open', 'close', or '' for nothing. It reads the same variables as
	// filter. Exactly one of action and actionExpr must be set. Type generic must
	// not have it.
	//
	// Example: req.status == 'firing' ? 'close' : 'open'
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ActionExpr string `json:"actionExpr,omitempty"`

	// Window is how long the request lasts, from 1s to 8784h (366 days), such as
	// 30m. spec.window of the Gate also limits an open request, but not a close
	// request. Defaults to spec.window of the Gate.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8784h')",message="window must be a duration from 1s to 8784h (366 days), such as 1h"
	// +optional
	Window *Duration `json:"window,omitempty"`

	// Suspend makes the path of the receiver return 503, so that senders may try
	// again. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReceiverSignature specifies the header, the format and the signed text of a
// signature.
// +kubebuilder:validation:XValidation:rule="has(self.algorithm) || !has(self.prefix)",message="prefix can only be set with algorithm: without it, a signature begins with the name of its algorithm, such as sha256="
// +kubebuilder:validation:XValidation:rule="has(self.timestampHeader) || !has(self.payload)",message="payload can only be set with timestampHeader: without it, the body alone is signed"
// +kubebuilder:validation:XValidation:rule="!has(self.timestampHeader) || self.timestampHeader.lowerAscii() != (has(self.header) ? self.header.lowerAscii() : 'x-signature')",message="timestampHeader must be another header than header"
type ReceiverSignature struct {
	// Header that has the signature, such as X-Slack-Signature. A webhook must
	// have it exactly once. CEL expressions do not see its value. Defaults to
	// X-Signature.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="header must be the name of a header, such as X-Signature: letters, digits and dashes"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Header string `json:"header,omitempty"`

	// Encoding of the HMAC: hex, or base64 with padding. Defaults to hex.
	// +kubebuilder:validation:Enum=hex;base64
	// +optional
	Encoding string `json:"encoding,omitempty"`

	// Algorithm of the HMAC: sha256, sha512 or sha1. If omitted, a signature
	// begins with the name of its algorithm, such as sha256=.
	// +kubebuilder:validation:Enum=sha256;sha512;sha1
	// +optional
	Algorithm string `json:"algorithm,omitempty"`

	// Prefix that a signature begins with, such as v1=. Then the header may have
	// up to 8 signatures, separated by commas without blanks. One of them must be
	// right. At most 16 characters. Needs algorithm.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -+./0-~-]+$')",message="prefix must have ASCII characters without commas, such as v1="
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// TimestampHeader is the header that has the time of the signature, as Unix
	// time in seconds. The time is signed and must be less than 5m from the
	// controller's time, and a webhook is accepted only once. If omitted, the body
	// alone is signed.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="timestampHeader must be the name of a header, such as X-Timestamp: letters, digits and dashes"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimestampHeader string `json:"timestampHeader,omitempty"`

	// Payload is the text that is signed: {timestamp}, something that is not a
	// digit, and {body} at the end. Other text may precede {timestamp}. At most 64
	// characters. Needs timestampHeader. Defaults to {timestamp}:{body}.
	//
	// Example: v0:{timestamp}:{body}
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -z|~]*[{]timestamp[}][ -/:-z|~]+[{]body[}]$')",message="payload must be {timestamp}, text that is no digit, and {body}, such as v0:{timestamp}:{body}"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Payload string `json:"payload,omitempty"`
}

// GetHeader returns the header that has the signature, also of a nil
// signature.
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

// GetPayload returns the text that is signed if there is a timestampHeader.
func (in *ReceiverSignature) GetPayload() string {
	if in.Payload == "" {
		return DefaultSignaturePayload
	}
	return in.Payload
}

// +structType=atomic

// OIDCProvider is an OpenID Connect issuer, as in a Receiver of
// notification-controller.
type OIDCProvider struct {
	// IssuerURL is the URL where the keys of the issuer are discovered, such as
	// https://token.actions.githubusercontent.com. The claim iss of its tokens
	// must be the same.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('#') && !self.contains('?') && !self.contains('@')",message="issuerURL must be an https URL, such as https://token.actions.githubusercontent.com, without user, query and fragment"
	// +required
	IssuerURL string `json:"issuerURL"`

	// Audience that the claim aud of a token must contain. Defaults to
	// gating-controller.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Audience string `json:"audience,omitempty"`

	// Variables are CEL expressions over claims and over the variables before
	// them. They are evaluated in order and read as vars.<name>. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Variables []OIDCVariable `json:"variables,omitempty"`

	// Validations are CEL expressions of type bool over claims and vars. All of
	// them must be true. From 1 to 32: at least one is required, because an issuer
	// gives tokens to any of its users.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Validations []OIDCValidation `json:"validations"`
}

// GetAudience returns the audience that a token must be for.
func (in *OIDCProvider) GetAudience() string {
	if in.Audience != "" {
		return in.Audience
	}
	return DefaultOIDCAudience
}

// OIDCVariable is a named CEL expression over the claims of a token.
type OIDCVariable struct {
	// Name of the variable, a CEL identifier such as workflow.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="name must be an identifier of CEL, such as workflow: letters, digits and underscores, not beginning with a digit"
	// +required
	Name string `json:"name"`

	// Expression in CEL, such as claims.job_workflow_ref.split('@')[0].
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression"`
}

// OIDCValidation is a CEL expression that must be true of a token.
type OIDCValidation struct {
	// Expression in CEL of type bool, such as claims.ref == 'refs/heads/main'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression"`

	// Message for the log of the controller if the expression is false, at most
	// 1024 characters. The sender does not get it, so that it does not reveal what
	// is missing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
}

// GateReceiverStatus is the observed state of a GateReceiver.
type GateReceiverStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the receiver that the
	// controller reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// WebhookPath is the secret path for webhooks: /hook/ and the SHA-256 of the
	// token, the name and the namespace. Empty while the Secret has no token.
	// +optional
	WebhookPath string `json:"webhookPath,omitempty"`

	// Conditions of the receiver: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateReceiver turns webhooks into requests on Gates.
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

// GetConditions returns the conditions of the receiver.
func (in *GateReceiver) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the receiver.
func (in *GateReceiver) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// SetLastHandledReconcileRequest records the last request to reconcile.
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

// GetWebhookPath returns the path of the webhook for a token. A Receiver of
// notification-controller with the same name has the same path.
func (in *GateReceiver) GetWebhookPath(token string) string {
	return ReceiverWebhookPath + digestOf(token, in.Name, in.Namespace)
}

// GetInterval returns spec.interval, or its default if there is none.
func (in *GateReceiver) GetInterval() time.Duration {
	return in.Spec.Interval.Or(DefaultReceiverInterval)
}

// digestOf returns the SHA-256 of the inputs of a secret path.
func digestOf(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, ""))))
}
