package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// requestFlags are those of commands that open and close Gates.
type requestFlags struct {
	scope
	lasts, until, at, reason, dryRun string
	wait                             bool
	timeout                          time.Duration
	// everything says that no names and no labels mean all Gates.
	everything bool
}

// requestCommand returns a command that requests an action of Gates.
func (s *session) requestCommand(action v1alpha1.RequestAction, cmd *cobra.Command) *cobra.Command {
	f := &requestFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.lasts, "for", "", "How long the request lasts, such as 30m, 2h or 3d. At least a second, at most 366 days.")
	flags.StringVar(&f.until, "until", "", "When the request ends, such as 17:30, \"tomorrow 08:00\" or \"monday 08:00\".")
	flags.StringVar(&f.at, "at", "", "When the request begins. Defaults to now.")
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.names = args
		now, err := s.now()
		if err != nil {
			return err
		}
		r, err := f.request(action, now)
		if err != nil {
			return err
		}
		return s.request(cmd.Context(), f, func(*v1alpha1.Gate) (*request, string) { return r, "" })
	}
	return cmd
}

// add adds the flags that all commands with requests have.
func (f *requestFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "All Gates that have these labels, instead of names.")
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "Those of all namespaces, unless they are named.")
	cmd.Flags().StringVar(&f.reason, "reason", "", "Why: for the status, the history, events and the log. Cut to 512 bytes.")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the request, and nothing is changed.")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "Wait until all targets are held or went on.")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "How long to wait with --wait.")
}

// request is what a person asks of a Gate.
type request struct {
	action v1alpha1.RequestAction
	// at is when it begins, until when it ends, zero for when the opposite is requested.
	at, until time.Time
	planned   bool
	reason    string
	// lasts says that the person has said how long it lasts, not until when.
	lasts bool
	// takesBack says that it only ends the requests for the opposite action, which were words.
	takesBack bool
	words     string
}

// request reads the flags.
func (f *requestFlags) request(action v1alpha1.RequestAction, now time.Time) (*request, error) {
	r := &request{action: action, at: now.Truncate(time.Microsecond), reason: f.reason} // what the API keeps of it
	var err error
	if f.at != "" {
		if r.at, err = parseWhen(f.at, now); err != nil {
			return nil, fmt.Errorf("--at %q: %w", f.at, err)
		}
		r.planned, r.at = true, r.at.Truncate(time.Second)
	}
	switch {
	case f.lasts != "" && f.until != "":
		return nil, errors.New("--for and --until say the same: use one of them")
	case f.lasts != "":
		d, err := parseDuration(f.lasts)
		if err == nil && d < time.Second {
			err = fmt.Errorf("%s is too short: a request lasts at least 1s", f.lasts)
		}
		if err != nil {
			return nil, fmt.Errorf("--for: %w", err)
		}
		r.until, r.lasts = r.at.Add(d), true
	case f.until != "":
		if r.until, err = parseWhen(f.until, now); err != nil {
			return nil, fmt.Errorf("--until %q: %w", f.until, err)
		}
		if !r.until.After(r.at) {
			return nil, fmt.Errorf("--until %q must be later than --at %q", f.until, f.at)
		}
	}
	if r.at.Sub(now) > maxDistance || r.until.Sub(r.at) > maxDistance {
		return nil, errors.New("a request begins and lasts at most 366 days from now")
	}
	return r, nil
}

// maxDistance is how far away the time of a request may be, and how long it may last; the controller refuses more.
const maxDistance = 366 * 24 * time.Hour

// value returns the value of the annotation.
func (r *request) value() string {
	if r.takesBack {
		return gate.FormatRequest(r.at, &metav1.Duration{})
	}
	if r.until.IsZero() {
		return gate.FormatRequest(r.at, nil)
	}
	return gate.FormatRequest(r.at, &metav1.Duration{Duration: r.until.Sub(r.at)})
}

// of returns the request for a Gate. One to open counts from the next whole second, so that its time is the last one, unless the Gate
// has seen a request since then.
func (r *request) of(g *v1alpha1.Gate) *request {
	second := r.at.Truncate(time.Second)
	later := func(at metav1.MicroTime) bool { return !at.Time.Before(second) }
	if r.action != v1alpha1.RequestOpen || r.planned ||
		slices.ContainsFunc(g.Status.Requests, func(a v1alpha1.AcceptedRequest) bool { return later(a.RequestedAt) }) ||
		slices.ContainsFunc(g.Status.HandledRequests, func(m v1alpha1.RequestMemory) bool { return m.RequestedAt != nil && later(*m.RequestedAt) }) {
		return r
	}
	whole := *r
	whole.at = second
	if r.lasts {
		whole.until = r.until.Add(second.Sub(r.at))
	}
	return &whole
}

