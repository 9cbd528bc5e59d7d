package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// requestFlags are the flags of the commands that send requests to Gates.
type requestFlags struct {
	kube.Scope
	lasts, until, at, reason, dryRun string
	// only and onlySelector name the targets that the request is limited to.
	only            []string
	onlySelector    string
	wait, emergency bool
	timeout         time.Duration
	// everything selects all Gates, so that neither names nor labels are required.
	everything bool
	// by is the user name according to the API server, empty if the API server does not return it.
	by string
}

// newRequestCommand completes a command that requests an action on Gates.
func newRequestCommand(k *kube.Factory, action v1alpha1.RequestAction, cmd *cobra.Command) *cobra.Command {
	f := &requestFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.lasts, "for", "", "How long the request lasts, such as 30m, 2h or 3d. At least a second, at most 366 days.")
	flags.StringVar(&f.until, "until", "", "When the request ends, such as 17:30, \"tomorrow 08:00\" or \"monday 08:00\".")
	flags.StringVar(&f.at, "at", "", "When the request begins. Defaults to now.")
	flags.StringArrayVar(&f.only, "only", nil, "A target of the Gate as KIND/NAME, such as kustomization/apps, to which the request is limited. Can be repeated, up to 16 times.")
	flags.StringVar(&f.onlySelector, "only-selector", "", "Limit the request to the targets that have these labels now, such as team=payments. At most 16.")
	if action == v1alpha1.RequestOpen {
		flags.BoolVar(&f.emergency, "emergency", false, "Open at once in an emergency, without the approvals that spec.approvals requires. Needs a reason and the verb emergency.")
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Names = args
		now, err := k.Now()
		if err != nil {
			return err
		}
		r, err := f.request(action, now)
		if err != nil {
			return err
		}
		_, err = requestGates(cmd.Context(), k, f, func(*v1alpha1.Gate) (*request, error) { return r, nil })
		return err
	}
	return cmd
}

// add adds the flags that all commands that send requests have in common.
func (f *requestFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Selector, "selector", "l", "", "All gates with these labels, instead of names.")
	cmd.Flags().BoolVarP(&f.All, "all-namespaces", "A", false, "All gates in all namespaces, or those that match --selector.")
	cmd.Flags().StringVar(&f.reason, "reason", "", "The reason, for the status, the history, events and the log. Truncated to 512 bytes.")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the request, and nothing is changed.")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "Wait until all targets are held or released.")
	term.AddTimeoutFlag(cmd, &f.timeout)
}

// request is a request to open or close a Gate.
type request struct {
	action v1alpha1.RequestAction
	// at is the start of the request, and until is its end. A zero until means that the request lasts until the opposite is requested.
	at, until time.Time
	planned   bool
	reason    string
	// targets limit the request, nil for the whole Gate.
	targets []v1alpha1.RequestTarget
	// emergency is true if the request does not need the required approvals.
	emergency bool
	// lasts is true if the user has set a duration instead of an end. unlimited is true for a close request without an end.
	lasts, unlimited bool
	// withdraws is true if the request only ends requests for the opposite action. ends lists these requests, and words describes them.
	withdraws bool
	words     string
	ends      []v1alpha1.AcceptedRequest
}

// request returns the request that the flags describe.
func (f *requestFlags) request(action v1alpha1.RequestAction, now time.Time) (*request, error) {
	r := &request{action: action, at: now.Truncate(time.Microsecond), reason: f.reason, emergency: f.emergency} // the precision of the API
	var err error
	if f.emergency && strings.TrimSpace(f.reason) == "" {
		return nil, errors.New("--emergency needs a --reason")
	}
	if f.at != "" {
		if r.at, err = term.ParseFutureTime(f.at, now); err != nil {
			return nil, fmt.Errorf("--at %q: %w", f.at, err)
		}
		r.planned, r.at = true, r.at.Truncate(time.Second)
	}
	switch {
	case f.lasts != "" && f.until != "":
		return nil, errors.New("--for and --until exclude each other: use one of them")
	case f.lasts != "":
		d, err := v1alpha1.ParseDuration(f.lasts)
		if err == nil && d < time.Second {
			err = fmt.Errorf("%s is too short: a request lasts at least 1s", f.lasts)
		}
		if err != nil {
			return nil, fmt.Errorf("--for: %w", err)
		}
		r.until, r.lasts = r.at.Add(d), true
	case f.until != "":
		if r.until, err = term.ReadEnd(f.until, r.at, now); err == nil && !r.until.After(now) {
			err = term.PastError(now)
		}
		if err != nil {
			return nil, fmt.Errorf("--until %q: %w", f.until, err)
		}
		if !r.until.After(r.at) {
			return nil, fmt.Errorf("--until %q must be later than --at %q", f.until, f.at)
		}
	}
	if r.at.Sub(now) > maxDistance || r.until.Sub(r.at) > maxDistance {
		return nil, errors.New("a request must begin at most 366 days from now and last at most 366 days")
	}
	return r, nil
}

