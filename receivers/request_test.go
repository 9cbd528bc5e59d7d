package receivers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// faulty is an API server whose writes fail for a while.
type faulty struct {
	oneGate
	faults []error
	writes int
}

func (c *faulty) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.writes++
	if c.writes <= len(c.faults) {
		return c.faults[c.writes-1]
	}
	return nil
}

// times returns n times the same error.
func times(n int, err error) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

func TestRetryDelayFollowsFailureDuration(t *testing.T) {
	gates := schema.GroupResource{Resource: "gates"}
	conflict := apierrors.NewConflict(gates, "production", errors.New("changed"))
	away := apierrors.NewServerTimeout(gates, "patch", 1)
	for name, tc := range map[string]struct {
		faults      []error
		least, most time.Duration
	}{
		"none":           {nil, 0, time.Second},
		"many conflicts": {times(200, conflict), 200 * conflictInterval, 200 * retryInterval / 2},
		"a server away":  {times(3, away), 3 * retryInterval, time.Minute},
		"both":           {[]error{conflict, away, conflict, away}, 2*retryInterval + 2*conflictInterval, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := &faulty{oneGate: oneGate{gate: &v1alpha1.Gate{}}, faults: tc.faults}
			began := time.Now()
			_, err := NewGates(c).request(t.Context(), types.NamespacedName{Namespace: "apps", Name: "production"}, gateRequest{action: opens}, testNow)
			if took := time.Since(began); err != nil || c.writes != len(tc.faults)+1 || took < tc.least || took > tc.most {
				t.Errorf("%d writes in %s: %v", c.writes, took, err)
			}
		})
	}
}

func TestPermanentErrorsAreReturnedAtOnceAndOthersAfterTimeout(t *testing.T) {
	gates := schema.GroupResource{Resource: "gates"}
	forbidden := apierrors.NewForbidden(gates, "production", errors.New("no"))
	away := apierrors.NewServerTimeout(gates, "patch", 1)
	key := types.NamespacedName{Namespace: "apps", Name: "production"}
	c := &faulty{oneGate: oneGate{gate: &v1alpha1.Gate{}}, faults: []error{forbidden}}
	if _, err := NewGates(c).request(t.Context(), key, gateRequest{action: opens}, testNow); !apierrors.IsForbidden(err) || errors.Is(err, errUnavailable) || c.writes != 1 {
		t.Errorf("forbidden: %d writes, %v", c.writes, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*retryInterval)
	defer cancel()
	c = &faulty{oneGate: oneGate{gate: &v1alpha1.Gate{}}, faults: times(1000, away)}
	if _, err := NewGates(c).request(ctx, key, gateRequest{action: opens}, testNow); !errors.Is(err, errUnavailable) || !errors.Is(err, away) || c.writes > 3 {
		t.Errorf("away: %d writes, %v", c.writes, err)
	}
	// One attempt is always made, because the response may arrive in time.
	calls := 0
	value, err := retried(ctx, func() (int, error) { calls++; return calls, away })
	if value != 1 || calls != 1 || !errors.Is(err, errUnavailable) || !errors.Is(err, away) {
		t.Errorf("without time: %d calls, %v", calls, err)
	}
	refused := endpoint.Refuse("TokenNotFound", fmt.Errorf("no token"))
	if _, err := retried(t.Context(), func() (int, error) { calls++; return 0, refused }); !errors.Is(err, refused) || errors.Is(err, errUnavailable) || calls != 2 {
		t.Errorf("refused: %d calls, %v", calls, err)
	}
}

// several is an API server with Gates by name. It refuses to read the Gate with the name forbidden.
type several struct {
	oneGate
	gates map[string]*v1alpha1.Gate
}

func (c *several) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gates := schema.GroupResource{Resource: "gates"}
	found, ok := c.gates[key.Name]
	switch {
	case key.Name == "forbidden":
		return apierrors.NewForbidden(gates, key.Name, errors.New("told to nobody"))
	case !ok:
		return apierrors.NewNotFound(gates, key.Name)
	}
	*obj.(*v1alpha1.Gate) = *found.DeepCopy()
	return nil
}

