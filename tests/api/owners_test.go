package api_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// owned is an object that several field managers apply.
type owned struct {
	*harness.World
	kind string
}

// apply applies a spec in YAML as a field manager.
func (o owned) apply(manager, spec string, opts ...client.ApplyOption) error {
	o.Helper()
	content := map[string]any{}
	o.Must(yaml.Unmarshal([]byte(spec), &content))
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(o.kind))
	obj.SetNamespace(o.Namespace)
	obj.SetName("owned")
	return o.Client.Apply(o.Context(), client.ApplyConfigurationFromUnstructured(obj), append(opts, client.FieldOwner(manager))...)
}

// applied applies a spec as a field manager, and checks the names of the periods in a list afterwards.
func (o owned) applied(manager, spec, list string, want ...string) {
	o.Helper()
	o.Must(o.apply(manager, spec))
	if got := o.periods(list); !slices.Equal(got, want) {
		o.Errorf("%s are %q, want %q", list, got, want)
	}
}

// refused applies a spec as a field manager, and expects an error with a cause.
func (o owned) refused(manager, spec, cause string) {
	o.Helper()
	if err := o.apply(manager, spec); err == nil || !strings.Contains(err.Error(), cause) {
		o.Errorf("%s: got %v, want %q", spec, err, cause)
	}
}

// periods returns the names in a list of periods, in their order.
func (o owned) periods(list string) (names []string) {
	o.Helper()
	obj := harness.Object(v1alpha1.GroupVersion.String(), o.kind, o.Key("owned"))
	o.Read(obj)
	all, _, err := unstructured.NestedSlice(obj.Object, "spec", list)
	o.Must(err)
	for _, period := range all {
		names = append(names, period.(map[string]any)["name"].(string))
	}
	return names
}

// createdBy creates an object by applying it with the field manager sre and additional fields of the spec.
func createdBy(t *testing.T, kind, spec string) owned {
	t.Helper()
	o := owned{harness.NewWorld(t, cluster), kind}
	o.Must(o.apply("sre", spec))
	return o
}

// ownedLists are the lists of periods, with the other fields that the object needs.
var ownedLists = map[string]struct{ kind, list, rest string }{
	"openPeriods":  {v1alpha1.GateKind, "openPeriods", "default: closed"},
	"closeperiods": {v1alpha1.GateKind, "closePeriods", "default: closed"},
	"exceptions": {
		v1alpha1.GateExceptionKind, "openPeriods",
		`gateRef: {name: production}, timeZone: UTC, validFrom: "2026-12-01T00:00:00Z", validUntil: "2026-12-02T00:00:00Z"`,
	},
}

const (
	nights = `{name: nights, start: "22:00", end: "05:00", daysOfWeek: [Monday]}`
	noon   = `{name: noon, start: "12:00", end: "13:00"}`
)

func TestFieldManagersOwnPeriods(t *testing.T) {
	for name, tc := range ownedLists {
		t.Run(name, func(t *testing.T) {
			of := func(periods ...string) string {
				return `{` + tc.rest + `, ` + tc.list + `: [` + strings.Join(periods, ", ") + `]}`
			}
			alone := func(periods ...string) string { return `{` + tc.list + `: [` + strings.Join(periods, ", ") + `]}` }
			o := createdBy(t, tc.kind, of(nights))

			o.applied("platform", alone(noon), tc.list, "nights", "noon")
			o.applied("sre", of(nights), tc.list, "nights", "noon")
			// Each field manager changes its own period.
			o.applied("platform", alone(strings.Replace(noon, "13:00", "13:30", 1)), tc.list, "nights", "noon")
			o.applied("platform", alone(noon, `{name: tea, start: "17:00", end: "17:30"}`), tc.list, "nights", "noon", "tea")
			// Each field manager removes its own period.
			o.applied("platform", alone(noon), tc.list, "nights", "noon")
			o.applied("sre", of(noon, strings.Replace(nights, "nights", "late", 1)), tc.list, "noon", "late")
			o.applied("sre", of(nights), tc.list, "noon", "nights")
			o.applied("platform", `{}`, tc.list, "nights")
		})
	}
}

