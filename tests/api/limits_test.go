package api_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/validate"
)

// nested returns a list of n items. Each consists of before, the item's number and after. Both strings may contain verbs.
func nested(n int, before, after string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = before + fmt.Sprintf("%03d", i) + after
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// join joins lists.
func join(lists ...string) string {
	var all []string
	for _, l := range lists {
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(l, "["), "]"))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// selecting returns a target and a wave that use every part of a selector: 6 keys of k characters, and 36 labels, expressions and values.
func selecting(k int) (target, wave string) {
	parts := `matchLabels: {` + long(k) + `: b}, matchExpressions: [{key: ` + long(k) + `, operator: In, values: ` + list(10, "v%d") + `}]`
	return `{apiVersion: v1, kind: K, name: "*", ` + parts + `, namespaceSelector: {` + parts + `}}`, `{name: a, ` + parts + `}`
}

// calendarPeriods returns n periods with categories.
func calendarPeriods(n int, name, categories string) string {
	return nested(n, `{name: `+name, `, calendar: {configMapRef: {name: a, key: b}, categories: `+categories+`}}`)
}

// totals are the bounds of several fields together. In each spec, all of these fields contribute to n.
var totals = map[string]struct {
	kind string
	n    int
	spec func(n int) string
	path string
	want string
}{
	"periods of a Gate": {v1alpha1.GateKind, 100, func(n int) string {
		return `{default: closed, openPeriods: ` + periods(50) + `, closePeriods: ` + strings.ReplaceAll(periods(n-50), "name: ", "name: c") + `}`
	}, "spec", causeCount},
	"periods of a GateException": {v1alpha1.GateExceptionKind, 100, func(n int) string {
		return opening(periods(50) + `, closePeriods: ` + strings.ReplaceAll(periods(n-50), "name: ", "name: c"))
	}, "spec", causeMany},
	"labels, expressions and values of a Gate": {v1alpha1.GateKind, 1024, func(n int) string {
		target, wave := selecting(1)
		rest := `{kind: K, name: "*", matchLabels: ` + labels(n-36-30*32, "a") + `}`
		return `{default: closed, targets: ` + join(target, rest, nested(30, `{kind: K, name: "*", namespace: n`, `, matchLabels: `+labels(32, "a")+`}`)) + `, release: {waves: [` + wave + `]}}`
	}, "spec", causeSelected},
	"characters of references and keys of a Gate": {v1alpha1.GateKind, 65_536, func(n int) string {
		target, wave := selecting(60)
		rest := `{kind: K, name: ` + long(n-len("v1K*")-6*60-205*(1+253+63)-1) + `}`
		return `{default: closed, targets: ` + join(target, rest, nested(205, `{kind: K, name: `+long(250), `, namespace: `+long(63)+`}`)) + `, release: {waves: [` + wave + `]}}`
	}, "spec", causeCharacters},
	"categories of a Gate": {v1alpha1.GateKind, 1024, func(n int) string {
		return `{default: closed, openPeriods: ` + calendarPeriods(31, "o", "["+categories(32)+"]") + `, closePeriods: ` +
			join(calendarPeriods(1, "c", "["+categories(16)+"]"), calendarPeriods(1, "d", "["+categories(n-31*32-16)+"]")) + `}`
	}, "spec", causeCategories},
	"characters of categories of a Gate": {v1alpha1.GateKind, 16_384, func(n int) string {
		full := calendarPeriods(4, "o", nested(31, long(125), ""))
		return `{default: closed, openPeriods: ` + full + `, closePeriods: ` + calendarPeriods(1, "c", join(nested(2, long(125), ""), long(100), long(n-4*31*128-2*128-100-50), strings.Repeat("b", 50))) + `}`
	}, "spec", causeCategories},
	"characters of readyExpr of a Gate": {v1alpha1.GateKind, 16_384, func(n int) string {
		return `{default: closed, dependsOn: ` + join(nested(3, `{kind: K, name: a`, `, readyExpr: `+long(4096)+`}`), `{kind: K, name: b, readyExpr: `+long(2048)+`}`, `{kind: K, name: c, readyExpr: `+long(n-3*4096-2048)+`}`) + `}`
	}, "spec.dependsOn", "at most 16,384 characters together"},
	"characters of the providers of a GateReceiver": {v1alpha1.GateReceiverKind, 65_536, func(n int) string {
		rest := long(n - len("https://a") - len("audience") - len("v") - len("1") - len("https://b") - 15*(4096+1) - 1)
		return oidc(join(`{issuerURL: "https://a", audience: audience, variables: [{name: v, expression: "1"}], validations: [{expression: `+rest+`, message: m}]}`,
			`{issuerURL: "https://b", validations: `+nested(15, `{message: m, expression: `+long(4093), `}`)+`}`), "")
	}, "spec.oidcProviders", "at most 65,536 characters together"},
}

func TestTotalsAreExact(t *testing.T) {
	for name, tc := range totals {
		t.Run(name, func(t *testing.T) {
			if err := admitKind(t, tc.kind, tc.spec(tc.n)); err != nil {
				t.Errorf("%d are refused: %.900s", tc.n, err)
			}
			err := admitKind(t, tc.kind, tc.spec(tc.n+1))
			if err == nil {
				t.Fatalf("%d are accepted", tc.n+1)
			}
			if all := causes(t, err); len(all) != 1 || !strings.HasPrefix(all[0], tc.path+": ") || !strings.Contains(all[0], tc.want) {
				t.Errorf("got %.900q, want %q at %s", all, tc.want, tc.path)
			}
		})
	}
}

// Bounds for every object: its size in JSON as the API server returns it, and the cost of its validation, which compiles all schedules and
// expressions. The time bound allows for a busy machine.
const (
	maxSize      = 512 << 10
	maxTime      = 10 * time.Second
	maxAllocated = 256 << 20
)

// largestSelector has the maximum number of labels, expressions and values of a selector.
var largestSelector = `{matchLabels: {` + strings.Trim(nested(32, long(253)+"/"+long(60), ": "+long(63)), "[]") + `}, matchExpressions: ` +
	nested(32, `{operator: NotIn, key: `+long(253)+"/"+long(60), `, values: `+nested(64, long(60), "")+`}`) + `}`

// largest has the largest spec of each kind and the minimum number of bytes it must have. The character < takes most bytes: JSON escapes
// it as \u003c.
var largest = map[string]struct {
	least int
	spec  string
}{
	v1alpha1.GateKind: {400 << 10, func() string {
		period := `, timeZone: America/Argentina/ComodRivadavia, calendar: {configMapRef: {name: ` + long(253) + `, key: ` + long(253) + `}`
		targets := join(nested(32, `{kind: K, name: "*", namespace: n`, `, matchLabels: {`+strings.Trim(nested(32, long(57), ": "+long(63)), "[]")+`}}`), nested(224, `{apiVersion: v1, kind: K, namespace: shop, name: a`, `}`))
		reference := `{apiVersion: ` + long(253) + `/v1, kind: K` + long(62) + `, namespace: ` + long(63)
		depends := join(nested(4, reference+`, readyExpr: "'`+strings.Repeat("<", 4090)+`'==''", name: `+long(250), `}`), nested(12, reference+`, name: `+strings.Repeat("b", 250), `}`))
		return `{default: closed, timeZone: America/Argentina/ComodRivadavia, openPeriods: ` + nested(32, `{name: `+long(60), period+`, categories: `+nested(32, strings.Repeat("<", 13), "")+`}}`) +
			`, closePeriods: ` + nested(68, `{name: `+strings.Repeat("b", 60), period+`}}`) + `, targets: ` + targets + `, dependsOn: ` + depends + `}`
	}()},
	v1alpha1.GateExceptionKind: {40 << 10, exception(`, timeZone: America/Argentina/ComodRivadavia, leadTime: 2160h, closePeriods: ` +
		nested(100, `{timeZone: America/Argentina/ComodRivadavia, duration: 8784h, schedule: "`+strings.Trim(strings.ReplaceAll(list(60, "%d"), " ", ""), "[]")+" "+strings.Trim(strings.ReplaceAll(list(24, "%d"), " ", ""), "[]")+` 1,2,3 * MON-FRI", name: `+long(60), `}`))},
	v1alpha1.GateReceiverKind: {380 << 10, func() string {
		expression := `, expression: "'` + strings.Repeat("<", 80) + `'==''"`
		provider := `, audience: ` + long(80) + `, variables: ` + nested(32, `{name: v`, expression+`}`) + `, validations: ` + nested(32, `{message: m`, expression+`}`) + `}`
		return `{type: generic-oidc, gateRefs: ` + nested(10, `{name: `+long(250), `}`) + `, actionExpr: "'` + strings.Repeat("<", 4094) + `'", filter: "'` + strings.Repeat("<", 4090) + `'==''", oidcProviders: ` + nested(10, `{issuerURL: https://`+long(240), provider) + `}`
	}()},
	v1alpha1.GatedSourceKind:               {3 << 10, `{sourceRef: {kind: GitRepository, name: ` + long(253) + `}, pinnedName: b` + long(252) + `, revision: ` + strings.Repeat("<", 512) + `}`},
	v1alpha1.CalendarFeedKind:              {150 << 10, `{secretRef: {name: ` + long(253) + `}, selector: ` + largestSelector + `}`},
	v1alpha1.MachineCertificateRefreshKind: {150 << 10, `{gateRefs: ` + nested(10, `{name: `+long(250), `}`) + `, selector: ` + largestSelector + `}`},
}

func TestLargestObjectsAreAccepted(t *testing.T) {
	if len(largest) != len(validate.Kinds()) {
		t.Errorf("%d of %q are tested", len(largest), validate.Kinds())
	}
	for kind, tc := range largest {
		t.Run(kind, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			errs := validate.Object(object(t, kind, tc.spec))
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if len(errs) > 0 {
				t.Errorf("%.900s", errs.ToAggregate())
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			if took > maxTime || allocated > maxAllocated {
				t.Errorf("its validation took %s and %d bytes", took, allocated)
			}
			obj := object(t, kind, tc.spec)
			if err := cluster.Client.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Fatalf("%.900s", err)
			}
			data, err := json.Marshal(obj.Object)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("size %d bytes, validated in %s with %d bytes", len(data), took, allocated)
			if len(data) > maxSize || len(data) < tc.least {
				t.Errorf("the size is %d bytes, want at most %d and at least %d", len(data), maxSize, tc.least)
			}
		})
	}
}
