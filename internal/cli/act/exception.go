package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeprinters "k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// exceptionFlags are the flags of exception.
type exceptionFlags struct {
	rest, from, until, lasts, reason, name string
	lead, ttl                              string
	periods, only                          []string
	onlySelector                           string
	opens, closes, apply                   bool
	dryRun                                 string
	// zone is the time zone of periods. Empty means the time zone of the Gate.
	zone string
}

// NewExceptionCommand returns the command exception.
func NewExceptionCommand(k *kube.Factory) *cobra.Command {
	f := &exceptionFlags{}
	cmd := &cobra.Command{
		Use:   "exception GATE",
		Short: "Write a GateException that opens or closes a Gate for a while",
		Long: `Write a GateException that opens or closes a Gate for a while, for Git or with --apply for the cluster.

The exception opens the Gate (openPeriods), or closes it with --close (closePeriods), from --from until --until. --period limits that to times of day.
--default closed or opened is the state outside of the periods, instead of the schedule of the Gate. With --default opened, --period closes the Gate
unless you add --open.

--only limits the exception to some targets of the Gate, and the state of the Gate does not change. Use * as NAME for all targets of a kind.
--only-selector writes the names of the targets that have the labels now: a label that is added later has no effect.

--from and --until are in your time zone. The times of --period are in the zone of --timezone, or else in the time zone of the Gate, which becomes the
timeZone of the exception. The command reads the Gate from the cluster, and warns if the exception has no effect or only a partial effect. Without a
cluster, there are no such warnings, and --period needs --timezone.

The exit code is 3 if the exception is created but has no effect on the Gate, for example in a close period with override: Deny.`,
		Example: `  # A hotfix in a freeze
  kubectl gate exception production --from 14:00 --until 16:00 --reason "hotfix 1234" --apply

  # For two targets only: all others stay held
  kubectl gate exception production --only kustomization/apps --only kustomization/web --for 1h --reason "hotfix 1234" --apply

  # For Git: no deployments in the nights of the migration
  kubectl gate exception production --close --from 2027-03-01 --until 2027-03-08 --period "22:00-05:00" > migration.yaml

  # Another schedule over the holidays
  kubectl gate exception production --default closed --from 2027-12-24 --until 2028-01-02 --period "mon-fri 10:00-12:00" > holidays.yaml`,
		Args: kube.ExactlyOne("a gate"),
	}
	out := term.NewOutput(cmd)
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		f.zone = k.TimeZone
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		return runException(cmd.Context(), k, c, args[0], f, out, now)
	}
	return cmd
}

func (f *exceptionFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.opens, "open", false, "Open the Gate. This is the default, except with --default opened.")
	flags.BoolVar(&f.closes, "close", false, "Close the Gate.")
	flags.StringVar(&f.rest, "default", "", "closed or opened: the state outside of the periods, instead of the schedule of the Gate.")
	flags.StringVar(&f.from, "from", "", "When the exception begins, such as 14:00 or \"monday 08:00\". Defaults to now.")
	flags.StringVar(&f.until, "until", "", "When the exception ends, such as 16:00, which means its first occurrence after --from. At most 90 days after --from.")
	flags.StringVar(&f.lasts, "for", "", "How long the exception is in force, instead of --until, such as 2h or 3d.")
	flags.StringArrayVar(&f.periods, "period", nil, "The times of day in which the exception opens or closes the Gate, such as 22:00-05:00, \"mon-fri 10:00-12:00\" or \"sat,sun 08:00-24:00\". Can be repeated.")
	flags.StringArrayVar(&f.only, "only", nil, "A target of the Gate as KIND/NAME, such as kustomization/apps, to which the exception is limited. Can be repeated, up to 16 times.")
	flags.StringVar(&f.onlySelector, "only-selector", "", "Limit the exception to the targets that have these labels now, such as team=payments. At most 16, together with --only.")
	flags.StringVar(&f.lead, "lead-time", "", "How long before a period of the exception the schedule does not switch to the opposite state, such as 1h.")
	flags.StringVar(&f.ttl, "ttl", "", "How long after its end the controller deletes the exception, such as 30d. Omit it for Git.")
	flags.StringVar(&f.reason, "reason", "", "The reason, for the annotation kubernetes.io/description.")
	flags.StringVar(&f.name, "name", "", "The name. Defaults to that of the Gate and the time of --from in UTC.")
	flags.BoolVar(&f.apply, "apply", false, "Create the exception in the cluster, and wait until the controller has reported on it. Never changes an existing exception.")
	flags.StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the exception, and nothing is created.")
}

