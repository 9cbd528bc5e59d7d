package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// condition sets the condition Opened of a Gate.
func condition(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Gate) {
	return func(g *v1alpha1.Gate) {
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: reason, Message: message}}
	}
}

func TestStateOfGateAsJSON(t *testing.T) {
	t.Parallel()
	opened := condition(metav1.ConditionTrue, "OpenPeriod", `Gate is open: "day"`)
	r := &fake{gates: []*v1alpha1.Gate{
		gateOf("web", opened),
		gateOf("db", condition(metav1.ConditionFalse, "CloseRequested", "Gate is closed"), func(g *v1alpha1.Gate) { g.Status.NextTransition = nil }),
		gateOf("late", opened, func(g *v1alpha1.Gate) { g.Status.NextTransition.At = metav1.NewTime(noon) }),
		gateOf("paused", opened, func(g *v1alpha1.Gate) { g.Spec.Suspend = true }),
		gateOf("edited", opened, func(g *v1alpha1.Gate) { g.Generation = 2 }),
		gateOf("new", func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }),
		gateOf("watched", opened, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }),
	}}
	const day = `"reason":"OpenPeriod","message":"Gate is open: \"day\""`
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"web":                                {200, `{"namespace":"shop","name":"web","state":"opened",` + day + `,"until":"2026-11-26T15:00:00Z","next":"closed"}`},
		"db":                                 {200, `{"namespace":"shop","name":"db","state":"closed","reason":"CloseRequested","message":"Gate is closed"}`},
		"late":                               {200, `{"namespace":"shop","name":"late","state":"closed",` + day + `}`},
		"paused":                             {200, `{"namespace":"shop","name":"paused","state":"unknown",` + day + `,"until":"2026-11-26T15:00:00Z","next":"closed"}`},
		"edited":                             {200, `{"namespace":"shop","name":"edited","state":"unknown"}`},
		"new":                                {200, `{"namespace":"shop","name":"new","state":"unknown"}`},
		"watched":                            {200, `{"namespace":"shop","name":"watched","state":"opened",` + day + `,"mode":"Audit","until":"2026-11-26T15:00:00Z","next":"closed"}`},
		"web?at=2026-11-26T12:00:00Z":        {200, `{"namespace":"shop","name":"web","at":"2026-11-26T12:00:00Z","state":"opened","reason":"OpenPeriod","until":"2026-11-26T15:00:00Z","next":"closed"}`},
		"web?at=2026-11-27T07:00:00Z":        {200, `{"namespace":"shop","name":"web","at":"2026-11-27T07:00:00Z","state":"closed","reason":"OutsideOpenPeriods","until":"2026-11-27T09:00:00Z","next":"opened"}`},
		"web?at=2027-11-27T11:59:59Z":        {200, `{"namespace":"shop","name":"web","at":"2027-11-27T11:59:59Z","state":"opened","reason":"OpenPeriod"}`},
		"web?at=2027-11-27T12:00:00Z":        {400, `{"error":"at=2027-11-27T12:00:00Z: must be a time such as 2026-11-26T12:00:00Z, from now on, at most 366 days ahead"}`},
		"web?at=2026-11-26T11:59:59Z":        {400, `{"error":"at=2026-11-26T11:59:59Z: must be a time such as 2026-11-26T12:00:00Z, from now on, at most 366 days ahead"}`},
		"web?at=tomorrow":                    {400, `{"error":"at=tomorrow: must be a time such as 2026-11-26T12:00:00Z, from now on, at most 366 days ahead"}`},
		"none":                               {404, `{"error":"there is no gate \"none\" in namespace \"shop\", or you may not see it"}`},
		"%3Cscript%3E":                       {404, `{"error":"there is no gate \"<script>\" in namespace \"shop\", or you may not see it"}`},
		"web?at=2026-11-27T07:00:00%2B01:00": {200, `{"namespace":"shop","name":"web","at":"2026-11-27T07:00:00+01:00","state":"closed","reason":"OutsideOpenPeriods","until":"2026-11-27T09:00:00Z","next":"opened"}`},
	} {
		if code, body := get(t, r, "/api/v1/namespaces/shop/gates/"+path); code != want.code || strings.TrimSpace(body) != want.body {
			t.Errorf("%s: %d\n got %s\nwant %s", path, code, body, want.body)
		}
	}
	r.notes = []string{"exceptions do not count here"}
	for path, want := range map[string]string{
		"web":                         `"state":"opened",` + day + `,"until":"2026-11-26T15:00:00Z","next":"closed"}`,
		"web?at=2026-11-26T12:00:00Z": `"state":"unknown","reason":"OpenPeriod","until":"2026-11-26T15:00:00Z","next":"closed","warnings":["exceptions do not count here"]}`,
		"web?at=2026-11-27T07:00:00Z": `"state":"closed","reason":"OutsideOpenPeriods","until":"2026-11-27T09:00:00Z","next":"opened","warnings":["exceptions do not count here"]}`,
	} {
		if _, body := get(t, r, "/api/v1/namespaces/shop/gates/"+path); !strings.HasSuffix(strings.TrimSpace(body), want) {
			t.Errorf("%s without exceptions: got %s, want %s", path, body, want)
		}
	}
	r.err = errors.New("no cluster")
	if code, body := get(t, r, "/api/v1/namespaces/shop/gates/web"); code != http.StatusBadGateway || !strings.Contains(body, `"no cluster"`) {
		t.Errorf("without a cluster: %d %s", code, body)
	}
	if code, _ := get(t, &fake{bare: true}, "/api/v1/namespaces/shop/gates/web"); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}
	if code, _ := get(t, &fake{refused: Refused{http.StatusUnauthorized, errors.New("no token")}}, "/api/v1/namespaces/shop/gates/web"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", code)
	}
}

func TestStateOfGateIsCached(t *testing.T) {
	t.Parallel()
	r := &fake{gates: []*v1alpha1.Gate{gateOf("web", condition(metav1.ConditionTrue, "OpenPeriod", "open"))}}
	h := pages(t, r)
	ask := func(etag string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces/shop/gates/web", nil)
		request.Header.Set("If-None-Match", etag)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		return recorder
	}
	first := ask("")
	tag := first.Header().Get("ETag")
	if first.Code != http.StatusOK || first.Header().Get("Cache-Control") != "private, no-cache" || first.Header().Get("Vary") != "Authorization" || len(tag) < 10 {
		t.Errorf("got %d, %v", first.Code, first.Header())
	}
	r.err = errors.New("no cluster")
	if failed := ask(tag); failed.Code != http.StatusBadGateway || failed.Header().Get("Cache-Control") != "private, no-cache" || failed.Header().Get("ETag") != "" {
		t.Errorf("an error: %d, %v", failed.Code, failed.Header())
	}
	r.err = nil
	r.clock.SetTime(noon.Add(time.Hour))
	if again := ask(`"other", ` + tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("an unchanged state: %d, %s", again.Code, again.Body)
	}
	r.gates[0].Status.NextTransition.At = metav1.NewTime(noon.Add(2 * time.Hour))
	if changed := ask(tag); changed.Code != http.StatusOK || changed.Header().Get("ETag") == tag {
		t.Errorf("a changed state: %d, %v", changed.Code, changed.Header())
	}
}