// maxDistance bounds how far ahead a request may start and how long it may last. The controller has the same limit.
const maxDistance = 366 * 24 * time.Hour

// value returns the value of the annotation for the request.
func (r *request) value() string {
	if r.withdraws {
		return ledger.FormatRequest(r.at, &v1alpha1.Duration{}, r.targets...)
	}
	if r.unlimited {
		return ledger.FormatUnlimited(r.at, r.targets...)
	}
	if r.until.IsZero() {
		return ledger.FormatRequest(r.at, nil, r.targets...)
	}
	return ledger.FormatRequest(r.at, &v1alpha1.Duration{Duration: r.until.Sub(r.at)}, r.targets...)
}

// forGate returns the request for a Gate. An open request starts at the last whole second, because a Gate opens only at whole seconds,
// unless the Gate has had a request since then. If the Gate has already handled the same value, the time is moved by microseconds, so
// that the request is not ignored.
func (r *request) forGate(g *v1alpha1.Gate) *request {
	own := *r
	second := r.at.Truncate(time.Second)
	later := func(at metav1.MicroTime) bool { return !at.Time.Before(second) }
	if r.action == v1alpha1.RequestOpen && !r.planned &&
		!slices.ContainsFunc(g.Status.Requests, func(a v1alpha1.AcceptedRequest) bool {
			return later(a.RequestedAt) && a.State != v1alpha1.RequestPlanned
		}) &&
		!slices.ContainsFunc(g.Status.Memory.HandledRequests, func(m v1alpha1.HandledRequest) bool { return m.RequestedAt != nil && later(*m.RequestedAt) }) {
		own.at = second
		if r.lasts {
			own.until = r.until.Add(second.Sub(r.at))
		}
	}
	for isHandled(g, &own) {
		own.at = own.at.Add(time.Microsecond)
	}
	return &own
}

// limited returns a warning if spec.window ends the request earlier than the user may expect, otherwise an empty text.
func (r *request) limited(g *v1alpha1.Gate) string {
	window := g.Spec.Window
	switch {
	case window == nil, r.withdraws, r.unlimited:
		return ""
	case !r.until.IsZero() && (r.action == v1alpha1.RequestClose || r.until.Sub(r.at) <= window.Duration+time.Second):
		return ""
	}
	text := fmt.Sprintf("the request lasts only %s, the spec.window of the gate: until %s", term.FormatDuration(window.Duration), term.FormatTime(r.at.Add(window.Duration)))
	if r.action == v1alpha1.RequestClose {
		text += "; for longer: --for or --until"
	}
	return text
}

// String returns a description of the request with absolute times.
func (r *request) String() string {
	if r.withdraws {
		return "withdrawing " + r.words
	}
	return "requesting to " + r.description()
}

// description returns the action and its times.
func (r *request) description() string {
	text := string(r.action)
	if r.targets != nil {
		text += " only " + ledger.FormatTargets(r.targets)
	}
	if r.planned {
		text += " at " + term.FormatTime(r.at)
	}
	switch {
	case !r.until.IsZero():
		text += " until " + term.FormatTime(r.until)
	case r.unlimited:
		text += " without end"
	}
	return text
}

// requestFunc returns the request for a Gate. It returns a skipError if no request is needed. Other errors are failures.
type requestFunc func(*v1alpha1.Gate) (*request, error)

// skipError is the reason why a Gate needs no request.
type skipError string

func (e skipError) Error() string { return string(e) }

// requestGates sends a request to each Gate, and prints the state of each Gate afterwards.
func requestGates(ctx context.Context, k *kube.Factory, f *requestFlags, newRequest requestFunc) ([]result, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := k.Cluster()
	if err != nil {
		return nil, err
	}
	c.Role = "gate-opener"
	gates, err := c.Gates(ctx, f.Scope)
	switch {
	case err != nil:
		return nil, err
	case len(gates) == 0 && f.Selector == "":
		return nil, errors.New(strings.TrimSuffix(lowerFirst(kube.NoGatesMessage(c.Namespace, f.All)), "."))
	case len(gates) == 0:
		return nil, errors.New("no gate has these labels")
	}
	if newRequest, err = f.limitTo(ctx, k, c, newRequest); err != nil {
		return nil, err
	}
	f.by = kube.CurrentUser(ctx, c)
	results := make([]result, len(gates))
	for i, g := range gates {
		results[i] = planRequest(k.Terminal, g, newRequest)
	}
	requestAll(ctx, k.Terminal, c, f, results, newRequest)
	return results, conclude(ctx, k.Terminal, c, f, results)
}