// check returns an error if flags exclude each other, or if a required flag is missing.
func (f *exceptionFlags) check() error {
	switch {
	case f.until == "" && f.lasts == "":
		return errors.New("--until or --for is required")
	case f.until != "" && f.lasts != "":
		return errors.New("--for and --until exclude each other: use one of them")
	case f.opens && f.closes:
		return errors.New("--open and --close exclude each other: write two exceptions, or edit the output")
	case f.rest != "" && !slices.Contains(ExceptionStates, f.rest):
		return fmt.Errorf("--default=%s: use %s", f.rest, strings.Join(ExceptionStates, " or "))
	case f.rest != "" && (f.opens || f.closes) && len(f.periods) == 0:
		return errors.New("--open and --close need --period if there is a --default")
	}
	return kube.ValidateDryRun(f.dryRun)
}

// ExceptionStates are the values of --default.
var ExceptionStates = []string{string(v1alpha1.StateClosed), string(v1alpha1.StateOpened)}

// runException prints an exception, or creates it with --apply. With --apply and --output, it does both.
func runException(ctx context.Context, k *kube.Factory, c *kube.Cluster, name string, f *exceptionFlags, out *term.Output, now time.Time) error {
	t := k.Terminal
	_, key, err := kube.ParseName(name, c.Namespace, kube.GateKind)
	if err != nil {
		return err
	}
	g, err := c.GateAt(ctx, key)
	switch {
	case err == nil:
	case f.apply, errors.As(err, new(kube.NotFoundError)):
		return err
	case f.zone == "" && len(f.periods) > 0:
		return fmt.Errorf("%w; without the gate, --period needs --timezone", err)
	case f.onlySelector != "":
		return fmt.Errorf("%w; --only-selector needs the gate", err)
	default:
		g = nil
		t.Warn("the exception is not checked against the gate: %s", term.OneLine(err.Error()))
	}
	e, err := f.exception(key, g, now)
	if err != nil {
		return err
	}
	if f.onlySelector != "" {
		if err := addSelected(ctx, k, c, g, e, f.onlySelector); err != nil {
			return err
		}
	}
	if errs := timetable.ValidateException(e); len(errs) > 0 {
		return errs.ToAggregate()
	}
	creates, inVain := f.apply && f.dryRun != "server", ""
	if g != nil {
		if inVain, err = checkEffect(ctx, t, c, g, e, now); err != nil {
			return err
		}
		if err := checkTargets(ctx, k, c, g, e); err != nil {
			return err
		}
		if inVain != "" && !creates {
			t.Warn("it has no effect: %s", inVain)
		}
		if n := gate.Required(g, e); n > 0 && !creates {
			t.Warn("%s", describeNeededApprovals(t, e, n))
		}
	}
	if f.apply || f.dryRun == "server" {
		if err := create(ctx, c, e.DeepCopy(), f.dryRun == "server"); err != nil {
			return err
		}
	}
	if !f.apply || !out.IsTable() {
		if err := printException(t, out, e); err != nil {
			return err
		}
	}
	switch {
	case !f.apply:
		return nil
	case !creates:
		t.ErrLine("%s: the API server would accept this (dry run)", exceptionTitle(e))
		return nil
	}
	return awaitException(ctx, t, c, g, e, inVain, now)
}

// printException prints an exception, as YAML by default.
func printException(t *term.Terminal, o *term.Output, e *v1alpha1.GateException) error {
	manifest := term.AsManifest(e.DeepCopy(), v1alpha1.GateExceptionKind)
	if o.IsTable() {
		return new(kubeprinters.YAMLPrinter).PrintObj(manifest, t.Out)
	}
	return o.PrintObject(t.Out, manifest)
}

// create creates an exception. It returns an error if an exception with this name exists.
func create(ctx context.Context, c *kube.Cluster, e *v1alpha1.GateException, dryRun bool) error {
	opts := []client.CreateOption{client.FieldOwner("kubectl-gate-exception"), client.FieldValidation(metav1.FieldValidationStrict)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	err := c.Create(ctx, e, opts...)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s already exists: choose another name with --name", exceptionTitle(e))
	case apierrors.IsForbidden(err) && kube.IsPolicyDenial(err):
		return errors.New("refused: " + kube.DenialMessage(err))
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		return fmt.Errorf("namespace %q does not exist", e.Namespace)
	}
	return kube.NewCall("create", "gateexceptions", e.Namespace, "", "gate-exception-editor").Explain(err)
}

// describeNeededApprovals returns a sentence about the n approvals that an exception needs, with the command to approve it. n is 0 if
// unknown.
func describeNeededApprovals(t *term.Terminal, e *v1alpha1.GateException, n int) string {
	many := "approval"
	if n > 0 {
		many = format.Count(n, many)
	}
	return fmt.Sprintf("it needs %s by others: %s approve exception/%s -n %s", many, t.Program, e.Name, e.Namespace)
}

