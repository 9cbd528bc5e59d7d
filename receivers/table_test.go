package receivers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// secrets has Secrets by namespace/name. If err is set, all reads return it.
type secrets struct {
	client.Reader
	mu   sync.Mutex
	data map[string]map[string]string
	err  error
}

func (s *secrets) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.data[key.String()]
	switch {
	case s.err != nil:
		return s.err
	case !ok:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret := obj.(*corev1.Secret) //nolint:forcetypeassert // nothing else is read
	secret.Data = map[string][]byte{}
	for name, value := range data {
		secret.Data[name] = []byte(value)
	}
	return nil
}

func (s *secrets) set(name string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[name] = data
}

func newTable(data map[string]map[string]string) (*Table, *secrets) {
	s := &secrets{data: data}
	return NewTable(s), s
}

func has(t *Table, path string) string {
	if e, _ := t.Find(path); e != nil {
		return e.key.String()
	}
	return ""
}

func TestBothTokensArePathsUntilOneIsRemoved(t *testing.T) {
	table, s := newTable(map[string]map[string]string{"apps/smoke": {"token": "old"}})
	obj := receiverOf("smoke", "apps")
	old, err := table.Load(t.Context(), obj)
	if err != nil || old != obj.GetWebhookPath("old") || has(table, old) != "apps/smoke" {
		t.Fatal(old, err)
	}
	s.set("apps/smoke", map[string]string{"token": "new", "previousToken": "old"})
	path, err := table.Load(t.Context(), obj)
	if err != nil || path != obj.GetWebhookPath("new") || has(table, old) == "" || has(table, path) == "" {
		t.Fatal(path, err)
	}
	s.set("apps/smoke", map[string]string{"token": "new"})
	if _, err = table.Load(t.Context(), obj); err != nil || has(table, old) != "" || has(table, path) == "" {
		t.Fatal(err)
	}
	table.Forget(client.ObjectKeyFromObject(obj))
	if has(table, path) != "" || table.IsReconciled(client.ObjectKeyFromObject(obj)) || table.Len() > 0 {
		t.Error("something is left of it")
	}
}

func TestReloadKeepsRateOfReceiver(t *testing.T) {
	table, _ := newTable(map[string]map[string]string{"apps/smoke": {"token": "t"}})
	obj := receiverOf("smoke", "apps")
	for range 2 {
		if _, err := table.Load(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		e, _ := table.Find(obj.GetWebhookPath("t"))
		e.limiter.AllowN(testNow, burst/2)
	}
	if e, _ := table.Find(obj.GetWebhookPath("t")); e.limiter.AllowN(testNow, 1) {
		t.Error("a change of the receiver gives a new burst")
	}
}

// The digest is that of token, name and namespace without separators.
func TestSharedPathBelongsToOlderReceiver(t *testing.T) {
	older, younger := receiverOf("hook", "team-a"), receiverOf("k", "team-a")
	younger.CreationTimestamp = metav1.NewTime(testNow.Add(time.Second))
	data := map[string]map[string]string{"team-a/hook": {"token": "x"}, "team-a/k": {"token": "xhoo"}}
	if older.GetWebhookPath("x") != younger.GetWebhookPath("xhoo") {
		t.Fatal("not the same path")
	}
	for name, order := range map[string][]*v1alpha1.GateReceiver{"older first": {older, younger}, "younger first": {younger, older, younger}} {
		table, _ := newTable(data)
		var last error
		for _, obj := range order {
			_, last = table.Load(t.Context(), obj)
		}
		refused := (*Refused)(nil)
		if !errors.As(last, &refused) || refused.Reason() != v1alpha1.TokenNotFoundReason {
			t.Errorf("%s: the younger one: %v", name, last)
		}
		if got := has(table, older.GetWebhookPath("x")); got != "team-a/hook" {
			t.Errorf("%s: the path is that of %q", name, got)
		}
		table.Forget(client.ObjectKeyFromObject(older))
		if _, err := table.Load(t.Context(), younger); err != nil {
			t.Errorf("%s: without the older one: %v", name, err)
		}
	}
}

func TestUnsyncedReceiverLeavesUnknownPathsUndecided(t *testing.T) {
	away := apierrors.NewServerTimeout(schema.GroupResource{Resource: "secrets"}, "get", 1)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "smoke", nil)
	for name, tc := range map[string]struct {
		data    map[string]string
		err     error
		secret  string
		certain bool
		reason  string
	}{
		"an API server that is away":  {err: away, secret: "smoke", certain: false},
		"a Secret that is forbidden":  {err: forbidden, secret: "smoke", certain: true, reason: v1alpha1.TokenNotFoundReason},
		"no Secret":                   {secret: "other", certain: true, reason: v1alpha1.TokenNotFoundReason},
		"no token":                    {secret: "smoke", data: map[string]string{"previousToken": "t"}, certain: true, reason: v1alpha1.TokenNotFoundReason},
		"an empty name":               {err: errors.New("resource name may not be empty"), certain: true, reason: v1alpha1.TokenNotFoundReason},
		"a name that climbs":          {err: errors.New("invalid resource name"), secret: "../x", certain: true, reason: v1alpha1.TokenNotFoundReason},
		"a name that no Secret has":   {err: errors.New("invalid resource name"), secret: "a%b", certain: true, reason: v1alpha1.TokenNotFoundReason},
		"a Secret with a token in it": {secret: "smoke", data: map[string]string{"token": "t"}, certain: true},
	} {
		t.Run(name, func(t *testing.T) {
			table, s := newTable(map[string]map[string]string{"apps/smoke": tc.data})
			s.err = tc.err
			obj := receiverOf("smoke", "apps", func(spec *v1alpha1.GateReceiverSpec) { spec.SecretRef.Name = tc.secret })
			_, err := table.Load(t.Context(), obj)
			refused, reason := (*Refused)(nil), ""
			if errors.As(err, &refused) {
				reason = refused.Reason()
			}
			if reason != tc.reason || (err == nil) != (tc.data["token"] != "") {
				t.Errorf("got %q, %v", reason, err)
			}
			if _, certain := table.Find("/hook/unknown"); certain != tc.certain || !table.IsReconciled(client.ObjectKeyFromObject(obj)) {
				t.Errorf("certain %t, want %t", certain, tc.certain)
			}
			table.Forget(client.ObjectKeyFromObject(obj))
			if _, certain := table.Find("/hook/unknown"); !certain {
				t.Error("it is still waited for when it is gone")
			}
		})
	}
}

func TestTableIsSafeForConcurrentUse(t *testing.T) {
	data := map[string]map[string]string{}
	for i := range 8 {
		data[fmt.Sprintf("apps/r%d", i)] = map[string]string{"token": "t", "previousToken": "u"}
	}
	table, _ := newTable(data)
	var group sync.WaitGroup
	for i := range 8 {
		obj := receiverOf(fmt.Sprintf("r%d", i), "apps")
		group.Go(func() {
			for range 200 {
				path, err := table.Load(t.Context(), obj)
				if err != nil || has(table, path) != client.ObjectKeyFromObject(obj).String() {
					t.Error(path, err)
				}
				table.Forget(types.NamespacedName{Namespace: "apps", Name: obj.Name})
				if has(table, path) != "" {
					t.Error("it is there after it was forgotten")
				}
			}
		})
	}
	group.Wait()
	if table.Len() > 0 {
		t.Error("something is left")
	}
}
