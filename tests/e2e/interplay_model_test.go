package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The field managers that write spec.suspend, besides those of kubectl.
const (
	us     = v1alpha1.FieldManager
	inGit  = "kustomize-controller"
	person = "flux"
	alice  = "alice" // applies on the server side, in her own name
)

// model says what a target is to look like after all that was done to it: the
// rules of docs/contribute/interplay.md, and as much of server-side apply as they need.
type model struct {
	// respect is the resume policy of the gates.
	respect bool
	// ignore and ifNotPresent keep Flux from writing spec.suspend, or anything.
	ignore, ifNotPresent bool
	// withLock says that config/lock is installed, which lets Flux see who else
	// suspends what is held, and locked that it keeps the target from being resumed.
	withLock, locked bool

	// names says that the target names its gate itself.
	names bool

	// git is spec.suspend in Git: true, false or nothing.
	git string
	// committed says that Git has other changes that Flux did not apply yet.
	committed bool

	exists bool
	// value is spec.suspend of the target: true, false or nothing.
	value string
	// owners are the field managers that own it.
	owners []string
	// closed are the gates that are closed, each governs the target.
	closed []string
	// resumed says that somebody resumed a held target and the gates respect it.
	resumed bool
}

// claims returns who suspends the target besides us.
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

// byTheLock says that the lock holds the target and the controller does not yet:
// what the lock writes belongs to nobody.
func (m *model) byTheLock() bool { return m.withLock && m.value == "true" && len(m.owners) == 0 }

// lock does what the lock does to a write.
func (m *model) lock() {
	if m.locked && m.value != "true" {
		m.value, m.owners = "true", nil
	}
}

// shown is what a dry-run shows of the target: not who owns a field, but with the
// lock who else suspends what is held.
func (m *model) shown() string {
	held := slices.Contains(m.owners, us) || m.byTheLock()
	if !m.withLock || !held {
		return fmt.Sprint(m.value, held && m.withLock)
	}
	return fmt.Sprint(m.value, held, slices.Sorted(slices.Values(m.claims())))
}

// sight is what is to be seen of the target.
func (m *model) sight() sight {
	return sight{exists: m.exists, suspend: m.value, owners: m.owners, heldBy: m.heldBy()}
}

// settle does what the controller is to do.
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

// update is a write by a manager that does not apply. Without effect it leaves
// no trace.
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

// apply is a server-side apply by a manager, of nothing if value is empty.
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

// drop removes an owner, and the field with the last one.
func (m *model) drop(manager string) {
	owned := slices.Contains(m.owners, manager)
	if m.owners = without(m.owners, manager); owned && len(m.owners) == 0 {
		m.value = ""
	}
}

// flux is a reconciliation of the parent. Flux applies a target only if a
// dry-run of it differs from what is there, whoever owns that.
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
	// Flux takes over what kubectl owns before it applies.
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
