package cli

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// validated is how far ahead calendars are read and exceptions are compared.
const validated = 90 * 24 * time.Hour

// validateFlags are those of validate.
type validateFlags struct {
	files []string
}

func (s *session) validateCommand() *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check manifests without a cluster, with all rules of the API server and of the controller",
		Long: `Check manifests without a cluster, with all rules of the API server and of the controller.

It checks all kinds of the API group of Gates, with the schemas and rules of the CRDs that this plugin was built with, and ignores other kinds. It prints
all errors, each with the file, the object and the path of the field. If there are none, it prints warnings about what is valid but probably
a mistake: a Gate that never opens or is always closed, periods that are over or outside the validity, fields without effect, more than 1,000 openings in 30 days
(every hour is 720), and targets of a kind that cannot be held. For kinds that the controller holds besides, use --suspend-kinds.

The exit code is 0 if all manifests are valid, also with warnings, and 2 if there is an error.`,
		Example: `  # Check a folder, as in a pull request
  kubectl gate validate -f clusters/production

  # Check what kustomize builds
  kustomize build . | kubectl gate validate -f -`,
		RunE: func(_ *cobra.Command, args []string) error { return s.validate(f, args) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "A file or folder with manifests, - for standard input. Can be repeated; further ones can follow as arguments.")
	return cmd
}

func (s *session) validate(f *validateFlags, args []string) error {
	if len(f.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	set, err := s.manifests(f.files, args, cmp.Or(*s.config.Namespace, "default"))
	if err != nil {
		return err
	}
	now := s.clock.Now()
	_, warnings, err := set.Brief().Preview(preview.Range{From: now, Until: now.Add(validated)})
	if err != nil {
		return err
	}
	s.warnAll(warnings)
	if set.Validated() == 0 {
		s.errLine("%s", "There are no manifests of Gates in these files.")
		return nil
	}
	s.say("%s: valid, with %s.", count(set.Validated(), "manifest"), count(len(warnings), "warning"))
	return nil
}
