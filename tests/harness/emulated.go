package harness

// StartEmulated is like StartControlPlane, but its API server emulates an older version of Kubernetes, such as 1.34. It has the APIs and
// features of that version, see https://kubernetes.io/docs/concepts/cluster-administration/compatibility-version/.
func StartEmulated(version string, projects ...string) (*ControlPlane, error) {
	at := here()
	at.args = append(at.args, "--emulated-version="+version)
	return startControlPlane(at, projects...)
}