// awaitException waits until the controller has reported on an exception, and prints the state of the exception. g is nil if the Gate
// could not be read. inVain is the reason why the exception has no effect, empty if it has an effect.
func awaitException(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.Gate, e *v1alpha1.GateException, inVain string, now time.Time) error {
	err := poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, kube.NewCall("get", "gateexceptions", e.Namespace, e.Name, "gate-viewer").Explain(err)
		}
		return e.Status.ObservedGeneration == e.Generation && describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition).Status != "", nil
	})
	if err != nil {
		return t.Incomplete(fmt.Errorf("%s is created; %w", exceptionTitle(e), err))
	}
	active := describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition)
	text := describeValidity(e, now)
	if active.Reason == v1alpha1.WaitingApprovalReason {
		n := 0
		if g != nil {
			n = gate.Required(g, e)
		}
		text = describeNeededApprovals(t, e, n)
	}
	if inVain != "" {
		return t.Incomplete(fmt.Errorf("%s is created, but %s", exceptionTitle(e), inVain))
	}
	t.ErrLine("%s is created, %s", exceptionTitle(e), text)
	if ready := describe.Condition(e.Status.Conditions, fluxmeta.ReadyCondition); ready.Status == metav1.ConditionFalse {
		return t.Incomplete(errors.New(ready.Message))
	}
	return nil
}

// exception returns the exception that the flags describe. g is nil if the Gate could not be read.
func (f *exceptionFlags) exception(key client.ObjectKey, g *v1alpha1.Gate, now time.Time) (*v1alpha1.GateException, error) {
	from, until, err := f.validity(now)
	if err != nil {
		return nil, err
	}
	e := &v1alpha1.GateException{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GateExceptionKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: cmp.Or(f.name, defaultName(key.Name, from)),
		},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: key.Name}, Default: v1alpha1.State(f.rest),
			ValidFrom: metav1.NewTime(from.UTC()), ValidUntil: metav1.NewTime(until.UTC()),
		},
	}
	if e.Spec.Targets, err = kube.ParseTargets(f.only); err != nil {
		return nil, err
	}
	if f.reason != "" {
		e.Annotations = map[string]string{descriptionAnnotation: f.reason}
	}
	periods, err := readPeriods(f.periods)
	switch {
	case err != nil:
		return nil, err
	case len(f.periods) > 0 && (f.zone != "" || g == nil):
		e.Spec.TimeZone = v1alpha1.TimeZone(f.zone)
	case len(f.periods) > 0:
		e.Spec.TimeZone = cmp.Or(g.Spec.TimeZone, "UTC")
	case f.rest == "":
		periods = []v1alpha1.Period{{Name: "all", From: v1alpha1.NewDateTime(e.Spec.ValidFrom.Time), Until: v1alpha1.NewDateTime(e.Spec.ValidUntil.Time)}}
	}
	if f.closes || f.rest == string(v1alpha1.StateOpened) && !f.opens {
		e.Spec.ClosePeriods = periods
	} else {
		e.Spec.OpenPeriods = periods
	}
	for _, d := range []struct {
		flag, value string
		into        **v1alpha1.Duration
	}{{"--lead-time", f.lead, &e.Spec.LeadTime}, {"--ttl", f.ttl, &e.Spec.TTLAfterExpired}} {
		if d.value == "" {
			continue
		}
		length, err := v1alpha1.ParseDuration(d.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.flag, err)
		}
		*d.into = &v1alpha1.Duration{Duration: length}
	}
	return e, nil
}

// validity returns the start and the end of the exception, in whole seconds.
func (f *exceptionFlags) validity(now time.Time) (from, until time.Time, err error) {
	from = now.Truncate(time.Second)
	if f.from != "" {
		if from, err = term.ParseFutureTime(f.from, now); err != nil {
			return from, until, fmt.Errorf("--from %q: %w", f.from, err)
		}
		from = from.Truncate(time.Second)
	}
	if f.lasts != "" {
		length, err := v1alpha1.ParseDuration(f.lasts)
		if err != nil {
			return from, until, fmt.Errorf("--for: %w", err)
		}
		return from, from.Add(length), nil
	}
	if until, err = term.ReadEnd(f.until, from, now); err != nil {
		return from, until, fmt.Errorf("--until %q: %w", f.until, err)
	}
	if !until.After(from) {
		return from, until, fmt.Errorf("--until %q is %s, which is not later than --from, %s", f.until, term.FormatTime(until), term.FormatTime(from))
	}
	return from, until.Truncate(time.Second), nil
}

const longestName = 253

// defaultName returns the default name of an exception, which consists of the name of its Gate and the start time.
func defaultName(gateName string, from time.Time) string {
	suffix := from.UTC().Format("-20060102-150405")
	return strings.TrimRight(gateName[:min(len(gateName), longestName-len(suffix))], "-.") + suffix
}
