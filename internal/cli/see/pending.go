package see

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// NewPendingCommand returns the command pending.
func NewPendingCommand(k *kube.Factory) *cobra.Command {
	f := &pendingFlags{}
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List changes that wait for Gates to open",
		Long: `List changes that wait for Gates to open: held objects, with the revision in effect and the waiting revision.

A revision waits if the source of an object has a revision that the object has not applied. A held source is not fetched, so new revisions are
unknown. The renewal of a held Certificate waits once it is due. Held objects without new revisions are listed only with --all. GatedSources are also
listed while a revision waits for approvals. Kinds that you may not list are printed on standard error, and the exit code is 3.

With --diff, the command also prints what each Kustomization would change in the cluster at the revision that waits. For a GatedSource, it prints the
changes by the Kustomizations that refer to its pinned source, in the same namespace, or in all namespaces with -A. It cannot print the changes by a
HelmRelease. The API server performs a server-side apply as a dry run, so you need the verbs get and patch on the applied objects. The revision is
fetched from source-controller through the API server, for which you need the verb get on services/proxy, or from --source-address. Encrypted objects
and remote bases are skipped and reported, and the exit code is 3.

The items of -o json have target, gates, revision (in effect), reason, waits (the revision that waits), since, source,
approvals (has and needs) and diff (changes and cause, or users with these). The reason is NewRevision, NotFetched, NothingNew, Stopped,
RenewalDue, Passes or SourceUnknown. With -o name they are the objects, for kubectl.`,
		Example: `  # What waits in a namespace
  kubectl gate pending -n flux-system

  # In the whole cluster, with all that is held
  kubectl gate pending -A --all

  # What would change if the gate opened now
  kubectl gate pending -n flux-system --diff`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("pending takes no names: it lists the pending changes of a namespace, or of all namespaces with -A")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&f.namespaces, "all-namespaces", "A", false, "List objects in all namespaces.")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "List only objects with these labels, such as team=payments,tier!=test.")
	cmd.Flags().BoolVar(&f.all, "all", false, "Also list held objects without a waiting change.")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "Also print what each Kustomization would change in the cluster.")
	cmd.Flags().StringVar(&f.sourceAddress, "source-address", "", "With --diff: the address of source-controller, such as http://localhost:8080. Defaults to the proxy of the API server.")
	f.Output = term.NewOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runPending(k, cmd, f) }
	return cmd
}

type pendingFlags struct {
	namespaces, all, diff   bool
	selector, sourceAddress string
	*term.Output
}

// runPending prints the changes that wait for Gates to open.
func runPending(k *kube.Factory, cmd *cobra.Command, f *pendingFlags) error {
	if _, err := labels.Parse(f.selector); err != nil {
		return fmt.Errorf("--selector %q: %w", f.selector, err)
	}
	c, now, err := k.Connect()
	if err != nil {
		return err
	}
	o, err := k.Objects(cmd.Context(), c)
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if f.namespaces {
		namespace = ""
	}
	held, err := heldObjects(cmd.Context(), o, namespace, f.selector)
	if err != nil {
		return err
	}
	all, err := waitingFor(cmd.Context(), o, held, f.namespaces, now)
	if err != nil {
		return err
	}
	if refusal := o.Denied(); refusal != "" && o.ListsRead == 0 {
		return errors.New(refusal)
	} else if refusal != "" {
		k.Warn("%s; the rest is shown", refusal)
	}
	if !f.all {
		all = slices.DeleteFunc(all, func(w explain.Waiting) bool { return !w.IsNew() })
	}
	items, whole, err := pendingItems(cmd.Context(), o, f, held, all)
	if err != nil {
		return err
	}
	if err := printPending(k.Terminal, f, items, len(held), now); err != nil {
		return err
	}
	if len(o.Refused) > 0 || !whole {
		return term.ExitCode(term.ExitIncomplete)
	}
	return nil
}

// pendingItems returns the waiting items, with the changes if they are requested. whole is true if all changes are known.
func pendingItems(ctx context.Context, o *kube.Objects, f *pendingFlags, held []*unstructured.Unstructured, all []explain.Waiting) (items []pendingItem, whole bool, err error) {
	var d *differ
	if f.diff {
		if d, err = newDiffer(o, f); err != nil {
			return nil, false, err
		}
	}
	items, whole = make([]pendingItem, len(all)), true
	for i := range all {
		items[i].Waiting = all[i]
		at := slices.IndexFunc(held, func(obj *unstructured.Unstructured) bool { return explain.RefOf(obj) == all[i].Target })
		if d == nil || at < 0 {
			continue
		}
		if items[i].Diff = d.diff(ctx, held[at], &all[i]); items[i].Diff != nil {
			whole = whole && items[i].Diff.isWhole()
		}
	}
	return items, whole, nil
}

func printPending(t *term.Terminal, f *pendingFlags, all []pendingItem, held int, now time.Time) error {
	switch {
	case *f.OutputFormat == "name":
		return printNames(t, f, all)
	case !f.IsTable():
		return f.PrintReports(t.Out, term.PendingTarget, all)
	case len(all) == 0 && held > 0:
		fmt.Fprintf(t.ErrOut, "No pending changes. %d held, --all lists them.\n", held)
		return nil
	case len(all) == 0:
		fmt.Fprintln(t.ErrOut, "Nothing waits.")
		return nil
	}
	headers := []string{"KIND/NAME", "GATE", "REVISION", "WAITS", term.TimeHeader("SINCE", now)}
	if f.namespaces {
		headers = append([]string{"NAMESPACE"}, headers...)
	}
	if f.IsWide() {
		headers = append(headers, "SOURCE")
	}
	rows := make([][]string, len(all))
	for i := range all {
		rows[i] = pendingRow(t, f, &all[i].Waiting, now)
	}
	if err := f.Table(t.Out).Print(headers, rows...); err != nil {
		return err
	}
	for i := range all {
		if all[i].Diff != nil {
			printDiff(t, &all[i])
		}
	}
	return nil
}

// pendingRow returns the columns of printPending.
func pendingRow(t *term.Terminal, f *pendingFlags, w *explain.Waiting, now time.Time) []string {
	row := []string{w.Target.Kind + "/" + w.Target.Name, holders(w), shortRevision(w.Revision, f.IsWide()), paintWaits(t, w, f.IsWide()), term.FormatUntilOrDash(w.Since, now)}
	if f.namespaces {
		row = append([]string{w.Target.Namespace}, row...)
	}
	if f.IsWide() {
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

// paintWaits returns the waiting change, in yellow if it is new or has a pass, otherwise faint.
func paintWaits(t *term.Terminal, w *explain.Waiting, wide bool) string {
	text := w.Short()
	if wide && w.Reason == explain.NewRevision {
		text = w.Waits
	}
	switch w.Reason {
	case explain.NewRevision, explain.RenewalDue, explain.Passes:
		return t.Paint(term.Yellow, text)
	default:
		return t.Paint(term.Faint, text)
	}
}

// printNames prints the names of the objects in the format used by kubectl.
func printNames(t *term.Terminal, f *pendingFlags, all []pendingItem) error {
	items := make([]runtime.Object, len(all))
	for i := range all {
		items[i] = nameOnly(all[i].Target)
	}
	return f.PrintList(t.Out, term.PendingTarget, items)
}

// nameOnly returns an object with only a kind and a name.
func nameOnly(ref explain.Ref) runtime.Object {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(ref.APIVersion)
	obj.SetKind(ref.Kind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	return obj
}
