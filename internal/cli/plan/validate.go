package plan

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// validatedRange is the time range in which calendars and exceptions are checked for mistakes.
const validatedRange = 90 * 24 * time.Hour

// validateFlags are the flags of validate.
type validateFlags struct {
	files []string
}

// NewValidateCommand returns the command validate.
func NewValidateCommand(k *kube.Factory) *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check manifests against the rules of the API server and of the controller, without a cluster",
		Long: `Check manifests against the rules of the API server and of the controller, without a cluster.

The command checks all kinds of the API group ` + api.Group + ` against the schemas and rules of the CRDs that this plugin was built with, and
ignores other kinds. It prints all errors, each with the file, the object and the path of the field. If there are no errors, it prints warnings about
probable mistakes: a Gate that never opens or is always closed, periods that are over or outside the validity, fields without effect, more than 1,000
openings in 30 days (hourly openings are 720), targets of unsupported kinds, requests in annotations that are over or too far ahead, and annotations
of any object that do not exist or that only the controller writes. If the controller runs with --suspend-kinds, set the same flag here.

Manifests of one object in several directories, such as the overlays of several clusters, are all checked. The warnings are then about the first one. Two
manifests of one object in the same directory are an error.

The exit code is 0 if all manifests are valid, even with warnings, and 2 if there is an error.`,
		Example: `  # Check a folder, as in a pull request
  kubectl gate validate -f clusters/production

  # Check what kustomize builds
  kustomize build . | kubectl gate validate -f -`,
		RunE: func(_ *cobra.Command, args []string) error { return runValidate(k, f, args) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "A file or folder with manifests, - for standard input. Can be repeated; further ones can follow as arguments.")
	return cmd
}

func runValidate(k *kube.Factory, f *validateFlags, args []string) error {
	if len(f.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	set, err := readManifestsInto(k, preview.NewSet(cmp.Or(*k.Flags.Namespace, "default")).Overlaid(), f.files, args)
	if err != nil {
		return err
	}
	now := k.Clock.Now()
	_, warnings, err := set.Brief().Preview(preview.Range{From: now, Until: now.Add(validatedRange)})
	if err != nil {
		return err
	}
	warnAll(k.Terminal, warnings)
	if set.Validated() == 0 {
		k.ErrLine("The files contain no manifests of the API group %s.", api.Group)
		return nil
	}
	k.Line("%s: valid, with %s.", format.Count(set.Validated(), "manifest"), format.Count(len(warnings), "warning"))
	return nil
}
