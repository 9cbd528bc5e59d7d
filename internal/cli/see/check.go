package see

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/version"
)

// NewCheckCommand returns the command check.
func NewCheckCommand(k *kube.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find problems of the installation, and how to fix them",
		Long: `Find problems of the installation, and how to fix them.

The command checks the CRDs, the controllers and their leases, the policies and the lock, the kinds that Gates hold, your permissions, the clocks, and
the age of the time zone data. For each Gate it checks whether the Gate is ready, matches objects, holds its own source, conflicts with another Gate, or
has an ambiguous cron schedule. It also reports unknown annotations of Gates, exceptions and targets. It changes nothing. Checks for which you lack a
permission are skipped and reported as notes.

The exit code is 0 if there are only warnings and notes, 1 if there is an error, and 2 if the cluster cannot be read.`,
		Example: `  # All problems
  kubectl gate check

  # Only the errors, for a program
  kubectl gate check -o jsonpath='{.items[?(@.severity=="error")].message}'`,
		Args: cobra.NoArgs,
	}
	out := term.NewOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		r := &checkReader{cluster: c, clock: k.Clock, now: now, useKinds: k.UseKinds, kindsKnown: len(k.SuspendKinds) > 0}
		findings, err := r.findings(cmd.Context())
		if err != nil {
			return err
		}
		if err := printFindings(k.Terminal, out, findings, len(r.unread)); err != nil {
			return err
		}
		if countSeverity(findings, check.Error) > 0 {
			return term.ExitCode(term.ExitDiffers)
		}
		return nil
	}
	return cmd
}

// findings reads the cluster and returns the problems found, most severe first.
func (r *checkReader) findings(ctx context.Context) ([]check.Finding, error) {
	times, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	document, err := r.document(ctx)
	if err != nil {
		return nil, err
	}
	found := check.Definitions(document)
	gates := r.gates(ctx, len(document) > 0)
	var leases []unstructured.Unstructured
	if controllers, ok := r.controllers(ctx); ok {
		r.deployed = controllers
		leases = r.leases(ctx, controllers)
		found = append(found, check.Controllers(controllers, version.Release(), check.SignOfLife(gates, leases, r.now))...)
		found = append(found, check.Leases(controllers, leases, r.now)...)
	}
	found = append(found, check.TimeZoneData(check.ZoneData{Version: tz.Version(), Released: tz.Released()}, leases, r.now)...)
	if err := r.useKinds(r.deployed); err != nil {
		return nil, err
	}
	if admission, ok := r.admission(ctx); ok {
		found = append(found, check.Policies(admission, r.deployed, gates)...)
		found = append(found, check.Lock(admission, r.installed["GateLock."+api.InternalGroup] != nil, r.deployed)...)
		found = append(found, check.Added(admission, r.resources)...)
	}
	found = append(found, check.Kinds(r.kinds())...)
	found = append(found, check.Clocks(times, gates)...)
	found = append(found, check.Gates(gates)...)
	found = append(found, check.Targets(gates)...)
	found = append(found, check.Audits(gates)...)
	found = append(found, check.Leftovers(r.unsupported(ctx, gates))...)
	if len(gates) > 0 {
		installs := check.ControllerAppliers(r.deployed)
		objects, scope := r.objects(ctx), r.cluster.VerdictScope(ctx)
		scope.Reaches = check.Reach(r.deployed)
		found = append(found, check.Selectors(gates, objects, scope)...)
		found = append(found, check.OwnSource(gates, r.known(ctx, gates, objects, installs), installs, scope)...)
		with := check.Inputs{Exceptions: r.exceptions(ctx), Calendars: r.calendars(ctx, gates)}
		found = append(found, check.Conflicts(gates, with, objects, scope, r.now)...)
		found = append(found, check.Schedules(gates, with.Exceptions, r.now)...)
		found = append(found, check.Annotations(gates, with.Exceptions, objects)...)
	}
	found = append(found, check.Permissions(r.denied(ctx), r.cluster.Namespace)...)
	found = append(found, r.unreadFindings()...)
	check.Sort(found)
	return found, nil
}

var severityColors = map[check.Severity]string{check.Error: term.Red, check.Warning: term.Yellow, check.Note: term.Faint}

// printFindings prints findings, each followed by a line with the action, and a summary. unread is the number of resources that could not
// be read.
func printFindings(t *term.Terminal, out *term.Output, findings []check.Finding, unread int) error {
	if !out.IsTable() {
		if findings == nil {
			findings = []check.Finding{}
		}
		return out.PrintReports(t.Out, term.FindingReport, findings)
	}
	for _, f := range findings {
		t.Line("%s %s: %s", t.Paint(severityColors[f.Severity], fmt.Sprintf("%-8s", f.Severity)), t.Paint(term.Bold, f.Object), t.WithProgram(term.OneLine(f.Message)))
		if f.Action != "" {
			t.Line("         -> %s", t.WithProgram(f.Action))
		}
	}
	t.Line("%s", summarize(t, findings, unread))
	return nil
}

// summarize returns a summary of findings in one line. If unread is not zero, it never reports success.
func summarize(t *term.Terminal, findings []check.Finding, unread int) string {
	errors, warnings, notes := countSeverity(findings, check.Error), countSeverity(findings, check.Warning), countSeverity(findings, check.Note)
	missed := ""
	if unread > 0 {
		missed = "; " + format.Count(unread, "check") + " were skipped"
		if unread == 1 {
			missed = "; 1 check was skipped"
		}
	}
	summary := t.Paint(term.Green, "All checks passed")
	switch {
	case errors > 0:
		summary = t.Paint(term.Red, "Some checks failed")
	case unread > 0:
		return "No errors in the resources that you may read" + missed + "."
	}
	return fmt.Sprintf("%s: %s, %s, %s%s.", summary, format.Count(errors, "error"), format.Count(warnings, "warning"), format.Count(notes, "note"), missed)
}

func countSeverity(findings []check.Finding, severity check.Severity) (n int) {
	for _, f := range findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}
