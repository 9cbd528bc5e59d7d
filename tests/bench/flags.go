// Package bench measures the gating-controller with etcd and kube-apiserver. The controller runs as a separate process. Its writes are
// counted by the API server.
package bench

import (
	"flag"
	"math"
	"strconv"
)

var (
	targets        = flag.Int("targets", 10000, "the number of targets of the large benchmarks")
	largest        = flag.Int("largest", 20000, "the number of targets of the last benchmark")
	controllerArgs = flag.String("controller-args", "", "more flags for the controller, separated by blanks")
)

// digits formats a value with three significant digits.
func digits(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
