package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// passFlags are the flags of pass.
type passFlags struct {
	reason, dryRun string
	wait           bool
	timeout        time.Duration
}

// NewPassCommand returns the command pass.
func NewPassCommand(k *kube.Factory) *cobra.Command {
	f := &passFlags{}
	cmd := &cobra.Command{
		Use:   "pass KIND/NAME",
		Short: "Allow one reconciliation of a held object",
		Long: `Allow one reconciliation of a held object, and hold it again afterwards.

The Gates stay closed for all other objects. The object must be a Flux object that is held by spec.suspend, and you need the verb open on each Gate
that holds it. Settings that keep a Gate closed in spite of an open request, such as a close period with override: Deny, also prevent passes. The exit
code is 3 if the controller refuses the pass, or if with --wait the reconciliation does not succeed.`,
		Example: `  # A hotfix during a freeze
  kubectl gate pass ks/apps -n flux-system --reason "hotfix 1234"

  # And wait for the result
  kubectl gate pass helmrelease/shop --reason "CVE-2026-1234" --wait`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", "The reason, for the condition, the history, events and the log. Truncated to 512 bytes.")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the request, and nothing is changed.")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "Wait until the reconciliation has ended and the object is held again.")
	term.AddTimeoutFlag(cmd, &f.timeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, namespace, name, err := kube.ParseObjectName(args)
		if err == nil {
			err = kube.ValidateDryRun(f.dryRun)
		}
		if err == nil && f.wait && f.dryRun == "server" {
			err = errors.New("--wait cannot be combined with --dry-run")
		}
		if err != nil {
			return err
		}
		return runPass(cmd.Context(), k, f, kind, namespace, name)
	}
	return cmd
}

// runPass requests a pass for an object, and prints how the controller handles it.
func runPass(ctx context.Context, k *kube.Factory, f *passFlags, kind, namespace, name string) error {
	c, now, err := k.Connect()
	if err != nil {
		return err
	}
	c.Namespace = cmp.Or(namespace, c.Namespace)
	o, err := k.Objects(ctx, c)
	if err != nil {
		return err
	}
	mapping, err := o.Find(kind)
	if err != nil {
		return err
	}
	obj, err := o.Get(ctx, mapping, c.Namespace, name)
	if err != nil {
		return err
	}
	if err := mayPass(obj); err != nil {
		return err
	}
	what := explain.RefOf(obj).String()
	k.Line("%s: requesting one reconciliation through %s", what, strings.Join(verdict.HeldBy(obj), ", "))
	value := gate.FormatPass(now, target.ReconcileTimeout(&target.Object{Unstructured: *obj}))
	err = patchStamped(ctx, c, obj, map[string]string{
		v1alpha1.PassRequestedAtAnnotation: value, v1alpha1.PassGatesAnnotation: gate.PassGates(verdict.HeldBy(obj)), v1alpha1.PassReasonAnnotation: f.reason,
	}, v1alpha1.PassRequestedByAnnotation, f.dryRun)
	if err != nil {
		return kube.NewCall("patch", mapping.Resource.GroupResource().String(), obj.GetNamespace(), obj.GetName(), "gate-opener").Explain(err)
	}
	if f.dryRun == "server" {
		k.Line("%s: the API server would accept this (dry run)", what)
		return nil
	}
	return followPass(ctx, k.Terminal, c, obj, f, value)
}

// mayPass returns an error if the object shows that it cannot pass.
func mayPass(obj *unstructured.Unstructured) error {
	what := explain.RefOf(obj).String()
	switch {
	case !verdict.CanPass(&target.Object{Unstructured: *obj}):
		return fmt.Errorf("%s: a %s cannot pass: only Flux objects that are held by spec.suspend can", what, obj.GetKind())
	case !explain.IsHeld(obj) || len(verdict.HeldBy(obj)) == 0:
		return fmt.Errorf("%s: no gate holds it, so it needs no pass", what)
	case explain.Wait(obj, nil, time.Time{}).Reason == explain.Passes:
		return fmt.Errorf("%s: a pass is already in progress", what)
	}
	return nil
}

// followPass waits until the controller has granted the pass, or until the pass has ended with --wait. Then it prints the result.
func followPass(ctx context.Context, t *term.Terminal, c *kube.Cluster, obj *unstructured.Unstructured, f *passFlags, value string) error {
	what := explain.RefOf(obj).String()
	deadline, granted := t.Clock.Now().Add(handlingTimeout), false
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return kube.NewCall("get", strings.ToLower(obj.GetKind()), obj.GetNamespace(), obj.GetName(), "view").Explain(err)
		}
		p := verdict.PassOf(&target.Object{Unstructured: *obj})
		switch {
		case p.Value != value:
		case p.State == verdict.PassRefused:
			fmt.Fprintf(t.ErrOut, "error: %s: the controller refused this: %s\n", what, p.Message)
			return term.ExitCode(term.ExitIncomplete)
		case p.State == verdict.PassEnded:
			t.Line("%s: %s", what, p.EndedMessage())
			if p.Outcome != verdict.PassSucceeded && p.Outcome != verdict.PassOpened {
				return term.ExitCode(term.ExitIncomplete)
			}
			return nil
		case !granted:
			t.Line("%s: a pass allows one reconciliation, until %s at the latest", what, term.FormatTime(p.Until.Local()))
			if granted, deadline = true, t.Clock.Now().Add(f.timeout); !f.wait {
				return nil
			}
		}
		if t.Clock.Now().After(deadline) {
			if granted {
				fmt.Fprintf(t.ErrOut, "error: after %s, the pass of %s is still in progress; the controller continues\n", f.timeout, what)
				return term.ExitCode(term.ExitTimeout)
			}
			fmt.Fprintf(t.ErrOut, "error: %s: the controller has not granted the pass; see its events, and kubectl gate why %s/%s\n",
				what, strings.ToLower(obj.GetKind()), obj.GetName())
			return term.ExitCode(term.ExitIncomplete)
		}
		if err := t.Sleep(ctx, kube.WaitInterval); err != nil {
			return err
		}
	}
}
