package main

import (
	"fmt"
	"math"
	"slices"
)

// median returns the middle of values, the mean of the two in the middle if there is
// none.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quantile returns the smallest value that a share q of all values does not exceed.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// slope is that of the logarithms between two neighbours.
type slope struct{ from, to, value float64 }

// String is empty if there are no neighbours.
func (s slope) String() string {
	if math.IsNaN(s.value) {
		return ""
	}
	return fmt.Sprintf("the steepest slope is %s, from %s to %s", digits(s.value), digits(s.from), digits(s.to))
}

// steepest returns the largest slope between neighbours, in the order of the points.
// Those without a logarithm are passed over.
func steepest(points [][2]float64) slope {
	most := slope{value: math.NaN()}
	var last [2]float64
	for _, p := range points {
		if p[0] <= 0 || p[1] <= 0 {
			continue
		}
		if s := exponent([][2]float64{last, p}); last[0] > 0 && (math.IsNaN(most.value) || s > most.value) {
			most = slope{last[0], p[0], s}
		}
		last = p
	}
	return most
}

// exponent returns the slope of a straight line through the logarithms of both
// coordinates: 1 if y grows as x does, 0 if it does not grow.
func exponent(points [][2]float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p[0] <= 0 || p[1] <= 0 {
			continue
		}
		x, y := math.Log(p[0]), math.Log(p[1])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
