package activation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// TLSType of a live Secret, and of the one that keeps what was in it before.
	TLSType = "kubernetes.io/tls"

	// CertificateNameAnnotation is where cert-manager names the Certificate that a
	// Secret was issued for.
	CertificateNameAnnotation = "cert-manager.io/certificate-name"

	// certManagerLabel is on all Secrets that cert-manager watches.
	certManagerLabel = "controller.cert-manager.io/fao"

	// PreviousSuffix turns the name of a live Secret into the name of the one that keeps
	// what was in it before.
	PreviousSuffix = "-previous"

	maxNameLength = 253
)

// Names are the names of what takes part in an activation, all in one namespace.
type Names struct {
	// Certificate, and its spec.secretName.
	Certificate, Staged string
	// Live Secret.
	Live string
}

// Previous returns the name of the Secret that keeps what was in the live one before.
func (n Names) Previous() string { return n.Live + PreviousSuffix }

// refuse says what is wrong with the names or the Secrets of these names, empty if nothing
// is. Nothing that belongs to somebody else is read or written.
func (n Names) refuse(us Identity, staged, live *Secret) string {
	if message := n.Invalid(); message != "" {
		return message
	}
	if message := n.refuseUnowned(us, n.Live, live); message != "" {
		return message
	}
	// Somebody who may write a Certificate must not copy any Secret with it.
	if staged != nil && staged.Annotations[CertificateNameAnnotation] != n.Certificate {
		return fmt.Sprintf("Secret '%s' was not issued for Certificate '%s'", n.Staged, n.Certificate)
	}
	return ""
}

// Invalid says why nothing can be promoted between Secrets of these names. It is empty if
// it can.
func (n Names) Invalid() string {
	if faults := validation.IsDNS1123Subdomain(n.Live); len(faults) > 0 {
		return fmt.Sprintf("'%s' cannot be the name of a Secret: %s", n.Live, strings.Join(faults, ", "))
	}
	switch {
	case len(n.Previous()) > maxNameLength:
		return fmt.Sprintf("the name of the Secret to activate into must have at most %d characters", maxNameLength-len(PreviousSuffix))
	case n.Staged == "":
		return "spec.secretName is missing"
	case n.Live == n.Staged:
		return fmt.Sprintf("Secret '%s' is the one that cert-manager writes: activate into another than spec.secretName", n.Live)
	case n.Previous() == n.Staged:
		return fmt.Sprintf("Secret '%s' is the one that cert-manager writes, and would keep what was in use before: name spec.secretName otherwise", n.Staged)
	}
	return ""
}

// RefusePrevious says why a Secret cannot keep what was in the live one, empty if it can.
func (n Names) RefusePrevious(us Identity, previous *Secret) string {
	if message := n.refuseUnowned(us, n.Previous(), previous); message != "" || previous == nil {
		return message
	}
	if previous.Annotations[us.Certificate] == "" {
		return fmt.Sprintf("Secret '%s' is to keep what was in use before, but somebody else made it: delete it, or activate into another", n.Previous())
	}
	return unwritable(n.Previous(), previous)
}

// refuseUnowned says why a Secret is not ours to write, empty if it is ours.
func (n Names) refuseUnowned(us Identity, name string, s *Secret) string {
	if s == nil {
		return ""
	}
	issuedFor, marked := s.Annotations[CertificateNameAnnotation]
	_, watched := s.Labels[certManagerLabel]
	other := s.Annotations[us.Certificate]
	switch {
	case marked:
		return fmt.Sprintf("Secret '%s' is the one of Certificate '%s' (annotation %s): activate into another", name, issuedFor, CertificateNameAnnotation)
	case watched:
		return fmt.Sprintf("Secret '%s' belongs to cert-manager (label %s): activate into another", name, certManagerLabel)
	case other != "" && other != n.Certificate:
		return fmt.Sprintf("Certificate '%s' activates into Secret '%s': activate into another, or remove the annotation %s from the Secret", other, name, us.Certificate)
	case s.Controller != "":
		return fmt.Sprintf("Secret '%s' is controlled by %s: activate into another", name, s.Controller)
	}
	return ""
}

// unwritable says why a Secret cannot be written, empty if it can.
func unwritable(name string, s *Secret) string {
	switch {
	case s == nil:
	case s.Immutable:
		return fmt.Sprintf("Secret '%s' is immutable: delete it, or activate into another", name)
	case s.Type != TLSType:
		return fmt.Sprintf("Secret '%s' is of type %s: delete it so that it is made again with type %s, or activate into another", name, s.Type, TLSType)
	}
	return ""
}
