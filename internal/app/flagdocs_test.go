package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	flag "github.com/spf13/pflag"

	"github.com/fluxcd/pkg/runtime/acl"
	runtimeclient "github.com/fluxcd/pkg/runtime/client"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
)

// referencePage returns a page of docs/reference.
func referencePage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestFlagsPageListsEachFlagWithDefault(t *testing.T) {
	main, err := os.ReadFile(filepath.Join("..", "..", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(Options).BindFlags(fs)
	for _, found := range regexp.MustCompile(`flag\.Bool\("([a-z-]+)"`).FindAllStringSubmatch(string(main), -1) {
		fs.Bool(found[1], false, "")
	}
	page := referencePage(t, "flags.md")
	shown := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|(?: `([^`]*)`)? \\| ").FindAllStringSubmatch(page, -1) {
		if _, twice := shown[row[1]]; twice {
			t.Errorf("--%s is there twice", row[1])
		}
		shown[row[1]] = row[2]
	}
	fs.VisitAll(func(f *flag.Flag) {
		if byDefault, ok := shown[f.Name]; !ok || byDefault != f.DefValue {
			t.Errorf("--%s: the page says %t with default %q, it is %q", f.Name, ok, byDefault, f.DefValue)
		}
		delete(shown, f.Name)
	})
	for name := range shown {
		t.Errorf("there is no flag --%s", name)
	}
	for _, name := range regexp.MustCompile(`--([a-z]+(?:-[a-z]+)*)`).FindAllStringSubmatch(page, -1) {
		if fs.Lookup(name[1]) == nil && name[1] != "help" {
			t.Errorf("the page speaks of --%s", name[1])
		}
	}
}

func TestFlagsPageMarksFlagsOfFlux(t *testing.T) {
	flux := flag.NewFlagSet("", flag.ContinueOnError)
	for _, options := range []interface{ BindFlags(*flag.FlagSet) }{
		&acl.Options{}, &runtimeclient.Options{}, &logger.Options{}, &leaderelection.Options{},
		&runtimectrl.RateLimiterOptions{}, &runtimectrl.WatchOptions{}, &jitter.IntervalOptions{},
	} {
		options.BindFlags(flux)
	}
	// Each Flux controller defines these four flags in its main.go.
	flux.String("metrics-addr", ":8080", "")
	flux.String("events-addr", "", "")
	flux.String("health-addr", ":9440", "")
	flux.Int("concurrent", 4, "")

	listed := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|(?: `[^`]*`)? \\|(?: (Flux|`[^`]*`))? \\| ")
	shown := map[string]string{}
	for _, row := range listed.FindAllStringSubmatch(referencePage(t, "flags.md"), -1) {
		shown[row[1]] = strings.Trim(row[2], "`")
	}
	ours := flag.NewFlagSet("", flag.ContinueOnError)
	new(Options).BindFlags(ours)
	ours.VisitAll(func(f *flag.Flag) {
		want := ""
		if of := flux.Lookup(f.Name); of != nil {
			if want = "Flux"; of.DefValue != f.DefValue {
				want = of.DefValue
			}
		}
		if got, ok := shown[f.Name]; !ok || got != want {
			t.Errorf("--%s: the column Flux has %q, want %q", f.Name, got, want)
		}
	})
}
