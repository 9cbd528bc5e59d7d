package policies

import (
	"encoding/json"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// forgedStatus returns a status with an open request.
func forgedStatus() string {
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return `{"requests":[{"action":"open","source":"annotation","requestedAt":"` + at + `","acceptedAt":"` + at + `","state":"InForce"}]}`
}

// forge writes an open request to the status of a Gate.
func forge(w *world, g *v1alpha1.Gate) {
	w.Helper()
	w.Must(json.Unmarshal([]byte(forgedStatus()), &g.Status))
}

// statusFile returns the manifest of a Gate with a forged status.
func statusFile(name, spec string) string {
	return `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"` + name + `"},` + spec + `"status":` + forgedStatus() + `}`
}

func TestOnlyControllerWritesStatus(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	stan := w.as("stan", w.role([]string{"get", "patch", "update"}, []string{"gates", "gates/status"}))
	for _, p := range []*person{stan, w.clusterAdmin(), w.as("otto", viewer, editor, opener)} {
		cause := "user " + p.Name + " may not write the status of gate " + w.Namespace + "/production"
		if p.Name == "otto" { // has all roles of the project
			cause = `User "otto" cannot`
		}
		for _, command := range []string{
			"patch gate production --type=merge -p " + `{"status":` + forgedStatus() + `}`,
			`patch gate production --type=json -p [{"op":"add","path":"/status/memory","value":{"handledRequests":[{"action":"open","lastHandled":"x"}]}}]`,
			`patch gate production --type=json -p [{"op":"replace","path":"/status/conditions/0/status","value":"True"}]`,
			`patch gate production --type=merge -p {"metadata":{"annotations":{"` + openAt + `":"NOW"}},"status":{"observedGeneration":9}}`,
			"apply --server-side --force-conflicts --field-manager=gating-controller -f " + statusFile("production", ""),
			"replace -f " + statusFile("production", `"spec":{"default":"closed"},`),
		} {
			w.refused(p, cause, command+" --subresource=status")
		}
	}
	w.decided(g, metav1.ConditionFalse)
}

func TestStatusInSpecWriteOpensNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"2m"},"status":`+forgedStatus()+`}`)
	w.Decided(g)
	update := g.DeepCopy()
	w.Must(w.Rewrite(update, func() error {
		forge(w, update)
		update.Spec.Interval.Duration = 3 * time.Minute
		return edith.Client.Update(w.Context(), update)
	}))
	const spec = `"spec":{"default":"closed","interval":"4m"},`
	w.allowed(edith, "replace", "-f", statusFile("production", spec))
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", statusFile("production", spec))
	w.allowed(edith, "create", "-f", statusFile("newborn", spec))
	g.Name = "newborn"
	w.decided(g, metav1.ConditionFalse)
	g.Name = "production"
	w.decided(g, metav1.ConditionFalse)
	if g.Spec.Interval.Duration != 4*time.Minute || len(g.Status.Memory.HandledRequests) > 0 {
		t.Errorf("spec %+v, status %+v", g.Spec, g.Status)
	}
}

// clusterAdmin returns a person with all RBAC permissions.
func (w *world) clusterAdmin() *person {
	w.Helper()
	w.Must(client.IgnoreAlreadyExists(cluster.Client.Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "clara"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "clara"}},
	})))
	clara := w.as("clara")
	w.mayBy("clara", "any", "thing", "at.all")
	return clara
}

// Calendar clients subscribe to the path.
func TestCalendarEditorCannotWriteStatus(t *testing.T) {
	w := newWorld(t)
	cora := w.as("cora", calendarEditor, calendarViewer)
	vic := w.as("vic", viewer, opener)
	w.allowed(cora, "create", "-f", `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"CalendarFeed","metadata":{"name":"all"},`+
		`"spec":{"secretRef":{"name":"token"},"selector":{}},"status":{"calendarPath":"/calendar/of-mallory.ics"}}`)
	w.allowed(cora, "patch", "calendarfeed", "all", "--type=merge", "-p", `{"spec":{"days":7},"status":{"calendarPath":"/calendar/of-mallory.ics"}}`)
	write := `patch calendarfeed all --subresource=status --type=merge -p {"status":{"calendarPath":"/calendar/of-mallory.ics"}}`
	w.refused(cora, "cannot", write)
	w.refused(vic, "cannot", write)
	w.refused(w.clusterAdmin(), "may not write the status of calendar feed "+w.Namespace+"/all: it has the path of its calendar", write)
	w.refused(vic, `cannot list resource "calendarfeeds"`, "get calendarfeeds") // the path of a calendar suffices to read it
	obj := &v1alpha1.CalendarFeed{}
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "all"}, obj))
	if obj.Status.CalendarPath != "" || obj.Spec.Days != 7 {
		t.Errorf("%+v", obj)
	}
}
