package api_test

import (
	"fmt"
	"strings"
)

const (
	causeTargetName = "name must be * or the name of an object"
	causeKind       = "kind must be the name of a kind"
	causeTargetNS   = "namespace must be * or the name of a namespace"
	causeAPIVersion = "apiVersion must be a group and a version"
	causeLabels     = "must be Kubernetes labels"
	causeKey        = "key must be the key of a label"
	causeKeyName    = "the name of a key must have at most 63 characters, and begin and end with a letter or digit"
	causeKeyPrefix  = "the prefix of a key must be a DNS subdomain of at most 253 characters"
	causeValue      = "should match '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'"
	causeNever      = "schedule never occurs: February has no days 30 and 31, and April, June, September and November have no day 31"
	causeCron       = "schedule must have five fields: minute 0-59"
	causeSelected   = "at most 1,024 labels, expressions and values together"
	causeCharacters = "at most 65,536 characters together"
	causeCategories = "at most 1,024 categories with 16,384 characters together"
)

// target returns the spec of a Gate with one target.
func target(fields string) string { return `{default: closed, targets: [{` + fields + `}]}` }

// expression returns the spec of a Gate with one target that has a matchExpressions entry.
func expression(fields string) string {
	return target(`kind: Kustomization, name: "*", matchExpressions: [{` + fields + `}]`)
}

// cron returns the spec of a Gate with a cron schedule.
func cron(schedule string) string {
	return `{default: closed, openPeriods: [{name: a, schedule: "` + schedule + `", duration: 1h}]}`
}

