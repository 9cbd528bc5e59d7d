package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The field managers that write spec.suspend, in addition to those of kubectl.
const (
	us     = v1alpha1.FieldManager
	inGit  = "kustomize-controller"
	person = "flux"
	alice  = "alice" // alice uses server-side apply with her own field manager
)

// model computes the expected state of a target after all actions on it. It implements the rules of docs/contribute/interplay.md, and the
// parts of server-side apply that they need.
type model struct {
	// respect is true if the gates respect that another client resumes a target.
	respect bool
	// ignore and ifNotPresent keep Flux from writing spec.suspend, or anything.
	ignore, ifNotPresent bool
	// withLock is true if config/lock is installed, which shows Flux the other managers that suspend a held target. locked is true if it
	// prevents resuming the target.
	withLock, locked bool

	// names is true if the target names its gate.
	names bool

	// git is spec.suspend in Git: true, false or empty.
	git string
	// committed is true if Git has other changes that Flux has not applied yet.
	committed bool

	exists bool
	// value is spec.suspend of the target: true, false or empty.
	value string
	// owners are the field managers that own it.
	owners []string
	// closed are the closed gates. Each governs the target.
	closed []string
	// resumed is true if another client has resumed a held target and the gates respect that.
	resumed bool
}

// claims returns which other managers suspend the target.
func (m *model) claims() []string {
	if m.value != "true" {
		return nil
	}
	return without(m.owners, us)
}

// heldBy returns the gates that the target names.
func (m *model) heldBy() []string {
	if slices.Contains(m.owners, us) || m.resumed || m.byTheLock() {
		return m.closed
	}
	return nil
}

// byTheLock returns whether the lock holds the target before the controller does. A field that the lock writes has no owner.
func (m *model) byTheLock() bool { return m.withLock && m.value == "true" && len(m.owners) == 0 }

// lock applies the mutation of the lock to a write.
func (m *model) lock() {
	if m.locked && m.value != "true" {
		m.value, m.owners = "true", nil
	}
}

// shown is the result of a dry run: it does not contain the owners of a field, but with the lock the other managers that suspend a held
// target.
func (m *model) shown() string {
	held := slices.Contains(m.owners, us) || m.byTheLock()
	if !m.withLock || !held {
		return fmt.Sprint(m.value, held && m.withLock)
	}
	return fmt.Sprint(m.value, held, slices.Sorted(slices.Values(m.claims())))
}

// observation returns the observable state of the target.
func (m *model) observation() observation {
	return observation{exists: m.exists, suspend: m.value, owners: m.owners, heldBy: m.heldBy()}
}

// settle applies the expected writes of the controller.
func (m *model) settle() {
	m.locked = m.withLock && len(m.closed) > 0 && !m.respect
	if m.exists && m.byTheLock() {
		m.owners = []string{us}
	}
	ours := slices.Contains(m.owners, us)
	switch {
	case !m.exists:
	case m.value == "true" && !ours, len(m.closed) == 0 && !ours:
		m.resumed = false
	case len(m.closed) == 0:
		m.resumed = false
		m.drop(us)
	case !ours && !m.resumed:
		m.value, m.owners = "true", []string{us}
	}
}

// update is a write by a manager without server-side apply. It changes nothing if the value is the same.
func (m *model) update(manager, value string) {
	defer m.lock()
	switch value {
	case m.value:
	case "":
		m.set(value)
	default:
		m.set(value, manager)
	}
}

// set makes the writer of a new value its only owner.
func (m *model) set(value string, owners ...string) {
	if m.respect && slices.Contains(m.owners, us) {
		m.resumed = true
	}
	m.value, m.owners = value, owners
}

// apply is a server-side apply by a manager. An empty value omits the field.
func (m *model) apply(manager, value string) {
	defer m.lock()
	switch {
	case value == "":
		m.drop(manager)
	case value != m.value:
		m.set(value, manager)
	case !slices.Contains(m.owners, manager):
		m.owners = append(slices.Clone(m.owners), manager)
	}
}

// drop removes an owner. It removes the field with its last owner.
func (m *model) drop(manager string) {
	owned := slices.Contains(m.owners, manager)
	if m.owners = without(m.owners, manager); owned && len(m.owners) == 0 {
		m.value = ""
	}
}

// flux is a reconciliation of the parent. Flux applies a target only if a dry run differs from the current object, regardless of the
// owners.
func (m *model) flux() {
	if !m.exists {
		m.exists, m.value, m.owners, m.committed = true, m.git, nil, false
		if m.git != "" {
			m.owners = []string{inGit}
		}
		m.lock()
		return
	}
	if m.ifNotPresent {
		return
	}
	after := *m
	after.apply(inGit, m.git)
	differs := after.value != m.value
	// Flux takes over fields of kubectl before it applies.
	taken := false
	for i, owner := range m.owners {
		if strings.HasPrefix(owner, "kubectl") {
			m.owners, taken = slices.Replace(slices.Clone(m.owners), i, i+1, inGit), true
		}
	}
	hidden := after.shown() != m.shown() && !differs
	if !m.committed && !taken && !hidden && (!differs || m.ignore) {
		return
	}
	m.committed = false
	switch {
	case m.ignore && differs && slices.Contains(m.owners, us):
		m.drop(inGit)
	case m.ignore && differs:
		m.apply(inGit, m.value)
	default:
		m.apply(inGit, m.git)
	}
}

// close and open are changes of the state of a gate.
func (m *model) close(gate string) {
	if !slices.Contains(m.closed, gate) {
		m.closed = append(slices.Clone(m.closed), gate)
		slices.Sort(m.closed)
		m.resumed = false
	}
}

func (m *model) open(gate string) { m.closed = without(m.closed, gate) }

// vanish is the deletion of the target.
func (m *model) vanish() {
	m.exists, m.value, m.owners, m.resumed = false, "", nil, false
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == item })
}
