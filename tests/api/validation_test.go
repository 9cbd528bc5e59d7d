package api_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/validate"
)

// subject is a kind whose specs the API server and the offline validator check.
type subject struct {
	kind string
	bad  []badSpec
	good map[string]string
}

var subjects = []subject{
	{v1alpha1.GateKind, slices.Concat(badSpecs, badReferences), union(goodSpecs, goodReferences)},
	{v1alpha1.GateExceptionKind, badExceptions, goodExceptions},
	{v1alpha1.GateReceiverKind, badReceivers, goodReceivers},
	{v1alpha1.CalendarFeedKind, badCalendars, goodCalendars},
	{v1alpha1.GatedSourceKind, badSources, goodSources},
	{v1alpha1.MachineCertificateRefreshKind, badRefreshes, goodRefreshes},
}

// union returns the specs of both maps.
func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// admit submits a Gate with a spec in YAML to the API server as a dry run.
func admit(t *testing.T, spec string) error {
	t.Helper()
	return admitKind(t, v1alpha1.GateKind, spec)
}

// admitKind submits an object of a kind with a spec in YAML to the API server as a dry run.
func admitKind(t *testing.T, kind, spec string) error {
	t.Helper()
	return cluster.Client.Create(t.Context(), object(t, kind, spec), client.DryRunAll)
}

// object returns an object of a kind with a spec in YAML.
func object(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetGenerateName("spec-")
	return obj
}

// offline returns the errors that the validator of the plugin reports for a spec.
func offline(t *testing.T, kind, spec string) field.ErrorList {
	t.Helper()
	return validate.Object(object(t, kind, spec))
}

// each runs a test for each kind.
func each(t *testing.T, test func(t *testing.T, s subject)) {
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) { test(t, s) })
	}
}

// causes returns the causes in an error of the API server, as "path: message".
func causes(t *testing.T, err error) []string {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want an error of the validation", err)
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		// The API server does not evaluate CEL rules on an object that violates the schema, and reports this in a separate cause.
		if cause.Field != "<nil>" {
			all = append(all, cause.Field+": "+cause.Message)
		}
	}
	return all
}

func TestInvalidSpecIsRefusedWithClearMessage(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for _, tc := range s.bad {
			t.Run(tc.name, func(t *testing.T) {
				err := admitKind(t, s.kind, tc.spec)
				if tc.cause == "" {
					if err != nil {
						t.Errorf("the API server detects more than expected, add a cause to this row: %v", err)
					}
					return
				}
				if err == nil {
					t.Fatal("accepted")
				}
				all := causes(t, err)
				if len(all) != 1 {
					t.Errorf("%d causes, want one clear error: %q", len(all), all)
				}
				if !strings.HasPrefix(all[0], tc.path+": ") || !strings.Contains(all[0], tc.cause) {
					t.Errorf("got  %q\nwant %q at %q", all[0], tc.cause, tc.path)
				}
			})
		}
	})
}

// reworded maps messages of the API server to those of the validator.
var reworded = map[string]string{
	"date-time": "must be a time in RFC 3339", `must be of type string: "integer"`: "must be a string, put it in quotes", "must be of type integer": "must be a whole number",
	"should have at least 1 items": "must have at least 1 item", "should be at least 1 chars long": "must not be empty",
	causeValue: "must be the value of a label, such as critical",
}

// The validator may report more errors: the API server does not evaluate CEL rules if a field violates the schema, and does not have the
// rules of the controller.
func TestOfflineValidationMatchesAPIServer(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for _, tc := range s.bad {
			t.Run(tc.name, func(t *testing.T) {
				errs := offline(t, s.kind, tc.spec)
				if len(errs) != 1 || errs[0].Field != tc.path {
					t.Fatalf("got %v, want one error at %s", errs, tc.path)
				}
				err := admitKind(t, s.kind, tc.spec)
				if (err == nil) != (tc.cause == "") {
					t.Fatalf("the API server returns %v, the validator %v", err, errs)
				}
				if want := cmp.Or(reworded[tc.cause], tc.cause); !strings.Contains(errs[0].Error(), want) {
					t.Errorf("got %q, want %q", errs[0], want)
				}
				for _, term := range []string{"json:", "struct field", "float64", "2006-01-02", "in body"} {
					if strings.Contains(errs[0].Error(), term) {
						t.Errorf("%q is not a term for users: %v", term, errs[0])
					}
				}
			})
		}
	})
}

func TestValidSpecIsAcceptedByBoth(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for name, spec := range s.good {
			t.Run(name, func(t *testing.T) {
				if err := admitKind(t, s.kind, spec); err != nil {
					t.Error("the API server:", err)
				}
				if errs := offline(t, s.kind, spec); len(errs) > 0 {
					t.Error("the offline validator:", errs)
				}
			})
		}
	})
}