// planRequest returns the request for a Gate and prints it before it is sent.
func planRequest(t *term.Terminal, g *v1alpha1.Gate, newRequest requestFunc) result {
	r, err := newRequest(g)
	var nothing skipError
	if g.Spec.Suspend {
		err = errors.New("requests are not handled while spec.suspend is true")
	}
	switch {
	case errors.As(err, &nothing):
		t.Line("%s: %s", kube.FullName(g), nothing)
		return result{gate: g}
	case err != nil:
		return result{gate: g, err: err}
	}
	r = r.forGate(g)
	t.Line("%s: %s", kube.FullName(g), r)
	if g.Audits() && r.action == v1alpha1.RequestClose && !r.withdraws {
		t.Warn("%s: it has mode Audit, so nothing is held; to enforce: %s", kube.FullName(g), check.ToEnforce(g))
	}
	if limit := r.limited(g); limit != "" {
		t.Warn("%s: %s", kube.FullName(g), t.WithProgram(limit))
	}
	return result{gate: g, request: r}
}

// check returns an error if flags exclude each other.
func (f *requestFlags) check() error {
	named, selected := len(f.Names) > 0, f.Selector != ""
	if err := kube.ValidateDryRun(f.dryRun); err != nil {
		return err
	}
	switch {
	case f.wait && f.dryRun == "server":
		return errors.New("--wait cannot be combined with --dry-run")
	case named && selected:
		return errors.New("name the gates or choose them with --selector, not both")
	case named && f.All:
		return errors.New("--all-namespaces requires --selector; for a gate of another namespace, write namespace/name")
	case f.everything, named, selected:
		return nil
	}
	return errors.New("name the gates, or choose them with --selector")
}

// result is the outcome of a request.
type result struct {
	gate *v1alpha1.Gate
	// request is nil if no request was sent.
	request *request
	err     error
}

// maxParallelRequests bounds the number of concurrent requests, because an emergency may affect thousands of Gates.
const maxParallelRequests = 16

// requestAll sends all requests. It stores the errors in the results.
func requestAll(ctx context.Context, t *term.Terminal, c *kube.Cluster, f *requestFlags, results []result, newRequest requestFunc) {
	opts := patchOptions(requestOwner, f.dryRun)
	var group errgroup.Group
	group.SetLimit(maxParallelRequests)
	for i := range results {
		if r := &results[i]; r.request != nil {
			group.Go(func() error {
				r.err = sendRequest(ctx, t, c, r, f.by, newRequest, opts)
				return nil
			})
		}
	}
	_ = group.Wait() // the errors are in the results
}

// explain returns the error to print if the API server has rejected the request.
func (r *result) explain(err error) error {
	a := kube.NewCall("patch", "gates", r.gate.Namespace, r.gate.Name, "gate-opener")
	switch {
	case !kube.IsPolicyDenial(err):
		return a.Explain(err)
	case strings.Contains(err.Error(), "needs the verb "+kube.VerbEmergency):
		a.Role = "gate-emergency-opener"
		return errors.New(a.Denied(kube.VerbEmergency))
	case strings.Contains(err.Error(), fmt.Sprintf("a request to %[1]s needs the verb %[1]s", r.request.action)):
		return errors.New(a.Denied(string(r.request.action)))
	}
	return errors.New("refused: " + kube.DenialMessage(err))
}

// requestAnnotation returns the annotation of a request.
func requestAnnotation(action v1alpha1.RequestAction) string {
	if action == v1alpha1.RequestClose {
		return v1alpha1.CloseRequestedAtAnnotation
	}
	return v1alpha1.OpenRequestedAtAnnotation
}

// patch returns the patch for the request. It removes the reason of the previous request. The patch fails if the Gate has changed since
// it was read, because a newer version may contain a request that must be withdrawn or must not be replaced.
func (r *request) patch(by, version string) []byte {
	requestedBy, reason := v1alpha1.OpenRequestedByAnnotation, v1alpha1.OpenReasonAnnotation
	if r.action == v1alpha1.RequestClose {
		requestedBy, reason = v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReasonAnnotation
	}
	annotations := map[string]string{requestAnnotation(r.action): r.value(), requestedBy: by, reason: r.reason}
	if r.emergency {
		annotations[v1alpha1.OpenEmergencyAnnotation] = r.value()
	}
	return annotationPatch(annotations, version)
}
