package see

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// watchFlags are the flags for watching Gates.
type watchFlags struct {
	wanted, wait bool
	timeout      time.Duration
}

func newWatchFlags(cmd *cobra.Command) *watchFlags {
	f := &watchFlags{}
	cmd.Flags().BoolVarP(&f.wanted, "watch", "w", false, "Print the row of a Gate again each time that it changes.")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "With --watch: end when all targets of the gates are held or released.")
	term.AddTimeoutFlag(cmd, &f.timeout)
	return f
}

func (f *watchFlags) check(out *term.Output) error {
	switch {
	case f.wanted && !out.IsTable():
		return errors.New("--watch prints a table: omit -o")
	case f.wait && !f.wanted:
		return errors.New("--wait needs --watch")
	}
	return nil
}

// errSettled is returned to end a watch.
var errSettled = errors.New("all targets have reached the desired state")

// runWatch prints rows until the user interrupts it, or until all Gates are settled with --wait.
func runWatch(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc kube.Scope, f *watchFlags, print func(context.Context) error) error {
	if !f.wait {
		return print(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(awaitSettled(ctx, t, c, sc, f.timeout)) }()
	if err := print(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, errSettled) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// awaitSettled waits until all Gates of a scope are settled, and returns errSettled. It returns a different error after the timeout, or
// if the Gates cannot be read.
func awaitSettled(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc kube.Scope, timeout time.Duration) error {
	deadline := t.Clock.Now().Add(timeout)
	for {
		gates, err := c.Gates(ctx, sc)
		unsettled := slices.DeleteFunc(gates, describe.IsSettled)
		switch {
		case err != nil:
			return err
		case len(unsettled) == 0:
			return errSettled
		case t.Clock.Now().After(deadline):
			fmt.Fprintf(t.ErrOut, "error: after %s, %d gates are not settled, such as %s\n", timeout, len(unsettled), kube.FullName(unsettled[0]))
			return term.ExitCode(term.ExitTimeout)
		}
		if err := t.Sleep(ctx, kube.WaitInterval); err != nil {
			return err
		}
	}
}

// watchGates prints the row of a Gate each time it changes, until the user interrupts it.
func watchGates(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc kube.Scope, out *term.Table, printed [][]string) error {
	namespace := c.Namespace
	if sc.All {
		namespace = ""
	}
	matches, err := kube.StatusSelector(sc.StatusSelector)
	if err != nil {
		return err
	}
	shown := map[string]string{}
	for _, row := range printed {
		name, text := fingerprint(row, sc.All)
		shown[name] = text
	}
	for {
		opts := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{LabelSelector: sc.Selector}}
		events, err := c.Watch(ctx, &v1alpha1.GateList{}, opts)
		if err != nil {
			return kube.NewCall("watch", "gates", namespace, "", "gate-viewer").Explain(err)
		}
		for event := range events.ResultChan() {
			g, ok := event.Object.(*v1alpha1.Gate)
			if !ok || event.Type == watch.Deleted || !matches(g) || len(sc.Names) > 0 && !slices.Contains(sc.Names, g.Name) {
				continue
			}
			now, err := t.Now()
			if err != nil {
				return err
			}
			row := gateRow(t, g, now, sc.All, out.Wide)
			name, text := fingerprint(row, sc.All)
			if shown[name] == text {
				continue
			}
			shown[name] = text
			if err := out.Print(nil, row); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil // the user has interrupted the command
		}
	}
}

// fingerprint splits a row into the name of the Gate and its other columns, without durations, which change constantly.
func fingerprint(row []string, namespaces bool) (name, text string) {
	n := 1
	if namespaces {
		n = 2
	}
	return strings.Join(row[:n], "/"), distances.ReplaceAllString(strings.Join(row[n:], "|"), "")
}

var distances = regexp.MustCompile(` \((in )?([0-9]+[smhd])+( ago)?\)`)
