package target_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
)

const day = 24 * time.Hour

var (
	issued  = time.Date(2026, 11, 1, 10, 0, 30, 0, time.UTC)
	expires = issued.Add(90 * day)
	// margin is a day before the end, rounded down to a minute.
	margin = time.Date(2027, 1, 29, 10, 0, 0, 0, time.UTC)

	until = deferral("0 10 29 1 *", "2160h0m0s")
	never = map[string]any{"renewal": map[string]any{"policy": "Disabled"}}
)

// cert changes a Certificate that was issued for 90 days and is ready.
type cert func(spec, status map[string]any, obj *target.Object)

func certificate(changes ...cert) *target.Object {
	spec := map[string]any{"secretName": "www", "dnsNames": []any{"example.com"}}
	status := map[string]any{
		"notBefore": issued.Format(time.RFC3339), "notAfter": expires.Format(time.RFC3339),
		"renewalTime": issued.Add(60 * day).Format(time.RFC3339),
		"conditions":  []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": int64(1)}},
	}
	obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"name": "www", "namespace": "shop", "generation": int64(1)},
		"spec":     spec, "status": status,
	}}}
	for _, change := range changes {
		change(spec, status, obj)
	}
	target.Trim(&obj.Unstructured, identity)
	return obj
}

func lasting(lifetime time.Duration) cert {
	return func(_, status map[string]any, _ *target.Object) {
		status["notAfter"] = issued.Add(lifetime).Format(time.RFC3339)
	}
}

func with(field string, value any) cert {
	return func(spec, _ map[string]any, _ *target.Object) { spec[field] = value }
}

func reported(field string, value any) cert {
	return func(_, status map[string]any, _ *target.Object) {
		status[field] = value
		if value == nil {
			delete(status, field)
		}
	}
}

func conditioned(name, state, reason string) cert {
	return func(_, status map[string]any, _ *target.Object) {
		var others []any
		for _, c := range status["conditions"].([]any) {
			if c.(map[string]any)["type"] != name {
				others = append(others, c)
			}
		}
		status["conditions"] = append(others, map[string]any{"type": name, "status": state, "reason": reason, "observedGeneration": int64(1)})
	}
}

// behind makes the status that of the previous generation.
func behind(_, _ map[string]any, obj *target.Object) { obj.SetGeneration(2) }

func deferral(cron, duration string) map[string]any {
	return map[string]any{"renewal": map[string]any{"policy": "RenewBefore", "windows": []any{
		map[string]any{"cron": cron, "windowDuration": duration},
	}}}
}

// heldWith makes a Certificate held by this controller.
func heldWith(lever map[string]any) cert {
	return func(spec, _ map[string]any, obj *target.Object) {
		maps.Copy(spec, lever)
		field := "renewal"
		if lever["renewBefore"] != nil {
			field = "renewBefore"
		}
		obj.SetAnnotations(map[string]string{heldBy: "ns/a"})
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{owner(manager, apply, "",
			`{"f:metadata":{"f:annotations":{"f:`+heldBy+`":{}}},"f:spec":{"f:`+field+`":{}}}`)})
	}
}