// limited says that a Gate does not stay as long in a state as is asked, empty if it does.
func (r *request) limited(g *v1alpha1.Gate) string {
	window := g.Spec.Window
	if window == nil || r.takesBack || !r.until.IsZero() && r.until.Sub(r.at) <= window.Duration+time.Second {
		return ""
	}
	return fmt.Sprintf(", which ends at %s: its spec.window is %s", formatTime(r.at.Add(window.Duration)), formatDuration(window.Duration))
}

// String says what is asked, with absolute times.
func (r *request) String() string {
	if r.takesBack {
		return "taking back " + r.words
	}
	text := "asking to " + string(r.action)
	if r.planned {
		text += " at " + formatTime(r.at)
	}
	if !r.until.IsZero() {
		text += " until " + formatTime(r.until)
	}
	return text
}

// asking makes the request for a Gate. Without one it says why there is none.
type asking func(*v1alpha1.Gate) (r *request, why string)

// request asks Gates, and says of each what it is then.
func (s *session) request(ctx context.Context, f *requestFlags, ask asking) error {
	if err := f.check(); err != nil {
		return err
	}
	c, err := s.cluster()
	if err != nil {
		return err
	}
	gates, err := c.gates(ctx, f.scope)
	if err != nil {
		return err
	}
	if len(gates) == 0 {
		return errors.New("no gate has these labels")
	}
	results := make([]result, len(gates))
	for i, g := range gates {
		r, why := ask(g)
		results[i] = result{gate: g}
		if r == nil {
			s.say("%s: %s", nameOfGate(g), why)
			continue
		}
		results[i].request = r.of(g)
		s.say("%s: %s%s", nameOfGate(g), results[i].request, r.limited(g))
	}
	c.askAll(ctx, results, f.dryRun == "server")
	return s.conclude(ctx, c, f, results)
}

// check refuses flags that do not go together.
func (f *requestFlags) check() error {
	named, selected := len(f.names) > 0, f.selector != ""
	switch {
	case !slices.Contains([]string{"none", "server"}, f.dryRun):
		return fmt.Errorf("--dry-run=%s: use none or server", f.dryRun)
	case f.wait && f.dryRun == "server":
		return errors.New("--wait has nothing to wait for with --dry-run")
	case named && selected:
		return errors.New("name the gates or choose them with --selector, not both")
	case named && f.all:
		return errors.New("--all-namespaces is for --selector: write namespace/name for a gate of another namespace")
	case f.everything, named, selected:
		return nil
	}
	return errors.New("name the gates, or choose them with --selector")
}

// result is what became of a request.
type result struct {
	gate *v1alpha1.Gate
	// request is nil if nothing was asked.
	request *request
	err     error
}

// asksAtOnce is how many Gates are asked at the same time: in an emergency there may be thousands.
const asksAtOnce = 16

// askAll asks all Gates, and notes what went wrong.
func (c *cluster) askAll(ctx context.Context, results []result, dryRun bool) {
	opts := []client.PatchOption{client.FieldOwner("kubectl-gate")}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	by := c.whoAmI(ctx)
	var group errgroup.Group
	group.SetLimit(asksAtOnce)
	for i := range results {
		if r := &results[i]; r.request != nil {
			group.Go(func() error {
				r.err = c.ask(ctx, r, by, opts)
				return nil
			})
		}
	}
	_ = group.Wait() // the results have the errors
}

// ask asks one Gate.
func (c *cluster) ask(ctx context.Context, r *result, by string, opts []client.PatchOption) error {
	err := c.Patch(ctx, r.gate, client.RawPatch(types.MergePatchType, r.request.patch(by)), opts...)
	if isPolicy(err) && strings.Contains(err.Error(), "may not say who") { // config/policies-1.30: nobody could tell whether it is true
		err = c.Patch(ctx, r.gate, client.RawPatch(types.MergePatchType, r.request.patch("")), opts...)
	}
	return r.refusedBy(err)
}

// refusedBy says why the API server has refused a request.
func (r *result) refusedBy(err error) error {
	a := asked{"patch", "gates", r.gate.Namespace, r.gate.Name, "gate-opener"}
	switch {
	case !isPolicy(err):
		return a.explain(err)
	case strings.Contains(err.Error(), fmt.Sprintf("a request to %[1]s needs the verb %[1]s", r.request.action)):
		return errors.New(a.refused(string(r.request.action)))
	}
	return errors.New("refused: " + refusalOf(err))
}

func nameOfGate(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// patch returns the patch that asks. A reason of the request before goes.
func (r *request) patch(by string) []byte {
	requestedAt, requestedBy, reason := v1alpha1.OpenRequestedAtAnnotation, v1alpha1.OpenRequestedByAnnotation, v1alpha1.OpenReasonAnnotation
	if r.action == v1alpha1.RequestClose {
		requestedAt, requestedBy, reason = v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReasonAnnotation
	}
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	annotations := map[string]any{requestedAt: r.value(), requestedBy: orNull(by), reason: orNull(r.reason)}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		panic(err) // strings and nulls
	}
	return raw
}

// whoAmI returns the name under which the API server knows the user, empty if it does not say. With config/policies the API server
// writes it itself.
func (c *cluster) whoAmI(ctx context.Context) string {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(review.Object, "status", "userInfo", "username")
	return name
}

