package machinecerts_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

// node is a Machine with the state of the provider.
type node struct {
	machinecerts.Machine
	// working is true while the provider refreshes the certificates, even if the status does not show that.
	working bool
	// fault is how the provider fails, empty if it does not.
	fault string
}

var faults = []string{"", "stuck", "fails", "fails at once", "never advances", "ignores"}

func (n *node) expires() time.Time {
	at, err := time.Parse(time.RFC3339, n.Expiry)
	if err != nil {
		panic(err)
	}
	return at
}

// provider takes the next step of the provider.
func (n *node) provider(now time.Time) {
	switch {
	case n.working:
		n.finish(now)
	case n.Status == machinecerts.StatusInProgress:
		if n.Request == machinecerts.None {
			n.Status = ""
		}
	case n.Request == machinecerts.None || n.fault == "ignores":
	case n.fault == "fails at once":
		n.Status = machinecerts.StatusFailed
	default:
		n.Status, n.working = machinecerts.StatusInProgress, true
	}
}

func (n *node) finish(now time.Time) {
	switch n.fault {
	case "stuck":
		return
	case "fails":
		if n.Request != machinecerts.None { // otherwise, its write would conflict
			n.Status = machinecerts.StatusFailed
		}
	case "never advances":
		n.Request, n.Status = machinecerts.None, machinecerts.StatusDone
	default:
		n.Request, n.Status = machinecerts.None, machinecerts.StatusDone
		n.Expiry = now.Add(365 * day).Format(time.RFC3339)
	}
	n.working = false
}

// model carries out the decisions for one policy. The process can end before any write.
type model struct {
	*rapid.T
	gate  machinecerts.Policy
	nodes []*node
	now   time.Time
	// stopped is true if the status reports a failed refresh.
	stopped bool
	// failed is true if a refresh has failed since the Gate was opened.
	failed bool
	// left is the number of writes before the process ends.
	left int
}

func (m *model) machines() []machinecerts.Machine {
	var all []machinecerts.Machine
	for _, n := range m.nodes {
		all = append(all, n.Machine)
	}
	return all
}

func (m *model) decide() machinecerts.Decision {
	gate := m.gate
	gate.Idle = m.stopped
	return machinecerts.Decide(gate, m.machines(), m.now)
}

func (m *model) node(name string) *node {
	for _, n := range m.nodes {
		if n.Name == name {
			return n
		}
	}
	panic(name)
}

// write calls do. It returns false, and does not call do, if the process has ended.
func (m *model) write(do func()) bool {
	m.left--
	if m.left < 0 {
		return false
	}
	do()
	return true
}

// reconcile carries out decisions until nothing is left to do or the process ends.
func (m *model) reconcile(writes int) {
	m.left = writes
	for range 20 {
		d := m.decide()
		if len(d.Ends) > 0 {
			if !m.end(d.Ends[0]) {
				return
			}
			continue
		}
		if len(d.Next) == 0 {
			return
		}
		n := m.node(d.Next[0])
		if n.Status == machinecerts.StatusFailed && !m.write(func() { n.Status = "" }) {
			return
		}
		if !m.write(func() { m.begin(n) }) {
			return
		}
	}
	m.Fatal("a reconciliation does not come to an end")
}

func (m *model) end(e machinecerts.End) bool {
	n := m.node(e.Machine)
	if e.Outcome.Stops() && !m.write(func() { m.stopped, m.failed = true, true }) {
		return false
	}
	return m.write(func() {
		late := n.Record != nil && !n.Record.RequestedAt.Add(m.gate.Timeout).After(m.now)
		if n.Request == machinecerts.Ours && n.Status == machinecerts.StatusInProgress && !late {
			m.Fatalf("%s: a refresh in progress is withdrawn: %+v", n.Name, e)
		}
		if n.Request == machinecerts.Ours {
			n.Request = machinecerts.None
		}
		n.Record = nil
	})
}

// begin makes a request. It checks the laws of requests independently of the decision.
func (m *model) begin(n *node) {
	left := n.expires().Sub(m.now)
	switch {
	case n.Request != machinecerts.None || n.Record != nil:
		m.Fatalf("%s: has a request already", n.Name)
	case m.failed:
		m.Fatalf("%s: begun after a failure", n.Name)
	case left > m.gate.Within:
		m.Fatalf("%s: begun %s before the expiry", n.Name, left)
	case !m.gate.Open && (m.gate.Strict || left > m.gate.Margin):
		m.Fatalf("%s: begun %s before the expiry while the gate is closed", n.Name, left)
	}
	for _, other := range m.nodes {
		if other.Record != nil {
			m.Fatalf("%s: begun while %s is", n.Name, other.Name)
		}
		busy := other.Request == machinecerts.Others || other.working
		if other.Cluster == n.Cluster && busy {
			m.Fatalf("%s: begun while %s is busy", n.Name, other.Name)
		}
	}
	n.Request = machinecerts.Ours
	n.Record = &machinecerts.Record{Refresh: m.gate.Name, RequestedAt: m.now, Expiry: n.expires()}
}

