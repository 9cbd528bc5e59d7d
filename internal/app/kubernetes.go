package app

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// The versions of Kubernetes that somebody has to know about, see docs/reference/versions.md.
var (
	// oldestKubernetes is the oldest one that the controller is tested with.
	oldestKubernetes = version.MustParseGeneric("1.34")
	// mutatingKubernetes is the first one with what config/policies and config/lock consist of.
	mutatingKubernetes = version.MustParseGeneric("1.36")
)

// kubernetesCheck tells about the version of Kubernetes once the manager runs, so that no start waits for the answer.
type kubernetesCheck struct {
	log    logr.Logger
	server discovery.ServerVersionInterface
}

// NeedLeaderElection says that each replica has it in its log.
func (kubernetesCheck) NeedLeaderElection() bool { return false }

// Start never fails.
func (k kubernetesCheck) Start(context.Context) error {
	logKubernetesVersion(k.log, k.server)
	return nil
}

// logKubernetesVersion says in the log what the version of Kubernetes means for the user. Nothing fails here: what is missing is an error where
// it is missed.
func logKubernetesVersion(log logr.Logger, server discovery.ServerVersionInterface) {
	found, err := server.ServerVersion()
	if err != nil {
		log.Error(err, "unable to ask for the version of Kubernetes")
		return
	}
	major, minor := found.Major, found.Minor
	if found.EmulationMajor != "" { // it acts as an older version than it is
		major, minor = found.EmulationMajor, found.EmulationMinor
	}
	is, err := version.ParseGeneric(major + "." + minor)
	switch {
	case err != nil:
		log.Error(err, "unable to tell the version of Kubernetes", "kubernetes", found.GitVersion)
	case is.LessThan(oldestKubernetes):
		log.Info("this Kubernetes is older than any that the controller is tested with", "kubernetes", is.String(), "oldest", oldestKubernetes.String())
	case is.LessThan(mutatingKubernetes):
		log.Info("this Kubernetes is too old for config/policies and config/lock; config/policies-1.30 is for it",
			"kubernetes", is.String(), "needed", mutatingKubernetes.String())
	}
}