func (*several) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

func TestSenderGetsNoErrorsAboutOtherGates(t *testing.T) {
	with := func(annotations map[string]string) *v1alpha1.Gate {
		return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	going := with(nil)
	going.DeletionTimestamp = &metav1.Time{Time: testNow}
	c := &several{gates: map[string]*v1alpha1.Gate{
		"good": with(nil), "going": going, "full": with(map[string]string{"a": strings.Repeat("a", 256<<10)}),
		"closed": with(map[string]string{v1alpha1.CloseRequestedAtAnnotation: testNow.Format(time.RFC3339), v1alpha1.CloseRequestedByAnnotation: "alice"}),
	}}
	handler := newHandler(nil, c)
	const closed = "gate 'apps/closed' stays closed, a user has closed the gate, so a webhook cannot open it: close requested at "
	for names, want := range map[string]struct {
		code int
		text string
	}{
		"good forbidden":          {http.StatusInternalServerError, "some gates could not be updated, see the log of the controller"},
		"forbidden missing":       {http.StatusInternalServerError, "gate 'apps/missing' does not exist"},
		"missing forbidden going": {http.StatusInternalServerError, "gate 'apps/missing' does not exist\ngate 'apps/going' is being deleted: it does not exist"},
		"full forbidden missing":  {http.StatusTooManyRequests, errTooMany.Error()},
		"forbidden closed":        {http.StatusForbidden, closed + testNow.Format(time.RFC3339) + " by alice"},
	} {
		var keys []types.NamespacedName
		for _, name := range strings.Fields(names) {
			keys = append(keys, types.NamespacedName{Namespace: "apps", Name: name})
		}
		got := handler.request(t.Context(), keys, gateRequest{action: opens, delivery: deliveryID("apps/ci", "1")}, &incoming{now: testNow})
		if got.code != want.code || got.text != want.text {
			t.Errorf("%s: %d %q, want %d %q", names, got.code, got.text, want.code, want.text)
		}
		if got.err == nil || !strings.Contains(got.err.Error(), "told to nobody") {
			t.Errorf("%s: the log has %v", names, got.err)
		}
	}
}

func TestResponseReportsMissingApprovals(t *testing.T) {
	eyes := func(required int32) *v1alpha1.Gate {
		return &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: required}}}}
	}
	c := &several{gates: map[string]*v1alpha1.Gate{"free": {}, "two": eyes(2), "one": eyes(1)}}
	handler := newHandler(nil, c)
	one := "\ngate 'apps/one': the request waits for 1 approval by others: kubectl gate approve gate/one -n apps"
	two := "\ngate 'apps/two': the request waits for 2 approvals by others: kubectl gate approve gate/two -n apps"
	for _, tc := range []struct {
		gates  string
		action v1alpha1.RequestAction
		code   int
		want   string
	}{
		{"free", opens, http.StatusOK, "open requested"},
		{"one", opens, http.StatusOK, "open requested" + one},
		{"two free one", opens, http.StatusOK, "open requested" + two + one},
		{"two", v1alpha1.RequestClose, http.StatusOK, "close requested"},
		{"two missing", opens, http.StatusInternalServerError, "gate 'apps/missing' does not exist"},
	} {
		var keys []types.NamespacedName
		for _, name := range strings.Fields(tc.gates) {
			keys = append(keys, types.NamespacedName{Namespace: "apps", Name: name})
		}
		got := handler.request(t.Context(), keys, gateRequest{action: tc.action}, &incoming{now: testNow})
		if got.code != tc.code || got.text != tc.want {
			t.Errorf("%s %s: %d %q, want %d %q", tc.action, tc.gates, got.code, got.text, tc.code, tc.want)
		}
	}
}
