package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// pageName is the page in docs, and the name of the folder of its pictures.
const pageName = "benchmarks"

// introduction says how to read the page. It is true of every result.
const introduction = `# Benchmarks

This page is written by a program. Do not edit it, run it:

` + "```sh\nmake bench\n```" + `

Allow three and a quarter hours on two cores. The API server takes most of it. It needs Go and git alone, like ` + "`make test`" + `. To measure one part again, run
` + "`make bench BENCH=\"-only NAME\"`" + ` with the name that stands below its heading. ` + "`-quick`" + ` takes small sizes and leaves this page alone.

## Method

- etcd and kube-apiserver are the real ones, with the default settings of the latter: no limit is lifted. etcd does not
  wait for the disk (` + "`--unsafe-no-fsync`" + `), so that the disk of the machine is not what is measured. Everything shares the
  cores of one machine: API server, etcd, controller, and what measures.
- The controller is the real program, as a process of its own, as its own service account, with its default flags and without
  the lock of ` + "`config/lock`" + ` unless a section says otherwise.
- Targets are Kustomizations as Flux leaves them: applied from Git, with health checks, conditions, an inventory of 20
  objects, and the field managers of Flux. No kustomize-controller runs, since it would be measured as well.
- The API server counts what was written, in ` + "`apiserver_request_total`" + ` before and after. Leases are left out: the API server
  renews its own.
- When a target was held or released is when a watch of the bench saw it, never earlier than it happened. The section on precision
  has the time from the answer to a write to its event, as it was measured. At the end of a transition all targets are read,
  in the section on precision at the end of the last close and the last open of a size. The bench fails if one of them is not
  as it should be.
- Below the tables of a section stands which limits were missed. The run fails at its end, with the page written, if something was
  early, written for nothing or written more than twice per target, or if the yardstick did not write as much as the
  controller. How long it takes on a machine is only told.
- Both sides of a comparison are measured on the same objects, one after the other. ` + "`throughput`" + ` is one turn of ten thousand targets. ` + "`turns`" + `
  has several of a tenth, and their median counts: its extremes show how much one machine differs from itself, in seconds and
  in ratios. Those of another machine may differ more.
`

// unmeasured stands in a section that has no figures yet.
const unmeasured = "*Not measured yet.*"

// section returns a scenario as text, with what it measured on a machine.
func section(s scenario, machine string, measured *result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n`%s`\n\n%s\n\n%s\n", heading(s), s.name, strings.TrimSpace(s.about), machine)
	if len(measured.figures) > 0 {
		b.WriteString("\n| measured | | |\n|---|---:|---|\n")
		for _, f := range measured.figures {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, strings.TrimSpace(digits(f.value)+" "+f.unit), f.meaning)
		}
	}
	for _, t := range measured.tables {
		fmt.Fprintf(&b, "\n%s\n\n| %s |\n|%s\n", t.title, strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	if misses := measured.misses(); misses != "" {
		b.WriteString("\n" + misses)
	}
	for _, p := range measured.plots {
		fmt.Fprintf(&b, "\n![%s](%s/%s.svg)\n", p.title, pageName, p.file)
	}
	return b.String()
}

func heading(s scenario) string { return "## " + s.title }

// publish writes the section of a scenario into the page of a folder, and its pictures
// beside. The other sections stay.
func publish(folder, machine string, all []scenario, of scenario, measured *result) error {
	path := filepath.Join(folder, pageName+".md")
	before, err := os.ReadFile(path) //nolint:gosec // documentation
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	page := introduction
	for _, s := range all {
		if s.name == of.name {
			page += "\n" + section(s, machine, measured)
		} else if text := sectionIn(string(before), s); text != "" && !strings.Contains(text, unmeasured) {
			page += "\n" + text
		} else {
			page += "\n" + section(s, unmeasured, &result{})
		}
	}
	pictures := filepath.Join(folder, pageName)
	if err := os.MkdirAll(pictures, 0o755); err != nil { //nolint:gosec // a folder of documentation
		return err
	}
	for _, p := range measured.plots {
		svg, err := p.svg()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(pictures, p.file+".svg"), svg, 0o644); err != nil { //nolint:gosec // documentation
			return err
		}
	}
	return os.WriteFile(path, []byte(page), 0o644) //nolint:gosec // documentation
}

// sectionIn returns the section of a scenario in a page, empty if there is none.
func sectionIn(page string, s scenario) string {
	_, text, found := strings.Cut(page, "\n"+heading(s)+"\n")
	if !found {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return heading(s) + "\n" + strings.TrimRight(text, "\n") + "\n"
}
