package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	flag "github.com/spf13/pflag"
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

func TestThePageOfFlagsHasEachFlagOnceWithItsDefault(t *testing.T) {
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

// The controllers of Flux watch Secrets and ConfigMaps by it. Here it would be taken and change nothing.
func TestTheFlagThatDoesNothingSaysSo(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	var said bytes.Buffer
	fs.SetOutput(&said)
	new(Options).BindFlags(fs)
	if err := fs.Parse([]string{"--watch-configs-label-selector=app=web"}); err != nil {
		t.Fatal(err)
	}
	if got := said.String(); !strings.Contains(got, "--watch-configs-label-selector has been deprecated, it has no effect") {
		t.Errorf("it says %q", got)
	}
	if strings.Contains(fs.FlagUsages(), "watch-configs-label-selector") {
		t.Error("--help has it")
	}
}