func TestHeldRenewal(t *testing.T) {
	modern := target.Definition{Spec: map[string]bool{"renewal": true, "renewBefore": true}}
	old := target.Definition{Spec: map[string]bool{"renewBefore": true}}
	broken := target.Definition{Spec: modern.Spec, Release: "v1.21.0"}
	lax := target.Terms{Margin: day, Definition: modern}
	strict := target.Terms{Margin: day, Definition: modern, Strict: true}
	ignoring := target.Terms{Margin: day, Definition: modern, Ignored: true}
	activating := target.Terms{Margin: day, Definition: modern, Activates: true}
	short := deferral("0 15 1 11 *", "6h0m0s")
	twoDays := deferral("0 2 3 11 *", "48h0m0s")
	ari := func(_, status map[string]any, _ *target.Object) {
		status["acme"] = map[string]any{"ari": map[string]any{"suggestedWindow": map[string]any{"start": "2027-01-01T00:00:00Z"}}}
	}
	issuing, notReady := conditioned("Issuing", "True", "Renewing"), conditioned("Ready", "False", "MissingData")
	misplaced := conditioned("Ready", "False", "WindowError")
	renewBefore := func(d string) map[string]any { return map[string]any{"renewBefore": d} }
	noon := issued.Add(30 * day)
	deferred := target.Plan{Lever: until, Recheck: margin}
	exempt := func(e target.Exemption) target.Plan { return target.Plan{Exempt: e} }
	bypassed := target.Plan{Exempt: target.Imminent, Bypassed: true}
	stale := func(p target.Plan) target.Plan { p.Stale = true; return p }
	for name, tc := range map[string]struct {
		obj   *target.Object
		terms target.Terms
		now   time.Time
		want  target.Plan
	}{
		"until the margin":                                    {certificate(), lax, noon, deferred},
		"held until the margin":                               {certificate(heldWith(until), reported("renewalTime", "2027-01-29T10:00:00Z")), lax, noon, deferred},
		"held, cert-manager has not seen it yet":              {certificate(heldWith(until), conditioned("Ready", "True", "Ready"), behind), lax, noon, deferred},
		"held, cert-manager found another time":               {certificate(heldWith(until)), lax, noon, stale(target.Plan{Lever: never, Ignored: true, Recheck: margin})},
		"held, cert-manager found no time":                    {certificate(heldWith(until), reported("renewalTime", nil)), lax, noon, stale(target.Plan{Lever: never, Ignored: true, Recheck: margin})},
		"what was disabled for that reason stays so":          {certificate(heldWith(never)), ignoring, noon, target.Plan{Lever: never, Ignored: true, Recheck: margin}},
		"no longer strict":                                    {certificate(heldWith(never)), lax, noon, stale(deferred)},
		"ignored before, but held again":                      {certificate(), ignoring, noon, deferred},
		"held in another way":                                 {certificate(heldWith(map[string]any{"renewal": map[string]any{"policy": "RenewBefore"}})), lax, noon, stale(deferred)},
		"renewed by hand, the windows are of before":          {certificate(heldWith(map[string]any{"renewal": map[string]any{"policy": "RenewBefore"}}), misplaced), lax, noon, stale(deferred)},
		"strict: for good":                                    {certificate(), strict, noon, target.Plan{Lever: never}},
		"strict: also when it has expired":                    {certificate(heldWith(never), notReady), strict, expires.Add(day), target.Plan{Lever: never}},
		"no longer than a sixth of the lifetime":              {certificate(lasting(6 * time.Hour)), lax, issued, target.Plan{Lever: short, Recheck: issued.Add(5 * time.Hour).Truncate(time.Minute)}},
		"a long lifetime: the controller ends it":             {certificate(lasting(181 * day)), lax, noon, target.Plan{Lever: never, Recheck: issued.Add(180 * day).Truncate(time.Minute)}},
		"ACME renewal information: windows are void":          {certificate(ari), lax, noon, target.Plan{Lever: never, Recheck: margin}},
		"at the margin":                                       {certificate(heldWith(until)), lax, margin, bypassed},
		"just before the margin":                              {certificate(), lax, margin.Add(-1), deferred},
		"disabled, at the margin":                             {certificate(heldWith(never)), lax, margin, bypassed},
		"expired":                                             {certificate(heldWith(never), notReady), lax, expires.Add(day), bypassed},
		"free, at the margin, being issued":                   {certificate(issuing), lax, margin, bypassed},
		"held, being issued at the margin":                    {certificate(heldWith(until), issuing), lax, margin, target.Plan{Lever: until, Bypassed: true}},
		"held, being issued by hand":                          {certificate(heldWith(until), issuing), lax, noon, target.Plan{Lever: until}},
		"held, and somebody has a renewBefore":                {certificate(heldWith(until), with("renewBefore", "25h"), reported("renewalTime", "2027-01-29T10:00:00Z")), lax, noon, deferred},
		"the same, and cert-manager found another time":       {certificate(heldWith(until), with("renewBefore", "25h")), lax, noon, stale(target.Plan{Lever: never, Ignored: true, Recheck: margin})},
		"held, somebody's renewBefore, cert-manager is older": {certificate(heldWith(until), with("renewBefore", "25h")), target.Terms{Margin: day, Definition: broken}, noon, exempt(target.Unsupported)},
		"held otherwise, being issued":                        {certificate(heldWith(never), issuing), lax, noon, target.Plan{Lever: never}},
		"being issued":                                        {certificate(issuing), lax, noon, exempt(target.NotReady)},
		"never issued":                                        {certificate(reported("notAfter", nil), notReady), lax, noon, exempt(target.NotReady)},
		"not ready":                                           {certificate(notReady), lax, noon, exempt(target.NotReady)},
		"not ready, strict":                                   {certificate(notReady), strict, noon, exempt(target.NotReady)},
		"held and no longer ready":                            {certificate(heldWith(until), notReady), lax, noon, deferred},
		"held, its Secret is gone":                            {certificate(heldWith(until), notReady, reported("notAfter", nil), reported("notBefore", nil)), lax, noon, target.Plan{Lever: until}},
		"renewed only after the margin anyway":                {certificate(with("renewBefore", "23h")), lax, noon, target.Plan{Exempt: target.Needless, Recheck: margin}},
		"the same, strict":                                    {certificate(with("renewBefore", "23h")), strict, noon, target.Plan{Lever: never}},
		"renewed before the margin":                           {certificate(with("renewBefore", "25h")), lax, noon, deferred},
		"by a percentage after the margin":                    {certificate(with("renewBeforePercentage", int64(1))), lax, noon, target.Plan{Exempt: target.Needless, Recheck: margin}},
		"a renewBefore longer than the lifetime":              {certificate(with("renewBefore", "2400h")), lax, noon, deferred},
		"a renewBefore below zero":                            {certificate(with("renewBefore", "-1h")), lax, noon, deferred},
		"a renewBefore of zero":                               {certificate(with("renewBefore", "0s")), lax, noon, deferred},
		"a percentage of zero":                                {certificate(with("renewBeforePercentage", int64(0))), lax, noon, deferred},
		"old: by renewBefore":                                 {certificate(), target.Terms{Margin: day, Definition: old}, noon, target.Plan{Lever: renewBefore("24h0m30s"), Recheck: margin}},
		"old: held so":                                        {certificate(heldWith(renewBefore("24h0m30s"))), target.Terms{Margin: day, Definition: old}, noon, target.Plan{Lever: renewBefore("24h0m30s"), Recheck: margin}},
		"old: somebody's renewBefore":                         {certificate(with("renewBefore", "720h")), target.Terms{Margin: day, Definition: old}, noon, exempt(target.Unsupported)},
		"old: somebody's percentage":                          {certificate(with("renewBeforePercentage", int64(50))), target.Terms{Margin: day, Definition: old}, noon, exempt(target.Unsupported)},
		"old: no shorter than the webhook allows":             {certificate(), target.Terms{Margin: time.Minute, Definition: old}, noon, target.Plan{Lever: renewBefore("5m0s"), Recheck: expires.Add(-time.Minute).Truncate(time.Minute)}},
		"old and strict: as late as possible":                 {certificate(), target.Terms{Margin: day, Definition: old, Strict: true}, noon, target.Plan{Lever: renewBefore("5m0s")}},
		"v1.21.0 must not see Disabled":                       {certificate(), target.Terms{Margin: day, Definition: broken, Strict: true}, noon, target.Plan{Lever: renewBefore("5m0s")}},
		"cert-manager was updated":                            {certificate(heldWith(renewBefore("24h0m30s"))), lax, noon, stale(deferred)},
		"a time that cannot be read is none":                  {certificate(reported("notAfter", "soon")), lax, noon, exempt(target.NotReady)},
		"an end before its beginning":                         {certificate(lasting(-day)), lax, noon, exempt(target.NotReady)},
		"activated into another Secret":                       {certificate(), activating, noon, exempt(target.Activates)},
		"held, activated into another Secret later":           {certificate(heldWith(until)), activating, noon, exempt(target.Activates)},
		"activated into another Secret, at the end":           {certificate(), activating, margin, exempt(target.Activates)},
		"activated, and not ready":                            {certificate(notReady), activating, noon, exempt(target.Activates)},
		"a margin longer than a third of the life":            {certificate(lasting(2 * day)), lax, issued, target.Plan{Lever: twoDays, Recheck: issued.Add(40 * time.Hour).Truncate(time.Minute)}},
		"a life too short for a whole minute between":         {certificate(lasting(4 * time.Minute)), lax, issued, target.Plan{Exempt: target.Needless, Recheck: issued.Add(200 * time.Second).Truncate(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			adapter := target.Of(&tc.obj.Unstructured)
			got := adapter.Plan(tc.obj, adapter.Observe(tc.obj, identity), tc.terms, tc.now)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("\ngot  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func owned(entries ...metav1.ManagedFieldsEntry) cert {
	return func(_, _ map[string]any, obj *target.Object) { obj.SetManagedFields(entries) }
}

func TestObserveDistinguishesOurRenewalFromOthers(t *testing.T) {
	const renewal, before = `{"f:spec":{"f:renewal":{".":{},"f:policy":{}}}}`, `{"f:spec":{"f:renewBefore":{}}}`
	names := func(_, _ map[string]any, obj *target.Object) { obj.SetAnnotations(map[string]string{heldBy: "ns/a"}) }
	ours := owner(manager, apply, "", renewal)
	for name, tc := range map[string]struct {
		obj  *target.Object
		want target.State
	}{
		"nothing is set":                             {certificate(), target.Free},
		"ours":                                       {certificate(heldWith(never)), target.Held},
		"ours, the annotation was removed":           {certificate(with("renewal", never["renewal"]), owned(ours)), target.Held},
		"ours and another client's":                  {certificate(with("renewal", never["renewal"]), owned(ours, owner("flux", apply, "", renewal))), target.SuspendedByOthers},
		"another client's":                           {certificate(with("renewal", never["renewal"]), owned(owner("kubectl", update, "", renewal))), target.SuspendedByOthers},
		"of our name, but by update":                 {certificate(with("renewal", never["renewal"]), owned(owner(manager, update, "", renewal))), target.SuspendedByOthers},
		"without an owner, with a copied annotation": {certificate(with("renewal", never["renewal"]), names, owned(owner("velero", update, "", heldByField))), target.SuspendedByOthers},
		"no owner, managed fields dropped":           {certificate(with("renewal", never["renewal"]), names), target.Locked},
		"without an owner or a name":                 {certificate(with("renewal", never["renewal"])), target.SuspendedByOthers},
		"an empty one is one":                        {certificate(with("renewal", map[string]any{})), target.SuspendedByOthers},
		"somebody's renewBefore holds nothing": {certificate(with("renewBefore", "1h"), owned(owner("flux", apply, "", before))),
			target.Free},
		"our renewBefore":                {certificate(heldWith(map[string]any{"renewBefore": "1h"})), target.Held},
		"our renewBefore, shared":        {certificate(with("renewBefore", "1h"), owned(owner(manager, apply, "", before), owner("flux", apply, "", before))), target.Free},
		"our renewal, their renewBefore": {certificate(heldWith(never), with("renewBefore", "1h")), target.Held},
	} {
		if got := target.Of(&tc.obj.Unstructured).Observe(tc.obj, identity); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestInputsOfCertificatePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		change cert
		want   bool
	}{
		"nothing":               {func(_, _ map[string]any, _ *target.Object) {}, false},
		"another DNS name":      {with("dnsNames", []any{"www.example.com"}), false},
		"the revision":          {reported("revision", int64(2)), false},
		"another failure":       {reported("failedIssuanceAttempts", int64(2)), false},
		"the renewal":           {with("renewal", never["renewal"]), true},
		"renewBefore":           {with("renewBefore", "1h"), true},
		"the expiry":            {reported("notAfter", "2027-03-01T00:00:00Z"), true},
		"the time of a renewal": {reported("renewalTime", nil), true},
		"being issued":          {conditioned("Issuing", "True", "Renewing"), true},
		"no longer ready":       {conditioned("Ready", "False", "Expired"), true},
		"seen by cert-manager":  {behind, true},
	} {
		before, after := certificate(), certificate(tc.change)
		if got := target.Of(&before.Unstructured).Differs(before, after); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
