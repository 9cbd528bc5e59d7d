package activation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// TLSType is the type of a live Secret, and of the Secret with its previous data.
	TLSType = "kubernetes.io/tls"

	// CertificateNameAnnotation is cert-manager's annotation with the name of the Certificate that a Secret was issued for.
	CertificateNameAnnotation = "cert-manager.io/certificate-name"

	// certManagerLabel is on all Secrets that cert-manager watches.
	certManagerLabel = "controller.cert-manager.io/fao"

	// PreviousSuffix is appended to the name of a live Secret to get the name of the Secret with its previous data.
	PreviousSuffix = "-previous"

	maxNameLength = 253
)

// Names holds the names of the objects of an activation, which are all in one namespace.
type Names struct {
	// Certificate is the name of the Certificate, and Staged is its spec.secretName.
	Certificate, Staged string
	// Live is the name of the live Secret.
	Live string
}

// Previous returns the name of the Secret with the previous data of the live Secret.
func (n Names) Previous() string { return n.Live + PreviousSuffix }

// refuse returns why the names or their Secrets cannot be used, empty if they can be. The controller never reads or writes Secrets that
// belong to other owners.
func (n Names) refuse(us Identity, staged, live *Secret) string {
	if message := n.Invalid(); message != "" {
		return message
	}
	if message := n.refuseUnowned(us, n.Live, live); message != "" {
		return message
	}
	// A user who may write a Certificate must not be able to copy an arbitrary Secret with it.
	if staged != nil && staged.Annotations[CertificateNameAnnotation] != n.Certificate {
		return fmt.Sprintf("Secret '%s' was not issued for Certificate '%s'", n.Staged, n.Certificate)
	}
	return ""
}

// Invalid returns why these names cannot be used for an activation, empty if they can be.
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
		return fmt.Sprintf(msgTargetIsStaged, n.Live)
	case n.Previous() == n.Staged:
		return fmt.Sprintf(msgPreviousIsStaged, n.Staged)
	}
	return ""
}

// RefusePrevious returns why a Secret cannot keep the previous data of the live Secret, empty if it can. The Secret is nil if it does not
// exist.
func (n Names) RefusePrevious(us Identity, previous *Secret) string {
	if message := n.refuseUnowned(us, n.Previous(), previous); message != "" || previous == nil {
		return message
	}
	if previous.Annotations[us.Certificate] == "" {
		return fmt.Sprintf(msgPreviousTaken, n.Previous())
	}
	return unwritable(n.Previous(), previous)
}

// refuseUnowned returns why the controller must not write a Secret, empty if it may. It may write a Secret that does not exist, or that
// belongs neither to cert-manager nor to another activation or controller.
func (n Names) refuseUnowned(us Identity, name string, s *Secret) string {
	if s == nil {
		return ""
	}
	issuedFor, marked := s.Annotations[CertificateNameAnnotation]
	_, watched := s.Labels[certManagerLabel]
	other := s.Annotations[us.Certificate]
	switch {
	case marked:
		return fmt.Sprintf(msgOtherCertificate, name, issuedFor, CertificateNameAnnotation)
	case watched:
		return fmt.Sprintf(msgCertManagers, name, certManagerLabel)
	case other != "" && other != n.Certificate:
		return fmt.Sprintf(msgOtherActivation, other, name, us.Certificate)
	case s.Controller != "":
		return fmt.Sprintf(msgControlled, name, s.Controller)
	}
	return ""
}

// unwritable returns why a Secret cannot be written, empty if it can be.
func unwritable(name string, s *Secret) string {
	switch {
	case s == nil:
	case s.Immutable:
		return fmt.Sprintf(msgImmutable, name)
	case s.Type != TLSType:
		return fmt.Sprintf(msgWrongType, name, s.Type, TLSType)
	}
	return ""
}
