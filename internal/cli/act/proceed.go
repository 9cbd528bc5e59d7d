package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// NewProceedCommand returns the command proceed.
func NewProceedCommand(k *kube.Factory) *cobra.Command {
	var reason, dryRun string
	cmd := &cobra.Command{
		Use:   "proceed NAME",
		Short: "Continue a release in waves that waits or has stopped",
		Long: `Continue a release in waves that waits or has stopped.

The controller releases the next wave at once. It does not wait for the soak of the current wave, and failures in this or an earlier wave no longer
stop the release. If the waves are invalid, the release continues with the invalid waves, and the current wave stays the same. If the release has
reached another wave in the meantime, nothing happens. You need the verb open, which the ClusterRole gate-opener has.`,
		Example: `  # The failure is a known flake
  kubectl gate proceed production --reason "the canary of the search is known to fail"`,
		Args: kube.ExactlyOne("a gate"),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "The reason, for events and the log. Truncated to 512 bytes.")
	cmd.Flags().StringVar(&dryRun, "dry-run", "none", "none, or server: the API server checks this, and nothing is changed.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := kube.ValidateDryRun(dryRun); err != nil {
			return err
		}
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		c.Role = "gate-opener"
		return runProceed(cmd.Context(), k.Terminal, c, args[0], &proceeding{now: now, reason: reason, dryRun: dryRun})
	}
	return cmd
}

// proceeding contains the parameters of proceed.
type proceeding struct {
	now            time.Time
	reason, dryRun string
	// value is the value of the annotation that requests to proceed.
	value string
}

// runProceed continues the release of a Gate, and prints the state of the release afterwards.
func runProceed(ctx context.Context, t *term.Terminal, c *kube.Cluster, name string, p *proceeding) error {
	g, err := c.Gate(ctx, name)
	if err != nil {
		return err
	}
	wave, by := "", kube.CurrentUser(ctx, c)
	for {
		if err := mayProceed(g); err != nil {
			return fmt.Errorf("%s: %w", kube.FullName(g), err)
		}
		current := g.Status.Release.Waves.Current
		if wave == "" {
			wave = current
			t.Line("%s: %s", kube.FullName(g), describeContinuation(g))
		}
		if wave != current {
			return fmt.Errorf("%s: the release has reached wave %s: check it and run the command again", kube.FullName(g), current)
		}
		if err = p.write(ctx, c, g, by); !apierrors.IsConflict(err) {
			break
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return kube.NewCall("get", "gates", g.Namespace, g.Name, c.Role).Explain(err)
		}
	}
	switch {
	case err != nil:
		return refusedProceed(g, err)
	case p.dryRun == "server":
		t.Line("%s: the API server would accept this (dry run)", kube.FullName(g))
		return nil
	}
	return awaitProceed(ctx, t, c, g, p)
}

// mayProceed returns an error if a Gate has no release that can be continued.
func mayProceed(g *v1alpha1.Gate) error {
	release := g.Status.Release
	switch {
	case !gate.HasWaves(g):
		return errors.New("it has no spec.release.waves, so no wave is waiting")
	case g.Spec.Suspend:
		return errors.New("the controller does not reconcile it while spec.suspend is true")
	case describe.State(g) != string(v1alpha1.StateOpened):
		return errors.New("it is not open, so there is no release to continue; to open it: kubectl gate open " + g.Name + " -n " + g.Namespace)
	case gate.IsReleased(g):
		return errors.New("all waves are released, so no wave is waiting")
	case release == nil || release.Waves == nil || release.Waves.OpenedAt == nil || release.Waves.Current == "":
		return errors.New("it has just opened, and the controller has not started the release: try again in a moment")
	}
	return nil
}

// describeContinuation describes what the release of a Gate no longer waits for.
func describeContinuation(g *v1alpha1.Gate) string {
	if stop := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ReleaseStoppedCondition); stop != nil {
		cause, _, _ := strings.Cut(stop.Message, " Nothing more is released")
		return "continuing although " + lowerFirst(strings.TrimSuffix(cause, "."))
	}
	w := g.Status.Release.Waves
	return fmt.Sprintf("continuing without waiting for wave %s: %d of its %d targets are ready", w.Current, w.Ready, w.Total)
}

// write writes the annotation. It returns a conflict if the Gate has changed since it was read.
func (p *proceeding) write(ctx context.Context, c *kube.Cluster, g *v1alpha1.Gate, by string) error {
	w := g.Status.Release.Waves
	at := p.now
	if w.OpenedAt.After(at) { // the clock of the controller may be ahead
		at = w.OpenedAt.Time
	}
	if last := w.ProceededAt; last != nil && !at.After(last.Time) {
		at = last.Add(time.Microsecond)
	}
	p.value = annotations.Proceed.Format(annotations.Value{At: at.Truncate(time.Microsecond), Keys: map[string]string{"wave": w.Current}})
	opts := patchOptions(requestOwner, p.dryRun)
	err := c.Patch(ctx, g.DeepCopy(), client.RawPatch(types.MergePatchType, p.patch(by, g.ResourceVersion)), opts...)
	if kube.IsPolicyDenial(err) && strings.Contains(err.Error(), "may not say who") { // config/policies-1.30
		err = c.Patch(ctx, g.DeepCopy(), client.RawPatch(types.MergePatchType, p.patch("", g.ResourceVersion)), opts...)
	}
	return err
}

// patch returns the patch that continues a release. It removes the reason of an earlier request.
func (p *proceeding) patch(by, version string) []byte {
	return annotationPatch(map[string]string{
		v1alpha1.ProceedRequestedAtAnnotation: p.value, v1alpha1.ProceedRequestedByAnnotation: by, v1alpha1.ProceedReasonAnnotation: p.reason,
	}, version)
}

// refusedProceed returns the error to print if the API server has rejected the request to continue a release.
func refusedProceed(g *v1alpha1.Gate, err error) error {
	a := kube.NewCall("patch", "gates", g.Namespace, g.Name, "gate-opener")
	switch {
	case !kube.IsPolicyDenial(err):
		return a.Explain(err)
	case strings.Contains(err.Error(), "that needs the verb open"):
		return errors.New(a.Denied("open"))
	}
	return errors.New("refused: " + kube.DenialMessage(err))
}

// awaitProceed waits until the controller has handled the request, and prints the state of the release.
func awaitProceed(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.Gate, p *proceeding) error {
	err := poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return false, kube.NewCall("get", "gates", g.Namespace, g.Name, "gate-viewer").Explain(err)
		}
		return g.Status.Release != nil && g.Status.Release.LastHandledProceed == p.value, nil
	})
	if err != nil {
		return t.Incomplete(err)
	}
	v, err := annotations.Proceed.Parse(p.value)
	if w := g.Status.Release.Waves; err != nil || w == nil || w.ProceededAt == nil || !w.ProceededAt.Time.Equal(v.At) {
		return t.Incomplete(fmt.Errorf("%s: the release had reached another wave: kubectl gate status %s -n %s", kube.FullName(g), g.Name, g.Namespace))
	}
	t.Line("%s: %s", kube.FullName(g), lowerFirst(describeWave(g)))
	return nil
}

// describeWave describes the state of a release in waves, without a full stop.
func describeWave(g *v1alpha1.Gate) string {
	if gate.IsReleased(g) {
		return "All waves are released"
	}
	return explain.WaveOf(g)
}