// anchored has specs of each kind with a value that a pattern validates.
var anchored = map[string][]struct{ spec, value string }{
	v1alpha1.GateKind: {
		{`{default: closed, openPeriods: [{name: %s, start: "22:00", end: "10:00"}]}`, "a"}, {`{default: closed, openPeriods: [{name: a, start: %s, end: "10:00"}]}`, "22:00"},
		{`{default: closed, openPeriods: [{name: a, start: "22:00", end: %s}]}`, "10:00"}, {`{default: closed, openPeriods: [{name: a, from: %s, until: "2026-12-24"}]}`, "2026-12-24"},
		{`{default: closed, openPeriods: [{name: a, from: "2026-12-24", until: %s}]}`, "2026-12-24"}, {cron("%s * * *"), "0 0"}, {cron("0 0 * * %s"), "5"},
		{`{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: %s, key: a}}}]}`, "a"}, {`{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: a, key: %s}}}]}`, "a"},
		{`{default: closed, targets: [{kind: %s, name: a}]}`, "K"}, {`{default: closed, targets: [{kind: K, name: %s}]}`, "a"}, {`{default: closed, targets: [{kind: K, name: a, namespace: %s}]}`, "a"},
		{`{default: closed, targets: [{kind: K, name: a, apiVersion: %s}]}`, "v1"}, {expression(`operator: Exists, key: %s`), "a"}, {expression(`operator: In, key: a, values: [%s]`), "b"},
		{target(`kind: K, name: "*", matchLabels: {%s: b}`), "a"}, {target(`kind: K, name: "*", matchLabels: {a: %s}`), "b"}, {`{default: closed, release: {waves: [{name: %s, matchLabels: {a: b}}]}}`, "a"},
		{`{default: closed, interval: %s}`, "1h"}, {`{default: closed, window: %s}`, "3d"}, {`{default: closed, notifyBefore: [%s]}`, "1h"}, {`{default: closed, certificates: {safetyMargin: %s}}`, "3d"},
		{`{default: closed, dependsOn: [{kind: %s, name: a}]}`, "K"}, {`{default: closed, dependsOn: [{kind: K, name: %s}]}`, "a"}, {`{default: closed, dependsOn: [{kind: K, name: a, namespace: %s}]}`, "a"},
	},
	v1alpha1.GateExceptionKind: {{exception(`, default: closed, ttlAfterExpired: %s`), "1h"}, {exception(closesOnce + `, leadTime: %s`), "1h"}},
	v1alpha1.GateReceiverKind: {
		{`{type: generic, secretRef: {name: s}, gateRefs: [{name: %s}], action: close}`, "a"}, {`{type: generic, secretRef: {name: %s}, gateRefs: [{name: a}], action: close}`, "s"},
		{hmac(`header: %s`), "X-A"}, {hmac(`timestampHeader: %s`), "X-A"}, {hmac(`timestampHeader: X-T, payload: %s`), "{timestamp}:{body}"}, {hmac(`algorithm: sha256, prefix: %s`), "v1="},
		{oidc(`[{issuerURL: "https://a", variables: [{name: %s, expression: "1"}], validations: [{expression: "true", message: m}]}]`, ""), "v"},
	},
	v1alpha1.GatedSourceKind:               {{`{sourceRef: {kind: GitRepository, name: %s}}`, "apps"}, {pinning(`, pinnedName: %s`), "a"}, {pinning(`, revision: %s`), "6.5.1"}},
	v1alpha1.CalendarFeedKind:              {{`{selector: {}, secretRef: {name: %s}}`, "s"}},
	v1alpha1.MachineCertificateRefreshKind: {{refreshing(`, ttl: %s`), "1y"}, {refreshing(`, within: %s`), "3d"}, {refreshing(`, timeout: %s`), "1h"}},
}

func TestPatternsMatchWholeValues(t *testing.T) {
	for kind, all := range anchored {
		for _, tc := range all {
			for value, want := range map[string]bool{tc.value: true, "\u00e4 " + tc.value: false, tc.value + " \u00e4": false, tc.value + "\n\u00e4": false} {
				spec := strings.Replace(tc.spec, "%s", strconv.Quote(value), 1)
				if strings.Contains(tc.spec, `"%s`) || strings.Contains(tc.spec, `%s"`) {
					spec = strings.Replace(tc.spec, "%s", value, 1)
				}
				if err := admitKind(t, kind, spec); (err == nil) != want {
					t.Errorf("%s %s: got %v, want acceptance %t", kind, spec, err, want)
				}
			}
		}
	}
}
