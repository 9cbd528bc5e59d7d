package target_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestGateAnnotationOfObjects(t *testing.T) {
	var many []string
	for i := range target.MaxNamedGates {
		many = append(many, fmt.Sprintf("shop/gate-%02d", i))
	}
	for value, want := range map[string][]string{
		"":                                    nil,
		" , ,":                                nil,
		"production":                          {"shop/production"},
		"production, ops/qa-approval":         {"ops/qa-approval", "shop/production"},
		" shop/production ,production,":       {"shop/production"},
		"v1.2.production":                     {"shop/v1.2.production"},
		"\tproduction\n":                      {"shop/production"},
		strings.Join(many, ","):               many,
		strings.Join(many, ",") + ",more":     {"shop/*"},
		"production,Production":               {"shop/*"},
		"production qa":                       {"shop/*"},
		"production;qa":                       {"shop/*"},
		"*":                                   {"shop/*"},
		"/production":                         {"shop/*"},
		"ops/":                                {"shop/*"},
		"a/b/c":                               {"shop/*"},
		"../production":                       {"shop/*"},
		"a.b/production":                      {"shop/*"},
		strings.Repeat("a", 254):              {"shop/*"},
		"a" + strings.Repeat(",", 198):        {"shop/a"},
		"a" + strings.Repeat(",", 200):        {"shop/*"},
		"a" + strings.Repeat("\u2003", 11999): {"shop/a"},
		"a" + strings.Repeat(" ", 12000):      {"shop/*"},
		"-production":                         {"shop/*"},
		"prödüction":                          {"shop/*"},
	} {
		if got := target.ParseGates(value, "shop"); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}