// labels returns n labels with a key prefix.
func labels(n int, prefix string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%03d: b", prefix, i)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

var badReferences = []badSpec{
	{"a target whose name has a capital letter", target(`kind: Kustomization, name: Apps`), "spec.targets[0].name", causeTargetName},
	{"a target whose name is a pattern", target(`kind: Kustomization, name: "apps-*"`), "spec.targets[0].name", causeTargetName},
	{"a target whose kind is plural", target(`kind: kustomizations, name: apps`), "spec.targets[0].kind", causeKind},
	{"a target whose kind has its group", target(`kind: Kustomization.kustomize.toolkit.fluxcd.io, name: apps`), "spec.targets[0].kind", causeKind},
	{"a target in a namespace with a dot", target(`kind: Kustomization, name: apps, namespace: a.b`), "spec.targets[0].namespace", causeTargetNS},
	{"a target in an empty namespace", target(`kind: Kustomization, name: apps, namespace: ""`), "spec.targets[0].namespace", causeTargetNS},
	{"a target with a group alone", target(`apiVersion: kustomize.toolkit.fluxcd.io, kind: Kustomization, name: apps`), "spec.targets[0].apiVersion", causeAPIVersion},
	{"a target whose name is too long", target(`kind: Kustomization, name: ` + long(254)), "spec.targets[0].name", "253"},
	{"a target whose kind is too long", target(`name: apps, kind: K` + long(63)), "spec.targets[0].kind", "63"},
	{"a target in a namespace that is too long", target(`kind: Kustomization, name: apps, namespace: ` + long(64)), "spec.targets[0].namespace", "63"},
	{"a target whose apiVersion is too long", target(`kind: Kustomization, name: apps, apiVersion: ` + long(315) + `/v1`), "spec.targets[0].apiVersion", "317"},
	{"257 targets", `{default: closed, targets: ` + list(257, "{kind: K, name: a%d}") + `}`, "spec.targets", "at most 256 items"},
	{"an empty namespaceSelector", target(`kind: Kustomization, name: "*", namespaceSelector: {}`), "spec.targets[0].namespaceSelector", "an empty namespaceSelector selects all namespaces"},
	{"a namespaceSelector with empty lists", target(`kind: Kustomization, name: "*", namespaceSelector: {matchLabels: {}, matchExpressions: []}`), "spec.targets[0].namespaceSelector", "an empty namespaceSelector selects all namespaces"},
	{"a dependency with the name *", `{default: closed, dependsOn: [{kind: Kustomization, name: "*"}]}`, "spec.dependsOn[0].name", "name must be the name of an object"},
	{"a dependency of a kind in lower case", `{default: closed, dependsOn: [{kind: kustomization, name: a}]}`, "spec.dependsOn[0].kind", causeKind},
	{"a dependency in all namespaces", `{default: closed, dependsOn: [{kind: Kustomization, name: a, namespace: "*"}]}`, "spec.dependsOn[0].namespace", "namespace must be the name of a namespace"},

	{"a dependency whose name is too long", `{default: closed, dependsOn: [{kind: K, name: ` + long(254) + `}]}`, "spec.dependsOn[0].name", "253"},
	{"a dependency whose kind is too long", `{default: closed, dependsOn: [{name: a, kind: K` + long(63) + `}]}`, "spec.dependsOn[0].kind", "63"},
	{"a dependency in a namespace that is too long", `{default: closed, dependsOn: [{kind: K, name: a, namespace: ` + long(64) + `}]}`, "spec.dependsOn[0].namespace", "63"},
	{"a dependency whose apiVersion is too long", `{default: closed, dependsOn: [{kind: K, name: a, apiVersion: ` + long(315) + `/v1}]}`, "spec.dependsOn[0].apiVersion", "317"},
	{"a dependency whose apiVersion is a group", `{default: closed, dependsOn: [{kind: K, name: a, apiVersion: a.b}]}`, "spec.dependsOn[0].apiVersion", causeAPIVersion},
	{"a readyExpr that is too long", `{default: closed, dependsOn: [{kind: K, name: a, readyExpr: ` + long(4097) + `}]}`, "spec.dependsOn[0].readyExpr", "4096"},

	{"an unknown operator", expression(`key: a, operator: Like, values: [b]`), "spec.targets[0].matchExpressions[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
	{"an operator without its values", expression(`key: a, operator: In`), "spec.targets[0].matchExpressions[0]", "the operators In and NotIn need values"},
	{"an operator with an empty list of values", expression(`key: a, operator: NotIn, values: []`), "spec.targets[0].matchExpressions[0]", "the operators In and NotIn need values"},
	{"an operator that does not take values", expression(`key: a, operator: Exists, values: [b]`), "spec.targets[0].matchExpressions[0]", "the operators Exists and DoesNotExist have no values"},
	{"an invalid key", expression(`key: "a b", operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKey},
	{"a key of two slashes", expression(`key: a/b/c, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKey},
	{"a key without a name", expression(`key: a/, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKey},
	{"a key whose prefix has a capital letter", expression(`key: A/b, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKey},
	{"a key that begins with an underscore", expression(`key: _a, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyName},
	{"a key whose name begins with an underscore", expression(`key: a/_b, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyName},
	{"a key that ends with an underscore", expression(`key: a_, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyName},
	{"a key whose name is too long", expression(`key: a/` + long(64) + `, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyName},
	{"a key whose prefix is too long", expression(`key: ` + long(254) + `/b, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyPrefix},
	{"a key whose prefix begins with a dash", expression(`key: -a/b, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyPrefix},
	{"a key whose prefix ends with a dot", expression(`key: a./b, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyPrefix},
	{"a key whose prefix has two dots", expression(`key: a..b/c, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyPrefix},
	{"a key whose prefix has a dash before a dot", expression(`key: a-.b/c, operator: Exists`), "spec.targets[0].matchExpressions[0].key", causeKeyPrefix},
	{"a value with a blank", expression(`key: a, operator: In, values: [b, b c]`), "spec.targets[0].matchExpressions[0].values[1]", causeValue},
	{"a value that ends with a dash", expression(`key: a, operator: NotIn, values: [b-]`), "spec.targets[0].matchExpressions[0].values[0]", causeValue},
	{"an expression without a key", expression(`operator: Exists`), "spec.targets[0].matchExpressions[0].key", "Required value"},
	{"an expression without an operator", expression(`key: a`), "spec.targets[0].matchExpressions[0].operator", "Required value"},
	{"65 values", expression(`key: a, operator: In, values: ` + list(65, "v%d")), "spec.targets[0].matchExpressions[0].values", "must have at most 64 items"},
	{"a value that is too long", expression(`key: a, operator: In, values: [` + long(64) + `]`), "spec.targets[0].matchExpressions[0].values[0]", "63"},
	{"33 expressions", target(`kind: Kustomization, name: "*", matchExpressions: ` + list(33, `{key: a%d, operator: Exists}`)), "spec.targets[0].matchExpressions", "must have at most 32 items"},
	{"a label with an invalid key", target(`kind: Kustomization, name: "*", matchLabels: {"a b": c}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose key has a bad prefix", target(`kind: Kustomization, name: "*", matchLabels: {a..b/c: d}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose prefix is too long", target(`kind: Kustomization, name: "*", matchLabels: {` + long(254) + `/a: b}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose name is too long", target(`kind: Kustomization, name: "*", matchLabels: {` + long(64) + `: b}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose name ends with a dot", target(`kind: Kustomization, name: "*", matchLabels: {a.: b}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose value has a blank", target(`kind: Kustomization, name: "*", matchLabels: {a: b c}`), "spec.targets[0].matchLabels", causeLabels},
	{"a label whose value ends with an underscore", target(`kind: Kustomization, name: "*", matchLabels: {a: b_}`), "spec.targets[0].matchLabels", causeLabels},
	{"a namespace label with an invalid value", target(`kind: Kustomization, name: "*", namespaceSelector: {matchLabels: {a: -b}}`), "spec.targets[0].namespaceSelector.matchLabels", causeLabels},
	{"a wave label with an invalid key", `{default: closed, release: {waves: [{name: a, matchLabels: {-b: c}}]}}`, "spec.release.waves[0].matchLabels", causeLabels},
	{"a label whose value is too long", target(`kind: Kustomization, name: "*", matchLabels: {a: ` + long(64) + `}`), "spec.targets[0].matchLabels.a", "63"},
	{"33 labels", target(`kind: Kustomization, name: "*", matchLabels: ` + labels(33, "a")), "spec.targets[0].matchLabels", "32"},
	{"33 labels of namespaces", target(`kind: Kustomization, name: "*", namespaceSelector: {matchLabels: ` + labels(33, "a") + `}`), "spec.targets[0].namespaceSelector.matchLabels", "32"},
	{"a wave with an invalid key in an expression", `{default: closed, release: {waves: [{name: a, matchExpressions: [{key: "-", operator: Exists}]}]}}`, "spec.release.waves[0].matchExpressions[0].key", causeKey},
	{"1,056 labels", `{default: closed, targets: ` + list(33, `{kind: Kustomization, name: "*", matchLabels: `+labels(32, "a")+`, namespace: n%d}`) + `}`, "spec", causeSelected},
	{"1,056 labels in targets and waves", `{default: closed, targets: ` + list(32, `{kind: Kustomization, name: "*", matchLabels: `+labels(32, "a")+`, namespace: n%d}`) + `, release: {waves: [{name: a, matchLabels: ` + labels(32, "a") + `}]}}`, "spec", causeSelected},
	{"1,040 values", `{default: closed, targets: ` + list(16, `{kind: Kustomization, name: "*", namespace: n%d, matchExpressions: [{key: a, operator: In, values: `+strings.ReplaceAll(list(64, "v%d"), "%", "%%")+`}]}`) + `}`, "spec", causeSelected},
	{"names that exceed the total length", `{default: closed, targets: ` + list(256, `{kind: Kustomization, name: `+long(245)+`%d}`) + `}`, "spec", causeCharacters},
	{"1,025 categories", `{default: closed, openPeriods: ` + list(33, `{name: a%d, calendar: {configMapRef: {name: a, key: b}, categories: [`+categories(32)+`]}}`) + `}`, "spec", causeCategories},
	{"categories that exceed the total length", `{default: closed, openPeriods: ` + list(8, `{name: a%d, calendar: {configMapRef: {name: a, key: b}, categories: `+strings.ReplaceAll(list(32, long(100)+"%d"), "%", "%%")+`}}`) + `}`, "spec", causeCategories},
	{"expressions that exceed the total length", `{default: closed, dependsOn: ` + list(5, `{kind: Kustomization, name: a%d, readyExpr: "true`+strings.Repeat(" ", 4000)+`"}`) + `}`, "spec.dependsOn", "at most 16,384 characters together"},

	{"a calendar whose ConfigMap has a bad name", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: Days, key: no.ics}}}]}`, "spec.openPeriods[0].calendar.configMapRef.name", "name must be the name of a ConfigMap"},
	{"a calendar with an invalid key", `{default: closed, openPeriods: [{name: a, calendar: {configMapRef: {name: days, key: a/b}}}]}`, "spec.openPeriods[0].calendar.configMapRef.key", "key must be the key of a ConfigMap"},

	{"TZ= in a cron", cron("TZ=UTC 0 0 * * *"), "spec.openPeriods[0].schedule", "use the field timeZone"},
	{"TZ= alone", cron("TZ=0"), "spec.openPeriods[0].schedule", "use the field timeZone"},
	{"@every", cron("@every 1h"), "spec.openPeriods[0].schedule", "descriptors such as @every or @daily are not supported"},
	{"a cron of four fields", cron("0 0 * *"), "spec.openPeriods[0].schedule", causeCron},
	{"a cron of six fields", cron("0 0 0 * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"a cron that is too long", cron("0" + strings.Repeat(",0", 124) + " 0 * * *"), "spec.openPeriods[0].schedule", "256"},
	{"minute 60", cron("60 0 * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"hour 24", cron("0 24 * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"day 32", cron("0 0 32 * *"), "spec.openPeriods[0].schedule", causeCron},
	{"month 13", cron("0 0 1 13 *"), "spec.openPeriods[0].schedule", causeCron},
	{"weekday 8", cron("0 0 * * 8"), "spec.openPeriods[0].schedule", causeCron},
	{"a step of 0", cron("*/0 * * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"a step of 90 minutes", cron("*/90 * * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"a range that begins with *", cron("0 0 * * *-5"), "spec.openPeriods[0].schedule", causeCron},
	{"an empty list in a cron", cron("0 , * * *"), "spec.openPeriods[0].schedule", causeCron},
	{"30 February", cron("0 8 30 2 *"), "spec.openPeriods[0].schedule", causeNever},
	{"30 and 31 February", cron("0 8 30,31 feb ?"), "spec.openPeriods[0].schedule", causeNever},
	{"31 in months of 30 days", cron("*/5 8 31 02,4,JUN,9,11 *"), "spec.openPeriods[0].schedule", causeNever},
	{"a range that ends before it begins", cron("0 0 * * 5-2"), "spec.openPeriods[0].schedule", ""},
}

var goodReferences = map[string]string{
	"crons of all kinds": `{default: closed, openPeriods: ` + cronPeriods("0 22 * * FRI", "*/15 0-6,22 * * mon-fri", "05 07 1,15 JAN-MAR,12 ?", "0 0 29 2 *", "0 0 29-31 2 *", "0 0 30 2,4 *", "0 0 31 2,3 *", "0 0 30 2 MON", "0 0 30 4,6 *", "0 0 * * 5-7", "0 0 * * 7", "0/60 1/24 1-31/31 */12 0-7/7", " 0  0 * * * ") + `}`,
	"targets of all forms": `{default: closed, targets: [{apiVersion: v1, kind: CronJob2, name: a.b-c}, {kind: Kustomization, name: "*", namespace: "*", matchLabels: {"example.com/tier": "", a: B_1.c, "x-1.y/a..-b_c": "0"}},
  {kind: Kustomization, name: "*", namespaceSelector: {matchExpressions: [{key: example.com/a_B.c, operator: In, values: ` + list(64, long(61)+"%02d") + `}]}},
  {kind: Kustomization, name: "*", matchLabels: {` + long(253) + "/" + long(63) + `: a}, matchExpressions: [{key: ` + long(253) + "/" + long(63) + `, operator: NotIn, values: ["", A-_.1]}, {key: a..-b, operator: Exists}]}]}`,
}

// cronPeriods returns a period for each cron schedule.
func cronPeriods(schedules ...string) string {
	all := make([]string, len(schedules))
	for i, schedule := range schedules {
		all[i] = fmt.Sprintf(`{name: p%d, schedule: "%s", duration: 1m}`, i, schedule)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
