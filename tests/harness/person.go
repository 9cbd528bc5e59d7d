package harness

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Person is a user of the cluster with their own credentials. RBAC determines their permissions.
type Person struct {
	Name       string
	Kubeconfig string
	Config     *rest.Config
	Client     client.WithWatch

	cluster *ControlPlane
}

// people are the users of a control plane by name and groups.
type people struct {
	sync.Mutex
	known map[string]*Person
}

// Person returns the user with a name and groups. Further calls return the same Person.
func (c *ControlPlane) Person(name string, groups ...string) (*Person, error) {
	c.people.Lock()
	defer c.people.Unlock()
	key := fmt.Sprintf("%q", append([]string{name}, groups...))
	if p, ok := c.people.known[key]; ok {
		return p, nil
	}
	kubeconfig, err := c.KubeconfigFor(name, groups...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // not rate-limited, because an attacker is not
	other, err := client.NewWithWatch(config, client.Options{Scheme: c.Client.Scheme(), Mapper: c.Client.RESTMapper()})
	if err != nil {
		return nil, err
	}
	p := &Person{Name: name, Kubeconfig: kubeconfig, Config: config, Client: other, cluster: c}
	c.people.known[key] = p
	return p, nil
}

// Person returns a user with groups.
func (w *World) Person(name string, groups ...string) *Person {
	w.Helper()
	p, err := w.ControlPlane.Person(name, groups...)
	w.Must(err)
	return p
}

// Kubectl runs kubectl as this user and returns its output.
func (p *Person) Kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	return p.cluster.Kubectl(ctx, append([]string{"--kubeconfig=" + p.Kubeconfig, "--namespace=" + namespace}, args...)...)
}
