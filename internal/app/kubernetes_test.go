package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/version"
)

// server is a fake API server with a version.
type server struct {
	info *version.Info
	err  error
}

func (s server) ServerVersion() (*version.Info, error) { return s.info, s.err }

func TestLogWarnsAboutOldKubernetes(t *testing.T) {
	of := func(minor string) server {
		return server{info: &version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0"}}
	}
	for name, tc := range map[string]struct {
		server server
		want   string
	}{
		"new":                {of("36"), ""},
		"newer":              {of("40"), ""},
		"of a cloud":         {of("36+"), ""},
		"acts as an old one": {server{info: &version.Info{Major: "1", Minor: "36", EmulationMajor: "1", EmulationMinor: "34"}}, `"kubernetes"="1.34"`},
		"without mutations":  {of("35"), "too old for config/policies and config/lock"},
		"the oldest":         {of("34"), "too old for config/policies and config/lock"},
		"too old":            {of("33"), "older than those that the controller is tested with"},
		"unknown":            {of("x"), "unable to parse the version"},
		"no answer":          {server{err: errors.New("no answer")}, "unable to get the version"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			logKubernetesVersion(funcr.New(func(_, args string) { said += args }, funcr.Options{}), tc.server)
			if !strings.Contains(said, tc.want) || tc.want == "" && said != "" {
				t.Errorf("%q, want %q", said, tc.want)
			}
		})
	}
}
