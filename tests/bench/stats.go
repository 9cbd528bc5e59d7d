package bench

import (
	"math"
	"slices"
)

// quantile returns the smallest value that a fraction q of all values does not exceed.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
