// Command release builds what others install: the image, or all that a release consists of.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

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

// run does what the command line says.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "The folder of the repository.")
	version := flags.String("version", "", "The version that is built. The default is what git describe says.")
	out := flags.String("out", "dist", "The folder that is written.")
	push := flags.String("push", "", "Where to push the image, as registry/repository, with the version as its tag. The default is not to.")
	repository := flags.String("repository", "", "The repository of the image, as the manifests and image.tar name it, if it is not pushed. The default is that of config.")
	platform := flags.String("platform", "", "The only platform to build the image for, such as linux/amd64. The default is all.")
	key := flags.String("key", "", "The file of a private key of cosign to sign with. Its password is in COSIGN_PASSWORD.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || flags.Arg(0) != "image" && flags.Arg(0) != "release" {
		return errors.New("it takes one argument, what to build: image or release")
	}
	s, err := sourceIn(ctx, *root, *version)
	if err != nil {
		return err
	}
	if *platform != "" {
		if flags.Arg(0) == "release" {
			return errors.New("-platform is for image: a release has all of them")
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
	if flags.Arg(0) == "release" {
		return s.writeRelease(ctx, release{out: *out, key: *key, pushes: *push != ""})
	}
	img, err := s.writeImage(ctx, *out)
	if err != nil || *push == "" {
		return err
	}
	return img.push(ctx, tag)
}
