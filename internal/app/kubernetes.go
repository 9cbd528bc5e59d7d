package app

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// Kubernetes versions, see docs/reference/versions.md.
var (
	// oldestKubernetes is the oldest version that the controller is tested with.
	oldestKubernetes = version.MustParseGeneric("1.34")
	// mutatingKubernetes is the first version that serves the API used in config/policies and config/lock.
	mutatingKubernetes = version.MustParseGeneric("1.36")
)

// kubernetesCheck logs warnings about the Kubernetes version once the manager is running, so that the check does not delay the start.
type kubernetesCheck struct {
	log    logr.Logger
	server discovery.ServerVersionInterface
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, so that each replica logs the warnings.
func (kubernetesCheck) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It never fails.
func (k kubernetesCheck) Start(context.Context) error {
	logKubernetesVersion(k.log, k.server)
	return nil
}

// logKubernetesVersion logs a message if the Kubernetes version is older than the tested versions or too old for a feature. This is not
// an error, because the features that do not work report errors themselves.
func logKubernetesVersion(log logr.Logger, server discovery.ServerVersionInterface) {
	found, err := server.ServerVersion()
	if err != nil {
		log.Error(err, "unable to get the version of Kubernetes")
		return
	}
	major, minor := found.Major, found.Minor
	if found.EmulationMajor != "" { // the API server emulates an older version
		major, minor = found.EmulationMajor, found.EmulationMinor
	}
	is, err := version.ParseGeneric(major + "." + minor)
	switch {
	case err != nil:
		log.Error(err, "unable to parse the version of Kubernetes", "kubernetes", found.GitVersion)
	case is.LessThan(oldestKubernetes):
		log.Info("this version of Kubernetes is older than those that the controller is tested with", "kubernetes", is.String(), "oldest", oldestKubernetes.String())
	case is.LessThan(mutatingKubernetes):
		log.Info("this version of Kubernetes is too old for config/policies and config/lock; use config/policies-1.30",
			"kubernetes", is.String(), "needed", mutatingKubernetes.String())
	}
}