// conclude waits for the answers of the controller, says what they are, and returns whether all is well.
func (s *session) conclude(ctx context.Context, c *cluster, f *requestFlags, results []result) error {
	code, asked := 0, 0
	for i := range results {
		r := &results[i]
		if r.request == nil {
			continue
		}
		var vain inVainError
		if r.err == nil && f.dryRun != "server" {
			r.err = s.answer(ctx, c, r)
		} else if r.err == nil {
			s.say("%s: the API server would accept this (dry run)", nameOfGate(r.gate))
		}
		if r.err == nil || errors.As(r.err, &vain) {
			asked++
		}
		if r.err != nil {
			fmt.Fprintf(s.ErrOut, "error: %s: %s\n", nameOfGate(r.gate), oneLine(r.err.Error()))
			code = exitIncomplete
		}
	}
	switch {
	case code != 0 && asked == 0:
		return exitCode(exitError)
	case f.wait && asked > 0:
		if err := s.wait(ctx, c, f.timeout, results); err != nil || code == 0 {
			return err
		}
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

// inVainError says that a request was made, and that the Gate is not as it asks.
type inVainError string

func (e inVainError) Error() string { return string(e) }

const (
	// answerTimeout is how long the controller is given to look at a request: it takes milliseconds.
	answerTimeout = 5 * time.Second
	answerPoll    = 50 * time.Millisecond
)

const (
	errNoAnswer  = inVainError("asked, but the controller has not looked at it; is it running? kubectl gate check says more")
	errSuspended = inVainError("asked, but nobody looks at it while spec.suspend is true")
)

// answer waits until the controller has looked at a request and says what the Gate is then.
func (s *session) answer(ctx context.Context, c *cluster, r *result) error {
	if r.gate.Spec.Suspend {
		return errSuspended
	}
	deadline := s.clock.Now().Add(answerTimeout)
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate); err != nil {
			return asked{"get", "gates", r.gate.Namespace, r.gate.Name, "gate-viewer"}.explain(err)
		}
		if isHandled(r.gate, r.request) && !changesInAMoment(r, s.clock.Now()) {
			break
		}
		if s.clock.Now().After(deadline) {
			return errNoAnswer
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.clock.After(answerPoll):
		}
	}
	if why := refusedWhy(r.gate, r.request); why != "" {
		return fmt.Errorf("the controller has refused this: %s", why)
	}
	now, err := s.now()
	if err != nil {
		return err
	}
	s.say("%s: %s", nameOfGate(r.gate), s.describe(r.gate, now))
	if !r.request.planned && !r.request.takesBack && stateOf(r.gate) != string(r.request.wanted()) {
		return inVainError(fmt.Sprintf("the request is accepted, but it does not %s the gate: %s decides", r.request.action, reasonOf(r.gate)))
	}
	return nil
}

// wanted returns the state that a request asks for.
func (r *request) wanted() v1alpha1.State {
	if r.action == v1alpha1.RequestClose {
		return v1alpha1.StateClosed
	}
	return v1alpha1.StateOpened
}

// isHandled returns whether the controller has looked at a request.
func isHandled(g *v1alpha1.Gate, r *request) bool {
	return slices.ContainsFunc(g.Status.HandledRequests, func(m v1alpha1.RequestMemory) bool {
		return m.Action == r.action && m.LastHandled == r.value()
	})
}

// changesInAMoment returns whether what was asked shows only at the next whole second: a Gate does not open before it, and what is taken
// back counts until then.
func changesInAMoment(r *result, now time.Time) bool {
	g := r.gate
	if r.request.takesBack {
		return gate.DecidedBy(g, now) != nil && now.Sub(r.request.at) < 2*time.Second
	}
	next := g.Status.NextTransition
	return r.request.action == v1alpha1.RequestOpen && !r.request.planned && stateOf(g) == string(v1alpha1.StateClosed) &&
		next != nil && next.State == v1alpha1.StateOpened && next.At.Sub(now) <= time.Second
}

// describe says in a line what a Gate is, why and until when.
func (s *session) describe(g *v1alpha1.Gate, now time.Time) string {
	text := fmt.Sprintf("%s, %s", s.paintState(stateOf(g)), reasonOf(g))
	if next := g.Status.NextTransition; next != nil {
		text += ", until " + formatTime(next.At.In(now.Location())) + " (" + formatDistance(next.At.Sub(now)) + ")"
	}
	return text
}

// refusedWhy returns why the controller has refused a request, empty if it has not.
func refusedWhy(g *v1alpha1.Gate, r *request) string {
	for _, e := range g.Status.History {
		unreadable := e.RequestedAt == nil && e.Refused != "" && !e.At.Time.Before(r.at.Truncate(time.Second))
		if e.Action == r.action && (unreadable || e.RequestedAt != nil && e.RequestedAt.Time.Equal(r.at)) {
			return e.Refused
		}
	}
	return ""
}
