package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Right is a permission that a command needs.
type Right struct{ Command, Verb, Group, Resource, Role string }

var group = v1alpha1.GroupVersion.Group

// Rights are the permissions that the commands need in the user's namespace.
var Rights = []Right{
	{"list", "list", group, "gates", "gate-viewer"},
	{"list", "get", group, "gates", "gate-viewer"},
	{"open", "patch", group, "gates", "gate-opener"},
	{"open", "open", group, "gates", "gate-opener"},
	{"close", "patch", group, "gates", "gate-opener"},
	{"close", "close", group, "gates", "gate-opener"},
	{"exception", "create", group, "gateexceptions", "gate-exception-editor"},
	{"approve", "patch", group, "gateexceptions", "gate-exception-approver"},
	{"approve", "approve", group, "gateexceptions", "gate-exception-approver"},
}

// Permissions reports which commands the user is not permitted to use in a namespace.
func Permissions(denied []Right, namespace string) (findings []Finding) {
	var commands []string
	for _, r := range denied {
		if !slices.Contains(commands, r.Command) {
			commands = append(commands, r.Command)
		}
	}
	for _, command := range commands {
		var verbs []string
		var last Right
		for _, r := range denied {
			if r.Command == command {
				verbs, last = append(verbs, r.Verb), r
			}
		}
		findings = append(findings, Finding{
			Note, "you", fmt.Sprintf("you may not %s %s in namespace %q, which kubectl gate %s needs", strings.Join(verbs, " and "), last.Resource, namespace, command),
			"to grant the permissions: the ClusterRole " + last.Role,
		})
	}
	return findings
}
