package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// frozen is how the reason of a request begins that freeze has made.
const frozen = "freeze: "

func (s *session) freezeCommand() *cobra.Command {
	f := &requestFlags{}
	cmd := &cobra.Command{
		Use:   "freeze --until TIME --reason WHY [NAME...]",
		Short: "Close a set of Gates in an emergency, and say what that does not reach",
		Long: `Close a set of Gates in an emergency, and say what that does not reach.

Without names and --selector these are all Gates of the namespace, with -A those of all namespaces. What no Gate governs goes on: it
is listed at the end. thaw takes a freeze back.`,
		Example: `  # Everything, until tomorrow morning
  kubectl gate freeze -A --until "tomorrow 08:00" --reason "incident 77"`,
	}
	cmd.Flags().StringVar(&f.until, "until", "", "When the freeze ends, such as 17:30, \"tomorrow 08:00\" or \"monday 08:00\".")
	cmd.Flags().StringVar(&f.lasts, "for", "", "How long the freeze lasts, such as 2h or 3d, instead of --until.")
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.names, f.everything = args, len(args) == 0 && f.selector == ""
		switch {
		case f.until == "" && f.lasts == "":
			return errors.New("say how long: --until or --for")
		case f.reason == "":
			return errors.New("say why: --reason")
		}
		now, err := s.now()
		if err != nil {
			return err
		}
		r, err := f.request(v1alpha1.RequestClose, now)
		if err != nil {
			return err
		}
		r.reason = frozen + r.reason
		var gates []*v1alpha1.Gate
		asked := s.request(cmd.Context(), f, func(g *v1alpha1.Gate) (*request, string) {
			gates = append(gates, g)
			return r, ""
		})
		if len(gates) == 0 {
			return asked
		}
		return errors.Join(asked, s.unreached(cmd.Context(), f, gates))
	}
	return cmd
}

func (s *session) thawCommand() *cobra.Command {
	f := &requestFlags{}
	cmd := &cobra.Command{
		Use:   "thaw [NAME...]",
		Short: "Take a freeze back, so that the schedule of the Gates decides again",
		Long: `Take a freeze back, so that the schedule of the Gates decides again.

Only what freeze has closed is taken back. A Gate that somebody has closed by hand as well stays closed. You need the permission to
open the Gates.`,
		Example: `  # The incident is over
  kubectl gate thaw -A --reason "incident 77 is over"`,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.names, f.everything = args, len(args) == 0 && f.selector == ""
		now, err := s.now()
		if err != nil {
			return err
		}
		return s.request(cmd.Context(), f, func(g *v1alpha1.Gate) (*request, string) { return thaw(g, now, f.reason) })
	}
	return cmd
}

// thaw returns the request that takes back the freeze of a Gate, or why there is none.
func thaw(g *v1alpha1.Gate, now time.Time, reason string) (*request, string) {
	r := takeBack(g, now, reason)
	if r == nil || r.action != v1alpha1.RequestOpen || !strings.Contains(r.words, "("+frozen) {
		return nil, "is not frozen"
	}
	if strings.Count(r.words, "the close request ") != strings.Count(r.words, "("+frozen) {
		return nil, "stays closed: thaw would take back " + r.words + "; kubectl gate reset does that"
	}
	return r, ""
}

// maxUnreached is how many objects are named that no Gate governs.
const maxUnreached = 10

// unreached says which objects none of some Gates governs, in the namespaces that a freeze is about.
func (s *session) unreached(ctx context.Context, f *requestFlags, gates []*v1alpha1.Gate) error {
	c, err := s.cluster()
	if err != nil {
		return err
	}
	namespace := c.namespace
	if f.all {
		namespace = ""
	}
	o, err := s.objects(c)
	if err != nil {
		return err
	}
	kinds, err := o.installed()
	if err != nil {
		return err
	}
	var names []string
	for _, kind := range kinds {
		if err := o.each(ctx, kind, namespace, "", func(obj *unstructured.Unstructured) {
			if !slices.ContainsFunc(gates, func(g *v1alpha1.Gate) bool { return reaches(g, obj) && verdict.Governs(g, obj) }) {
				names = append(names, fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName()))
			}
		}); err != nil {
			return err
		}
	}
	if refusal := o.refusal(); refusal != "" {
		s.warn("%s; nobody here knows which of these go on", refusal)
	}
	if len(names) == 0 {
		s.say("Nothing goes on: these gates govern every object that a gate can hold.")
		return nil
	}
	s.say("Not reached, none of these gates governs them:")
	for _, name := range names[:min(len(names), maxUnreached)] {
		s.say("  %s", name)
	}
	if more := len(names) - maxUnreached; more > 0 {
		s.say("  and %d more", more)
	}
	return nil
}

// reaches returns whether a Gate may govern an object in a namespace: its status says where the controller does not let it.
func reaches(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return g.Namespace == obj.GetNamespace() || !slices.ContainsFunc(g.Status.Failures, func(f v1alpha1.TargetFailure) bool {
		return f.Reason == v1alpha1.AccessDeniedReason && f.Kind == obj.GetKind() && f.Namespace == obj.GetNamespace()
	})
}
