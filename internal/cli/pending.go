package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/internal/explain"
)

// pendingTarget is the kind of what pending prints for programs.
const pendingTarget = "PendingTarget"

func (s *session) pendingCommand() *cobra.Command {
	f := &pendingFlags{}
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List what waits for Gates to open",
		Long: `List what waits for Gates to open: held objects, the revision in effect and the one that waits.

A revision waits if the source of an object has another one than the object has applied. A held source is not fetched, so nobody knows
what would come. Of a held Certificate the renewal waits once it is due. Held objects for which nothing new waits are listed with --all
only. Kinds that you may not list are named on standard error, and the exit code is 3.

With -o json, the items are PendingTargets: target, gates, revision (in effect), reason (NewRevision, NotFetched, NothingNew, Stopped,
RenewalDue or SourceUnknown), waits (the revision that waits), since and source. With -o name they are the objects, for kubectl.`,
		Example: `  # What waits in a namespace
  kubectl gate pending -n flux-system

  # In the whole cluster, with all that is held
  kubectl gate pending -A --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("pending takes no names: it lists all that waits in a namespace, or with -A everywhere")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&f.namespaces, "all-namespaces", "A", false, "Of all namespaces.")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Of objects that have these labels, such as team=payments,tier!=test.")
	cmd.Flags().BoolVar(&f.all, "all", false, "Also held objects for which nothing new waits.")
	f.output = newOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.pending(cmd, f) }
	return cmd
}

type pendingFlags struct {
	namespaces, all bool
	selector        string
	*output
}

// pending prints what waits.
func (s *session) pending(cmd *cobra.Command, f *pendingFlags) error {
	if _, err := labels.Parse(f.selector); err != nil {
		return fmt.Errorf("--selector %q: %w", f.selector, err)
	}
	c, now, err := s.begin()
	if err != nil {
		return err
	}
	o, err := s.objects(cmd.Context(), c)
	if err != nil {
		return err
	}
	namespace := c.namespace
	if f.namespaces {
		namespace = ""
	}
	held, err := o.heldIn(cmd.Context(), namespace, f.selector)
	if err != nil {
		return err
	}
	all, err := o.waiting(cmd.Context(), held, f.namespaces, now)
	if err != nil {
		return err
	}
	if refusal := o.refusal(); refusal != "" && o.read == 0 {
		return errors.New(refusal)
	} else if refusal != "" {
		s.warn("%s; the rest is shown", refusal)
	}
	if !f.all {
		all = slices.DeleteFunc(all, func(w explain.Waiting) bool { return !w.IsNew() })
	}
	if err := s.printPending(f, all, len(held), now); err != nil {
		return err
	}
	if len(o.refused) > 0 {
		return exitCode(exitIncomplete)
	}
	return nil
}

func (s *session) printPending(f *pendingFlags, all []explain.Waiting, held int, now time.Time) error {
	switch {
	case *f.OutputFormat == "name":
		return f.names(s, all)
	case !f.isTable():
		return f.reports(s.Out, pendingTarget, all)
	case len(all) == 0 && held > 0:
		fmt.Fprintf(s.ErrOut, "Nothing new waits. %d held, --all lists them.\n", held)
		return nil
	case len(all) == 0:
		fmt.Fprintln(s.ErrOut, "Nothing waits.")
		return nil
	}
	headers := []string{"KIND/NAME", "GATE", "REVISION", "WAITS", timeHeader("SINCE", now)}
	if f.namespaces {
		headers = append([]string{"NAMESPACE"}, headers...)
	}
	if f.isWide() {
		headers = append(headers, "SOURCE")
	}
	rows := make([][]string, len(all))
	for i := range all {
		rows[i] = s.pendingRow(f, &all[i], now)
	}
	return f.table(s.Out).print(headers, rows...)
}

// pendingRow says what waits, in the columns of printPending.
func (s *session) pendingRow(f *pendingFlags, w *explain.Waiting, now time.Time) []string {
	row := []string{w.Target.Kind + "/" + w.Target.Name, gatesOf(w), shortRevision(w.Revision, f.isWide()), s.paintWaits(w, f.isWide()), whenOf(w.Since, now)}
	if f.namespaces {
		row = append([]string{w.Target.Namespace}, row...)
	}
	if f.isWide() {
		source := "-"
		if w.Source != nil {
			source = w.Source.Kind + "/" + w.Source.Name
			if w.Source.Namespace != w.Target.Namespace {
				source += " in " + w.Source.Namespace
			}
		}
		row = append(row, source)
	}
	return row
}

// paintWaits says what waits, in a color if that is something new.
func (s *session) paintWaits(w *explain.Waiting, wide bool) string {
	switch w.Reason {
	case explain.NewRevision, explain.RenewalDue:
		return s.paint(yellow, waitsFor(w, wide))
	default:
		return s.paint(faint, waitsFor(w, wide))
	}
}

// names prints the names of the objects, for kubectl.
func (f *pendingFlags) names(s *session, all []explain.Waiting) error {
	items := make([]runtime.Object, len(all))
	for i := range all {
		items[i] = nameOnly(all[i].Target)
	}
	return f.list(s.Out, "v1", "List", items)
}

// nameOnly returns an object that has nothing but a name.
func nameOnly(ref explain.Ref) runtime.Object {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(ref.APIVersion)
	obj.SetKind(ref.Kind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	return obj
}