// check checks the laws of the whole fleet. It is called after each action.
func (m *model) check() {
	ours := 0
	for _, n := range m.nodes {
		if n.Request == machinecerts.Ours {
			ours++
			if n.Record == nil {
				m.Fatalf("%s: a request of ours without a record", n.Name)
			}
		}
	}
	if ours > 1 {
		m.Fatalf("%d requests of ours", ours)
	}
}

func (m *model) any() *node { return m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(m.T, "node")] }

// person sets or removes a request manually. This replaces a request of the controller, too.
func (m *model) person() {
	n := m.any()
	n.Request = rapid.SampledFrom([]machinecerts.Request{machinecerts.Others, machinecerts.None}).Draw(m.T, "request")
}

func (m *model) open() { m.gate.Open, m.stopped, m.failed = true, false, false }

func (m *model) tick(d time.Duration) { m.now = m.now.Add(d) }

func newModel(t *rapid.T) *model {
	m := &model{T: t, now: now, gate: machinecerts.Policy{
		Name: us, Within: 30 * day, Timeout: time.Hour, Margin: day, Strict: rapid.Bool().Draw(t, "strict"),
	}}
	for i := range rapid.IntRange(1, 6).Draw(t, "machines") {
		n := &node{Machine: machine(fmt.Sprintf("m%d", i), time.Duration(rapid.IntRange(-24, 40*24).Draw(t, "expires in hours"))*time.Hour)}
		n.ControlPlane = rapid.Bool().Draw(t, "control plane")
		n.Cluster = rapid.SampledFrom([]string{"fleet/c1", "fleet/c2"}).Draw(t, "cluster")
		n.fault = rapid.SampledFrom(faults).Draw(t, "fault")
		m.nodes = append(m.nodes, n)
	}
	return m
}

func TestRefreshInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"reconcile":        func(*rapid.T) { m.reconcile(100) },
			"reconcile, crash": func(t *rapid.T) { m.reconcile(rapid.IntRange(0, 4).Draw(t, "writes")) },
			"provider":         func(*rapid.T) { m.any().provider(m.now) },
			"provider, crash":  func(*rapid.T) { m.any().working = false },
			"provider, other":  func(t *rapid.T) { m.any().fault = rapid.SampledFrom(faults).Draw(t, "fault") },
			"person":           func(*rapid.T) { m.person() },
			"open":             func(*rapid.T) { m.open() },
			"close":            func(*rapid.T) { m.gate.Open = false },
			"tick": func(t *rapid.T) {
				m.tick(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, day}).Draw(t, "for"))
			},
			"": func(*rapid.T) { m.check() },
		})
		m.settle()
	})
}

// settle runs all actors without faults, and fails the test if a Machine that is due is not refreshed in the end.
func (m *model) settle() {
	var due []*node
	for _, n := range m.nodes {
		n.fault = ""
		if n.Request == machinecerts.Others {
			n.Request = machinecerts.None
		}
		if n.expires().Sub(m.now) <= m.gate.Within {
			due = append(due, n)
		}
	}
	// Earlier failures may stop the refreshes once more, and so may a refresh that was in progress at a crash.
	for range 2 + len(m.nodes) {
		m.gate.Open = false
		m.reconcile(100)
		m.open()
		for range 4 * len(m.nodes) {
			m.reconcile(100)
			for _, n := range m.nodes {
				n.provider(m.now)
			}
			m.tick(time.Minute)
			m.check()
		}
		m.tick(time.Hour)
	}
	for _, n := range due {
		if n.expires().Sub(m.now) < 300*day || n.Record != nil && n.Request == machinecerts.None {
			m.Fatalf("not refreshed in the end: %+v", n)
		}
	}
}

// The controller never changes what another client has set.
func TestRequestByOthersIsNeverChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		n := m.nodes[0]
		m.gate.Open = true
		m.reconcile(100)
		n.Request, n.fault = machinecerts.Others, "ignores"
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(*rapid.T) { m.reconcile(100) },
			"open":      func(*rapid.T) { m.open() },
			"close":     func(*rapid.T) { m.gate.Open = false },
			"tick":      func(*rapid.T) { m.tick(time.Hour) },
			"status": func(t *rapid.T) {
				n.Status = rapid.SampledFrom([]string{"", "done", "failed", "in-progress"}).Draw(t, "status")
			},
			"": func(t *rapid.T) {
				if n.Request != machinecerts.Others {
					t.Fatalf("got %+v", n.Machine)
				}
			},
		})
	})
}
