package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

func targeting(refs ...v1alpha1.TargetReference) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) { s.Targets = refs }
}

// releasing returns a Gate with waves.
func releasing(waves ...v1alpha1.ReleaseWave) *v1alpha1.Gate {
	return closed(func(s *v1alpha1.GateSpec) { s.Release = &v1alpha1.ReleasePolicy{Waves: waves} })
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprintf("l%d", i)] = "x"
	}
	return labels
}

func TestValidateNamesInvalidField(t *testing.T) {
	hundredAndOne := make([]v1alpha1.Period, 101)
	for i := range hundredAndOne {
		hundredAndOne[i] = weekly(fmt.Sprintf("p%d", i), "08:00", "09:00")
	}
	seventeen := make([]v1alpha1.DependencyReference, 17)
	for i := range seventeen {
		seventeen[i] = v1alpha1.DependencyReference{Kind: "Kustomization", Name: fmt.Sprintf("w%d", i)}
	}
	for name, tc := range map[string]struct {
		gate        *v1alpha1.Gate
		path, cause string
	}{
		"a wave whose labels are none": {releasing(v1alpha1.ReleaseWave{Name: "a", MatchLabels: map[string]string{"a": "no blank"}}), "spec.release.waves[0].matchLabels", "a valid label must be"},
		"a wave with an operator that nobody knows": {releasing(v1alpha1.ReleaseWave{Name: "a", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "a", Operator: "Around"}}}),
			"spec.release.waves[0].matchExpressions[0].operator", "not a valid selector operator"},
		"a soak that is too long":                {releasing(v1alpha1.ReleaseWave{Name: "a", MatchLabels: manyLabels(1), Soak: &v1alpha1.Duration{Duration: 169 * time.Hour}}), "spec.release.waves[0].soak", "168h"},
		"an unknown zone of the gate":            {closed(func(s *v1alpha1.GateSpec) { s.TimeZone = "Europe/Atlantis" }), "spec.timeZone", `unknown time zone "Europe/Atlantis"`},
		"an unknown zone of a period":            {closed(windows(weekly("a", "08:00", "09:00"), zone("Europe/Atlantis", weekly("b", "08:00", "09:00")))), "spec.openPeriods[1].timeZone", "unknown time zone"},
		"the zone Local":                         {closed(func(s *v1alpha1.GateSpec) { s.TimeZone = "Local" }), "spec.timeZone", "not allowed"},
		"the zone local of a period":             {closed(windows(zone("local", weekly("a", "08:00", "09:00")))), "spec.openPeriods[0].timeZone", "not allowed"},
		"an offset instead of a zone":            {closed(func(s *v1alpha1.GateSpec) { s.TimeZone = "+01:00" }), "spec.timeZone", "unknown time zone"},
		"TZ= with a schedule":                    {closed(windows(cron("a", "TZ=UTC 0 0 * * *", time.Hour))), "spec.openPeriods[0].schedule", "must not contain a time zone"},
		"TZ= alone, on which robfig/cron panics": {closed(windows(cron("a", "TZ=0", time.Hour))), "spec.openPeriods[0].schedule", "must not contain a time zone"},
		"CRON_TZ= in a close period":             {closed(closePeriods(closing(cron("a", "CRON_TZ=UTC 0 0 * * *", time.Hour), ""))), "spec.closePeriods[0].schedule", "must not contain a time zone"},
		"a cron that never fires":                {closed(closePeriods(closing(cron("a", "0 0 30 2 *", time.Hour), ""))), "spec.closePeriods[0].schedule", "never"},
		"@every":                                 {closed(windows(cron("a", "@every 1h", time.Hour))), "spec.openPeriods[0].schedule", "descriptors"},
		"@daily":                                 {closed(windows(cron("a", "@daily", time.Hour))), "spec.openPeriods[0].schedule", "descriptors"},
		"a cron of six fields":                   {closed(windows(cron("a", "0 0 0 * * *", time.Hour))), "spec.openPeriods[0].schedule", "five fields"},
		"an empty cron":                          {closed(windows(cron("a", "", time.Hour))), "spec.openPeriods[0].schedule", "five fields"},
		"25:00 as start":                         {closed(windows(weekly("a", "25:00", "05:00"))), "spec.openPeriods[0].start", "00:00 to 23:59"},
		"24:00 as start":                         {closed(windows(weekly("a", "24:00", "05:00"))), "spec.openPeriods[0].start", "00:00 to 23:59"},
		"24:01 as end":                           {closed(windows(weekly("a", "22:00", "24:01"))), "spec.openPeriods[0].end", "00:00 to 24:00"},
		"9:00 without a leading zero":            {closed(windows(weekly("a", "9:00", "10:00"))), "spec.openPeriods[0].start", "00:00 to 23:59"},
		"an unknown day":                         {closed(windows(weekly("a", "08:00", "09:00", "Monday", "Fri"))), "spec.openPeriods[0].daysOfWeek[1]", "must be Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday"},
		"a day twice":                            {closed(windows(weekly("a", "08:00", "09:00", "Monday", "Monday"))), "spec.openPeriods[0].daysOfWeek[1]", "Duplicate"},
		"an unknown week of the month":           {closed(windows(monthly("a", "08:00", "09:00", []v1alpha1.WeekOfMonth{"First", "Sixth"}, "Monday"))), "spec.openPeriods[0].weeksOfMonth[1]", "must be First, Second, Third, Fourth, Fifth or Last"},
		"a week of the month twice":              {closed(windows(monthly("a", "08:00", "09:00", []v1alpha1.WeekOfMonth{"Last", "Last"}, "Monday"))), "spec.openPeriods[0].weeksOfMonth[1]", "Duplicate"},
		"weeks of the month without days":        {closed(windows(monthly("a", "08:00", "09:00", []v1alpha1.WeekOfMonth{"First"}))), "spec.openPeriods[0]", "weeksOfMonth needs daysOfWeek"},
		"weeks of the month without times":       {closed(windows(v1alpha1.Period{Name: "a", WeeksOfMonth: []v1alpha1.WeekOfMonth{"First"}})), "spec.openPeriods[0]", "exactly one of"},
		"a cron in weeks of the month":           {closed(windows(v1alpha1.Period{Name: "a", Schedule: ptr.To("0 0 * * *"), Duration: duration(time.Hour), WeeksOfMonth: []v1alpha1.WeekOfMonth{"First"}})), "spec.openPeriods[0]", "exactly one of"},
		"a duration of 0s":                       {closed(windows(cron("a", "0 0 * * *", 0))), "spec.openPeriods[0].duration", "must be from 1m to 8784h (366 days)"},
		"a negative duration":                    {closed(windows(cron("a", "0 0 * * *", -time.Hour))), "spec.openPeriods[0].duration", "must be from 1m to 8784h (366 days)"},
		"a duration of 59s":                      {closed(windows(cron("a", "0 0 * * *", 59*time.Second))), "spec.openPeriods[0].duration", "must be from 1m to 8784h (366 days)"},
		"a duration of 367 days":                 {closed(windows(cron("a", "0 0 * * *", 367*24*time.Hour))), "spec.openPeriods[0].duration", "must be from 1m to 8784h (366 days)"},
		"101 openPeriods":                        {closed(windows(hundredAndOne...)), "spec", "100"},
		"100 windows and a close period":         {closed(windows(hundredAndOne[:100]...), closePeriods(closing(weekly("x", "08:00", "09:00"), ""))), "spec", "100"},
		"a period without a form":                {closed(windows(v1alpha1.Period{Name: "a"})), "spec.openPeriods[0]", "exactly one of"},
		"a period of two forms":                  {closed(windows(v1alpha1.Period{Name: "a", Start: ptr.To("08:00"), End: ptr.To("09:00"), Schedule: ptr.To("0 0 * * *"), Duration: duration(time.Hour)})), "spec.openPeriods[0]", "exactly one of"},
		"a weekly period with until":             {closed(windows(v1alpha1.Period{Name: "a", Start: ptr.To("08:00"), End: ptr.To("09:00"), Until: ptr.To[v1alpha1.DateTime]("2026-12-01T00:00:00Z")})), "spec.openPeriods[0]", "exactly one of"},
		"start without end":                      {closed(windows(v1alpha1.Period{Name: "a", Start: ptr.To("08:00")})), "spec.openPeriods[0]", "exactly one of"},
		"days without times":                     {closed(windows(v1alpha1.Period{Name: "a", DaysOfWeek: []v1alpha1.DayOfWeek{"Monday"}})), "spec.openPeriods[0]", "exactly one of"},
		"schedule without duration":              {closed(windows(v1alpha1.Period{Name: "a", Schedule: ptr.To("0 0 * * *")})), "spec.openPeriods[0]", "exactly one of"},
		"from without until":                     {closed(windows(v1alpha1.Period{Name: "a", From: ptr.To[v1alpha1.DateTime]("2026-12-01T00:00:00Z")})), "spec.openPeriods[0]", "exactly one of"},
		"until before from":                      {closed(windows(dated("a", "2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"))), "spec.openPeriods[0].until", "later than from"},
		"until equal to from":                    {closed(windows(dated("a", "2026-12-02T00:00:00Z", "2026-12-02T00:00:00Z"))), "spec.openPeriods[0].until", "later than from"},
		"windows of a gate opened by default":    {opened(windows(weekly("a", "08:00", "09:00"))), "spec.openPeriods", "needs default: closed"},
		"notAfter before notBefore": {closed(func(s *v1alpha1.GateSpec) {
			s.NotBefore, s.NotAfter = instant("2026-12-02T00:00:00Z"), instant("2026-12-01T00:00:00Z")
		}), "spec.notAfter", "later than notBefore"},
		"notAfter equal to notBefore": {closed(func(s *v1alpha1.GateSpec) {
			s.NotBefore, s.NotAfter = instant("2026-12-02T00:00:00Z"), instant("2026-12-02T00:00:00Z")
		}), "spec.notAfter", "later than notBefore"},
		"two windows of one name":                 {closed(windows(weekly("a", "08:00", "09:00"), weekly("a", "10:00", "11:00"))), "spec.openPeriods[1].name", "Duplicate"},
		"a window and a close period of one name": {closed(windows(weekly("a", "08:00", "09:00")), closePeriods(closing(weekly("a", "10:00", "11:00"), ""))), "spec.closePeriods[0].name", "Duplicate"},
		"a period without a name":                 {closed(windows(weekly("", "08:00", "09:00"))), "spec.openPeriods[0].name", "needs a name"},
		"a period whose name has a blank":         {closed(windows(weekly("No Friday", "08:00", "09:00"))), "spec.openPeriods[0].name", "lower case"},
		"an unknown override":                     {closed(closePeriods(closing(weekly("a", "08:00", "09:00"), "Maybe"))), "spec.closePeriods[0].override", "Unsupported"},
		"no default":                              {closed(func(s *v1alpha1.GateSpec) { s.Default = "" }), "spec.default", "Unsupported"},
		"an unknown default":                      {closed(func(s *v1alpha1.GateSpec) { s.Default = "open" }), "spec.default", "Unsupported"},
		"a window of 0s":                          {closed(window(0)), "spec.window", "1s to 8784h"},
		"a negative window":                       {closed(window(-time.Hour)), "spec.window", "1s to 8784h"},
		"a window of 367 days":                    {closed(window(367 * 24 * time.Hour)), "spec.window", "1s to 8784h"},
		"an operator that nobody knows": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "tier", Operator: "Like", Values: []string{"web"}}}})),
			"spec.targets[0].matchExpressions[0].operator", "not a valid selector operator"},
		"an expression without values": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn}}})),
			"spec.targets[0].matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"},
		"a label that none can be": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "a b"}})),
			"spec.targets[0].matchLabels", "a valid label must be"},
		"a namespace that no selector selects": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*"}, v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{
			MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists, Values: []string{"a"}}},
		}})), "spec.targets[1].namespaceSelector.matchExpressions[0].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		"a namespace and a selector of namespaces": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", Namespace: "*", NamespaceSelector: &v1alpha1.LabelSelector{}})),
			"spec.targets[0].namespace", "a namespace or a namespaceSelector, not both"},
		"33 labels": {closed(targeting(v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: manyLabels(33)}})),
			"spec.targets[0].namespaceSelector", "32"},
		"a watch without a kind":                  {closed(watching(v1alpha1.DependencyReference{Name: "a"})), "spec.dependsOn[0].kind", "Required"},
		"a watch without a name":                  {closed(watching(v1alpha1.DependencyReference{Kind: "Bucket"})), "spec.dependsOn[0].name", "Required"},
		"17 watches":                              {closed(watching(seventeen...)), "spec.dependsOn", "16"},
		"an object that is watched twice":         {closed(watching(staging(), canary(), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", ReadyExpr: "true"})), "spec.dependsOn[2]", "Duplicate"},
		"an object of the gate's namespace twice": {production(closed(watching(staging(), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", Namespace: "flux-system"}))), "spec.dependsOn[1]", "Duplicate"},
		"an expression that is not CEL":           {closed(watching(canary(), staging("dep.status ="))), "spec.dependsOn[1].readyExpr", "Syntax error"},
		"an expression of another type":           {closed(watching(staging("dep.metadata.name + 'a'"))), "spec.dependsOn[0].readyExpr", "expected bool, got string"},
		"an expression of any type":               {closed(watching(staging("dep.spec.suspend"))), "spec.dependsOn[0].readyExpr", "expected bool, got dyn"},
		"an expression with an unknown variable":  {closed(watching(staging("deps.metadata.name == 'a'"))), "spec.dependsOn[0].readyExpr", "undeclared reference to 'deps'"},
		"an expression that is too long":          {closed(watching(staging(strings.Repeat(" ", 4093) + "true"))), "spec.dependsOn[0].readyExpr", "4096"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := gate.Validate(tc.gate)
			if len(errs) != 1 {
				t.Fatalf("%d errors, want one: %v", len(errs), errs)
			}
			if errs[0].Field != tc.path || !strings.Contains(errs[0].Error(), tc.cause) {
				t.Errorf("got %q, want %q at %q", errs[0], tc.cause, tc.path)
			}
		})
	}
}

func TestEachUnknownDayIsOneError(t *testing.T) {
	errs := gate.Validate(closed(windows(weekly("a", "08:00", "09:00", "Mon", "Sunday", "Fri", "Fri"))))
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
		if err.Type != field.ErrorTypeInvalid {
			t.Errorf("got %v, want an invalid value", err)
		}
	}
	if want := []string{"spec.openPeriods[0].daysOfWeek[0]", "spec.openPeriods[0].daysOfWeek[2]", "spec.openPeriods[0].daysOfWeek[3]"}; !slices.Equal(fields, want) {
		t.Errorf("errors of %q, want %q", fields, want)
	}
}

func TestValidateAcceptsBounds(t *testing.T) {
	hundred := make([]v1alpha1.Period, 100)
	for i := range hundred {
		hundred[i] = weekly(fmt.Sprintf("p%d", i), "08:00", "09:00")
	}
	for name, g := range map[string]*v1alpha1.Gate{
		"nothing but a default":             opened(),
		"100 periods":                       closed(windows(hundred[:50]...), closePeriods(closePeriodsOf(hundred[50:])...)),
		"all weeks of the month":            closed(windows(monthly("a", "22:00", "24:00", []v1alpha1.WeekOfMonth{"First", "Second", "Third", "Fourth", "Last"}, "Monday"))),
		"24:00 as end":                      closed(windows(weekly("a", "22:00", "24:00"))),
		"start equal to end, that is 24h":   closed(windows(weekly("a", "08:00", "08:00"))),
		"a cron on 29 February":             closed(windows(cron("a", "0 0 29 2 *", time.Minute))),
		"a duration of 366 days":            closed(windows(cron("a", "* * * * *", 366*24*time.Hour))),
		"a window of 1s":                    closed(window(time.Second)),
		"a window of 366 days":              closed(window(366 * 24 * time.Hour)),
		"a zone of the gate and of periods": closed(func(s *v1alpha1.GateSpec) { s.TimeZone = "Europe/Oslo" }, windows(weekly("a", "22:00", "05:00"))),
		"labels of all targets of a kind": closed(func(s *v1alpha1.GateSpec) {
			s.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"a": "b"}}}
		}),
		"objects that are watched": closed(watching(staging("dep.metadata.name == self.metadata.name"), canary())),
		"objects of one name that are watched": closed(watching(staging(), v1alpha1.DependencyReference{Kind: "HelmRelease", Name: "staging"},
			v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", Namespace: "elsewhere"})),
		"close periods with default opened":                           opened(closePeriods(closing(weekly("a", "08:00", "09:00"), "Deny"))),
		"an unsupported kind of targets, which is reported in status": closed(func(s *v1alpha1.GateSpec) { s.Targets = []v1alpha1.TargetReference{{Kind: "Deployment", Name: "a"}} }),
	} {
		t.Run(name, func(t *testing.T) {
			if errs := gate.Validate(g); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func closePeriodsOf(periods []v1alpha1.Period) []v1alpha1.ClosePeriod {
	var all []v1alpha1.ClosePeriod
	for _, p := range periods {
		all = append(all, closing(p, v1alpha1.OverrideAllow))
	}
	return all
}

func TestValidateReportsAllErrorsAtOnce(t *testing.T) {
	g := closed(
		func(s *v1alpha1.GateSpec) { s.TimeZone = "Nowhere" }, window(-1),
		windows(weekly("a", "25:00", "24:01"), cron("a", "@every 1h", 0)),
	)
	var paths []string
	for _, err := range gate.Validate(g) {
		paths = append(paths, err.Field)
	}
	want := "spec.timeZone spec.window spec.openPeriods[0].start spec.openPeriods[0].end spec.openPeriods[1].name spec.openPeriods[1].schedule spec.openPeriods[1].duration"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The API has instants of the machine's zone.
func TestValidateShowsInstantsInUTC(t *testing.T) {
	local := func(s string) *metav1.Time {
		return &metav1.Time{Time: utc(s).In(time.FixedZone("EDT", -4*60*60))}
	}
	exception := func(from, until string) field.ErrorList {
		e := &v1alpha1.GateException{Spec: v1alpha1.GateExceptionSpec{Default: v1alpha1.StateClosed, ValidFrom: *local(from), ValidUntil: *local(until)}}
		e.Spec.GateRef.Name = "production"
		return timetable.ValidateException(e)
	}
	for want, errs := range map[string]field.ErrorList{
		`"2026-07-18T00:00:00Z": must be later than notBefore`: gate.Validate(closed(func(s *v1alpha1.GateSpec) {
			s.NotBefore, s.NotAfter = local("2026-07-18T00:00:01Z"), local("2026-07-18T00:00:00Z")
		})),
		`"2026-07-18T00:00:00Z": must be later than from`: gate.Validate(closed(windows(v1alpha1.Period{
			Name: "a", From: ptr.To[v1alpha1.DateTime]("2026-07-18T00:00:01Z"), Until: ptr.To[v1alpha1.DateTime]("2026-07-18T00:00:00Z"),
		}))),
		`"2026-07-18T00:00:00Z": must be later than validFrom`:                   exception("2026-07-18T00:00:01Z", "2026-07-18T00:00:00Z"),
		`"2026-07-18T00:00:00Z": must be at most 2160h (90 days)`:                exception("2026-01-18T00:00:00Z", "2026-07-18T00:00:00Z"),
		`spec.validUntil: Invalid value: "2026-07-18T00:00:00.5Z": must be in w`: exception("2026-07-17T00:00:00Z", "2026-07-18T00:00:00.5Z"),
	} {
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("got %v, want %s", errs, want)
		}
	}
}
