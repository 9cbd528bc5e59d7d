package app

import (
	"strconv"

	flag "github.com/spf13/pflag"

	runtimeclient "github.com/fluxcd/pkg/runtime/client"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
)

// Options are the settings of the process. In docs/reference/flags.md, the flags that come from Flux are marked.
type Options struct {
	MetricsAddr  string
	Pprof        bool
	EventsAddr   string
	HealthAddr   string
	ReceiverAddr string
	FlaggerAddr  string
	CalendarAddr string
	UIAddr       string
	// UIAnonymous shows names, states and times of Gates to clients without a token.
	UIAnonymous bool
	Concurrent  int
	// SuspendKinds are the added kinds, in the format parsed by target.ParseKinds.
	SuspendKinds []string
	// ZoneInfo is a zip or a folder with time zones that replace the built-in ones.
	ZoneInfo string

	// AllowCrossNamespaceRefs is the inverse of the Flux flag, so that the zero value forbids these references. Unlike in the Flux
	// controllers, they are forbidden by default, because the controller suspends targets with its own permissions rather than the
	// permissions of the Gate's author.
	AllowCrossNamespaceRefs bool

	Client         runtimeclient.Options
	Log            logger.Options
	LeaderElection leaderelection.Options
	RateLimiter    runtimectrl.RateLimiterOptions
	Watch          runtimectrl.WatchOptions
	IntervalJitter jitter.IntervalOptions
}

// The clients limit their rate only if the API server lacks API Priority and Fairness. When a Gate closes, each target is written twice.
// With Flux's default of 50 requests per second, ten thousand targets would take seven minutes.
const (
	defaultQPS   = "500"
	defaultBurst = "1000"

	// writesPerReconcile is the number of concurrent target reconciles per concurrent Gate reconcile.
	writesPerReconcile = 4
)

// BindFlags binds the options to flags. The defaults are those of Flux, except for the client limits and references across namespaces.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "The address the metric endpoint binds to.")
	fs.BoolVar(&o.Pprof, "enable-pprof", false, "Serve profiles of the process at /debug/pprof/ of the metric endpoint.")
	fs.StringVar(&o.EventsAddr, "events-addr", "", "The address of the events receiver.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address the health endpoint binds to.")
	fs.StringVar(&o.ReceiverAddr, "receiver-addr", ":9292", "The address the webhook receiver endpoint binds to, empty to disable it.")
	fs.StringVar(&o.FlaggerAddr, "flagger-addr", "", "The address the endpoint for manual gating of Flagger binds to, empty to disable it.")
	fs.StringVar(&o.CalendarAddr, "calendar-addr", "", "The address the endpoint for the calendars of CalendarFeeds binds to, empty to disable it.")
	fs.StringVar(&o.UIAddr, "ui-addr", "", "The address the web UI binds to, empty to disable it.")
	fs.BoolVar(&o.UIAnonymous, "ui-anonymous", false, "Show the names, states and times of all Gates in the web UI and in badges to clients without a token.")
	fs.IntVar(&o.Concurrent, "concurrent", 4, "The number of concurrent gate reconciles. The number of concurrent target reconciles is four times as high.")

	fs.StringSliceVar(&o.SuspendKinds, "suspend-kinds", nil,
		"More kinds that Gates can hold, each as group/Kind or group/Kind=spec.field with the boolean field that suspends its objects, by default spec.suspend. "+
			"For example batch/CronJob,argoproj.io/Rollout=spec.paused.")

	fs.StringVar(&o.ZoneInfo, "zoneinfo", "", "A zip or a folder with compiled time zones that replace the built-in ones, such as /usr/share/zoneinfo.")

	o.Client.BindFlags(fs)
	for name, value := range map[string]string{"kube-api-qps": defaultQPS, "kube-api-burst": defaultBurst} {
		f := fs.Lookup(name)
		if err := f.Value.Set(value); err != nil {
			panic(err) // the values are constants
		}
		f.DefValue = value
	}
	fs.VarPF((*negated)(&o.AllowCrossNamespaceRefs), "no-cross-namespace-refs", "",
		"When set to true, Gates can only reference objects in their own namespace, and objects can only reference Gates in their own namespace.").NoOptDefVal = "true"
	o.Log.BindFlags(fs)
	o.LeaderElection.BindFlags(fs)
	o.RateLimiter.BindFlags(fs)
	// WatchOptions.BindFlags would add --watch-configs-label-selector, which has no effect here.
	fs.BoolVar(&o.Watch.AllNamespaces, "watch-all-namespaces", true,
		"Watch for resources in all namespaces, if set to false it will only watch the runtime namespace.")
	fs.StringVar(&o.Watch.LabelSelector, "watch-label-selector", "", "Watch for resources with matching labels e.g. 'sharding.fluxcd.io/shard=shard1'.")
	o.IntervalJitter.BindFlags(fs)
}

// negated is a flag that sets a field to the opposite of its value.
type negated bool

func (n *negated) String() string { return strconv.FormatBool(!bool(*n)) }

func (n *negated) Type() string { return "bool" }

// Set parses the value of the flag. An invalid value changes nothing.
func (n *negated) Set(text string) error {
	value, err := strconv.ParseBool(text)
	if err == nil {
		*n = negated(!value)
	}
	return err
}
