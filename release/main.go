// Command release builds the chart, the image, or all files of a release.
//
// It is built on libraries instead of the common tools, which were tried in November 2026. A commit must always result in the same files,
// without a network, and the registry must never have a version without its signature:
//   - ko pulls a base image from a registry, even an empty one, and attaches bills of materials in SPDX only.
//   - goreleaser 2.15 creates reproducible archives, but from programs that it builds itself, from a tag. Bills of materials, checksums and
//     provenance would need the programs again. It has 325 modules and takes three minutes to build, to save 120 lines.
//   - syft 1.57 gives each document a random ID and ignores SOURCE_DATE_EPOCH. cyclonedx-gomod cannot set the timestamp.
//   - cosign 3 signs an image only when it is in the registry, and looks for its roots of trust on the network first. It has 251 modules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// run executes a command line.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "The folder of the repository.")
	version := flags.String("version", "", "The version to build. Defaults to the output of git describe.")
	out := flags.String("out", "dist", "The output folder.")
	push := flags.String("push", "", "The registry/repository to push the image to, with the version as its tag. If empty, nothing is pushed.")
	repository := flags.String("repository", "", "The repository of the image in the manifests and in image.tar, if it is not pushed. Defaults to that of config.")
	platform := flags.String("platform", "", "The only platform of the image, such as linux/amd64. Defaults to all platforms.")
	key := flags.String("key", "", "The file of a private cosign key to sign with. Its password is in COSIGN_PASSWORD.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || !slices.Contains([]string{"chart", "image", "release"}, flags.Arg(0)) {
		return errors.New("expected one argument: chart, image or release")
	}
	s, err := sourceIn(ctx, *root, *version)
	if err != nil {
		return err
	}
	if *platform != "" {
		if flags.Arg(0) == "release" {
			return errors.New("-platform is not allowed with release, which has all platforms")
		}
		only, err := v1.ParsePlatform(*platform)
		if err != nil {
			return err
		}
		s.platforms = []v1.Platform{*only}
	}
	if s.repository = *repository; *push != "" {
		s.repository = *push
	}
	tag, err := s.tagIn(*push)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil { //nolint:gosec // others may read what is built
		return err
	}
	switch flags.Arg(0) {
	case "chart":
		return s.writeChartOnly(*out)
	case "release":
		return s.writeRelease(ctx, release{out: *out, key: *key, pushes: *push != ""})
	}
	img, err := s.writeImage(ctx, *out)
	if err != nil || *push == "" {
		return err
	}
	return img.push(ctx, tag)
}
