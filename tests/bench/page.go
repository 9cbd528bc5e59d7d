package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// section is a scenario with what it measured.
type section struct {
	scenario
	*result
}

// pageName is the page in docs, and the name of the folder of its pictures.
const pageName = "benchmarks"

// introduction says how to read the page. It is true whatever was measured.
const introduction = `# Benchmarks

This page is written by a program. Do not edit it, run it:

` + "```sh\nmake bench\n```" + `

Allow two hours on two cores, most of which the API server takes. It needs Go and git alone, like ` + "`make test`" + `. To look at one part, run
` + "`go run ./tests/bench -only NAME`" + ` with the name that stands below its heading; ` + "`-quick`" + ` takes small sizes. Neither
changes this page.

## Method

- etcd and kube-apiserver are the real ones, with the default settings of the latter: no limit is lifted. etcd does not
  wait for the disk (` + "`--unsafe-no-fsync`" + `), so that the disk of the machine is not what is measured. Everything shares the
  cores of one machine: API server, etcd, controller, and what measures.
- The controller is the real program, as a process of its own, as its own service account, with its default flags unless
  a section says otherwise. The lock of ` + "`config/lock`" + ` is not installed.
- Targets are Kustomizations as Flux leaves them: applied from Git, with health checks, conditions, an inventory of 20
  objects, and the field managers of Flux. No kustomize-controller runs, since it would be measured as well.
- What was written is counted by the API server, in ` + "`apiserver_request_total`" + ` before and after. Leases are left out: the API server
  renews its own.
- When a target was held or released is when a watch of the bench saw it. That is later than it happened, by the time that
  the section on precision measures. At the end of each transition all targets are read, and the bench fails if
  one of them is not as it should be.
- What is compared is measured in turns on the same objects, and the median counts. Seconds are those of this machine, ratios should
  be much the same on yours.
`

// render returns the page.
func render(quick bool, machine [][2]string, sections []section) string {
	var b strings.Builder
	b.WriteString(introduction)
	if quick {
		b.WriteString("\n> **These figures are of a run with `-quick`, at small sizes. They show what the page looks like and say nothing about the\n> controller.**\n")
	}
	b.WriteString("\n## Machine\n\n| | |\n|---|---|\n")
	for _, line := range machine {
		fmt.Fprintf(&b, "| %s | %s |\n", line[0], line[1])
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n%s\n\n`%s`\n\n%s\n", heading(s.scenario), s.name, strings.TrimSpace(s.about))
		if len(s.figures) > 0 {
			b.WriteString("\n| measured | | |\n|---|---:|---|\n")
			for _, f := range s.figures {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, strings.TrimSpace(digits(f.value)+" "+f.unit), f.meaning)
			}
		}
		for _, t := range s.tables {
			fmt.Fprintf(&b, "\n%s\n\n| %s |\n|%s\n", t.title, strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
			for _, row := range t.rows {
				fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			}
		}
		for _, p := range s.plots {
			fmt.Fprintf(&b, "\n![%s](%s/%s.svg)\n", p.title, pageName, p.file)
		}
	}
	return b.String()
}

func heading(s scenario) string { return "## " + s.title }

// publish writes the page and its pictures into a folder.
func publish(folder string, quick bool, machine [][2]string, sections []section) error {
	pictures := filepath.Join(folder, pageName)
	if err := os.RemoveAll(pictures); err != nil {
		return err
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil { //nolint:gosec // a folder of documentation
		return err
	}
	for _, s := range sections {
		for _, p := range s.plots {
			svg, err := p.svg()
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(pictures, p.file+".svg"), svg, 0o644); err != nil { //nolint:gosec // documentation
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(folder, pageName+".md"), []byte(render(quick, machine, sections)), 0o644) //nolint:gosec // documentation
}
