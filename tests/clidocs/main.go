// clidocs writes docs/reference/cli.md from the commands of kubectl gate, and from their output in tests/cli. It does not use cobra/doc,
// which prints flags without a table, repeats the flags of kubectl for each command, and shows the home directory of this machine as a
// default.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxcd/gating-controller/internal/cli"
)

const introduction = `# kubectl gate

<!-- Generated from the commands by "make generate". Do not edit it. -->

` + "`kubectl gate`" + ` shows, opens and closes Gates, and explains why an object is held and what comes next. It is a plugin of kubectl
and of flux: [install it](../start/plug-in.md). The permissions for each command are in the
[table of permissions](../secure/permissions.md#what-each-command-needs).

Times that you write are in the time zone of your machine, or in that of --timezone: ` + "`17:30`, `tomorrow 08:00`, `monday 08:00`,\n`2026-12-24 08:00`, `2h`, `3d`" + `, or a time in RFC 3339. A time without a date means its next occurrence. Each command prints the absolute
time.

An argument names an object as [KIND/][NAMESPACE/]NAME, such as ` + "`production`, `shop/production` or `source/shop/apps`" + `. A name without a kind is that of a
Gate. Other kinds are ` + "`exception/NAME` and `source/NAME`" + `, a GatedSource. why and pass accept the kinds that Gates hold, such as ` + "`ks/apps`" + `.

The outputs on this page are from a test: times and durations differ.

## Exit codes

` + cli.ExitCodes + `
## Output for programs

With -o json, -o yaml or another format of kubectl, each of these commands prints one List of the version ` + "`cli.gating.toolkit.fluxcd.io/v1alpha1`" + `. Its
kind is the kind of its items, followed by List. list and status print Gates in a List of v1, which kubectl apply -f - accepts. exception and approve
print the object that they write, as kubectl create does.
[Stability](stability.md#output-for-programs) states how the Lists may change.

`

func main() {
	root := cli.Command()
	var page strings.Builder
	page.WriteString(introduction + cli.Reports())
	for _, c := range root.Commands() {
		if c.Hidden || slices.Contains([]string{"help", "completion", "options"}, c.Name()) {
			continue
		}
		if err := describe(&page, c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	page.WriteString("\n## Flags of all commands\n\n" + flags(root.PersistentFlags()))
	if err := os.WriteFile(filepath.Join("docs", "reference", "cli.md"), []byte(page.String()), 0o644); err != nil { //nolint:gosec // documentation
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// describe writes the section of a command.
func describe(page *strings.Builder, c *cobra.Command) error {
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(page, "\n## kubectl gate %s\n\n%s\n\n```sh\nkubectl gate %s\n```\n", c.Name(), long, strings.TrimSuffix(c.Use, " [flags]"))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(page, "\nAlso: %s.\n", strings.Join(c.Aliases, ", "))
	}
	if text := flags(c.LocalNonPersistentFlags()); text != "" {
		page.WriteString("\n" + text)
	}
	if c.Example != "" {
		fmt.Fprintf(page, "\nExamples:\n\n```sh\n%s\n```\n", unindented(c.Example))
	}
	shown, err := os.ReadFile(filepath.Join("tests", "cli", "testdata", c.Name()+".txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	fmt.Fprintf(page, "\nWhat it prints:\n\n```console\n%s```\n", shown)
	return err
}

// ofKubectl are flags of kubectl that every command has. The page omits them.
var ofKubectl = []string{"help", "version", "allow-missing-template-keys", "show-managed-fields", "template"}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

// flags returns flags as a table, or an empty string if there are none.
func flags(set *pflag.FlagSet) string {
	var rows strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || slices.Contains(ofKubectl, f.Name) {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		byDefault := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.Name != "cache-dir" {
			byDefault = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, strings.NewReplacer("|", "\\|", "e.g. ", "such as ").Replace(f.Usage), byDefault)
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| flag | | default |\n|---|---|---|\n" + rows.String()
}