// A period has one owner, or several that agree. Otherwise a field manager that adds a day to another manager's window would open the Gate
// then without a warning.
func TestChangeOfForeignPeriodConflicts(t *testing.T) {
	for name, tc := range ownedLists {
		t.Run(name, func(t *testing.T) {
			of := func(rest string, periods ...string) string {
				return `{` + rest + tc.list + `: [` + strings.Join(periods, ", ") + `]}`
			}
			o := createdBy(t, tc.kind, of(tc.rest+", ", nights))
			for _, change := range []string{
				strings.Replace(nights, "22:00", "21:00", 1),
				strings.Replace(nights, "[Monday]", "[Monday, Tuesday]", 1),
				strings.Replace(nights, "}", ", timeZone: Europe/Oslo}", 1),
				`{name: nights, daysOfWeek: [Sunday]}`, `{name: nights}`, `{name: nights, schedule: "0 22 * * *", duration: 7h}`,
			} {
				err := o.apply("platform", of("", change))
				if want := `conflict with "sre": .spec.` + tc.list + `[name="nights"]`; !apierrors.IsConflict(err) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", change, err, want)
				}
			}
			// A field manager that applies the same value becomes an owner as well. The period stays until both have removed it.
			o.applied("platform", of("", nights), tc.list, "nights")
			o.refused("sre", of(tc.rest+", ", strings.Replace(nights, "22:00", "21:00", 1)), `conflict with "platform"`)
			o.applied("sre", `{`+tc.rest+`}`, tc.list, "nights")
			// A forced apply takes over the ownership.
			o.Must(o.apply("sre", of(tc.rest+", ", strings.Replace(nights, "22:00", "21:00", 1)), client.ForceOwnership))
			o.refused("platform", of("", nights), `conflict with "sre"`)
		})
	}
}

// Otherwise tokens for another audience would be accepted without a warning to the owner of the provider.
func TestChangeOfForeignProviderConflicts(t *testing.T) {
	other := `{issuerURL: "https://other.example.com", validations: [{expression: "claims.sub == 'a'", message: m}]}`
	o := createdBy(t, v1alpha1.GateReceiverKind, oidc("["+provider("https://a.example.com")+"]", ""))
	o.Must(o.apply("platform", `{oidcProviders: [`+other+`]}`))
	o.Must(o.apply("sre", oidc("["+provider("https://a.example.com")+"]", "")))
	for _, change := range []string{`audience: "b"`, `variables: [{name: a, expression: "1"}]`} {
		o.refused("platform", `{oidcProviders: [`+other+`, {issuerURL: "https://a.example.com", `+change+`}]}`, `conflict with "sre": .spec.oidcProviders[issuerURL="https://a.example.com"]`)
	}
	o.refused("sre", oidc("["+strings.Replace(other, "claims.sub", "claims.aud", 1)+"]", ""), `conflict with "platform": .spec.oidcProviders[issuerURL="https://other.example.com"]`)
}

// A server-side apply by Flux or kubectl gets other messages than a create.
func TestDuplicateNamesInApplyAreRefused(t *testing.T) {
	for name, tc := range ownedLists {
		t.Run(name, func(t *testing.T) {
			o := createdBy(t, tc.kind, `{`+tc.rest+`, `+tc.list+`: [`+nights+`]}`)
			o.refused("sre", `{`+tc.rest+`, `+tc.list+`: [`+noon+`, `+noon+`]}`, `.spec.`+tc.list+`: duplicate entries for key [name="noon"]`)
		})
	}
	o := createdBy(t, v1alpha1.GateKind, `{default: closed, openPeriods: [`+nights+`]}`)
	o.refused("platform", `{closePeriods: [`+nights+`]}`, causeBoth)
}
