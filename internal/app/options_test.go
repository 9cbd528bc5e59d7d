package app

import (
	"strings"
	"testing"

	flag "github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestFlagsAreThoseOfFlux(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	var o Options
	o.BindFlags(fs)
	for name, want := range map[string]string{
		"metrics-addr": ":8080", "enable-pprof": "false", "events-addr": "", "health-addr": ":9440", "flagger-addr": "", "calendar-addr": "", "ui-addr": "", "ui-anonymous": "false", "concurrent": "4", "suspend-kinds": "[]", "zoneinfo": "",
		"kube-api-qps": "500", "kube-api-burst": "1000", "log-level": "info", "log-encoding": "json",
		"enable-leader-election": "false", "no-cross-namespace-refs": "true", "min-retry-delay": "750ms",
		"watch-all-namespaces": "true", "watch-label-selector": "", "interval-jitter-percentage": "5",
	} {
		if f := fs.Lookup(name); f == nil {
			t.Errorf("no flag --%s", name)
		} else if f.DefValue != want {
			t.Errorf("--%s defaults to %q, want %q", name, f.DefValue, want)
		}
	}
	if o.Client.QPS != 500 || o.Client.Burst != 1000 {
		t.Errorf("without flags the limits are %v and %d", o.Client.QPS, o.Client.Burst)
	}
}

func TestReferencesAcrossNamespacesAreAllowedOnlyByTheFlag(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		allow bool
	}{
		{nil, false}, {[]string{"--no-cross-namespace-refs"}, false}, {[]string{"--no-cross-namespace-refs=true"}, false},
		{[]string{"--no-cross-namespace-refs=false"}, true}, {[]string{"--no-cross-namespace-refs=no"}, false},
	} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		var o Options
		if o.AllowCrossNamespaceRefs {
			t.Fatal("the zero value allows them")
		}
		o.BindFlags(fs)
		err := fs.Parse(tc.args)
		if invalid := len(tc.args) > 0 && strings.HasSuffix(tc.args[0], "=no"); o.AllowCrossNamespaceRefs != tc.allow || (err != nil) != invalid {
			t.Errorf("%v: %t, %v", tc.args, o.AllowCrossNamespaceRefs, err)
		}
	}
}

func TestShardCachesItsGatesAndAllTargets(t *testing.T) {
	watch := runtimectrl.WatchOptions{AllNamespaces: true, LabelSelector: "sharding.fluxcd.io/shard=one"}
	selector, err := runtimectrl.GetWatchSelector(watch)
	if err != nil {
		t.Fatal(err)
	}
	options := cacheOptions(watch, selector)
	if len(options.ByObject) != 2 || options.DefaultLabelSelector != nil || options.DefaultNamespaces != nil {
		t.Errorf("the cache is restricted to %+v", options)
	}
	for obj, by := range options.ByObject {
		if _, ok := obj.(*corev1.Namespace); ok && by.Label == nil {
			continue
		}
		if _, ok := obj.(*v1alpha1.Gate); !ok || by.Label.Matches(labels.Set{"sharding.fluxcd.io/shard": "two"}) ||
			!by.Label.Matches(labels.Set{"sharding.fluxcd.io/shard": "one"}) {
			t.Errorf("%T by %v", obj, by.Label)
		}
	}
	if a, b := leaderElectionID(watch), leaderElectionID(runtimectrl.WatchOptions{}); a == b {
		t.Errorf("two shards elect one leader: %s", a)
	}
	t.Setenv(runtimectrl.EnvRuntimeNamespace, "gating-system")
	watch.AllNamespaces = false
	if _, ok := cacheOptions(watch, selector).DefaultNamespaces["gating-system"]; !ok {
		t.Error("--watch-all-namespaces=false does not restrict the cache to the runtime namespace")
	}
	if err := watchable(watch); err != nil {
		t.Error(err)
	}
	t.Setenv(runtimectrl.EnvRuntimeNamespace, "")
	if err := watchable(watch); err == nil {
		t.Error("--watch-all-namespaces=false without a runtime namespace watches all of them")
	}
	if err := watchable(runtimectrl.WatchOptions{AllNamespaces: true}); err != nil {
		t.Error(err)
	}
}

func TestBadTimeZoneDataStopsTheStart(t *testing.T) {
	folder := t.TempDir()
	err := Run(t.Context(), Options{ZoneInfo: folder})
	if want := "--zoneinfo: " + folder + ": lacks "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
