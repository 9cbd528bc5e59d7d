// Package suggest finds the name that a user probably meant.
package suggest

import "strings"

// Closest returns the most similar name in names, or an empty string if none is similar. It ignores case.
func Closest(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		distance := Distance(strings.ToLower(name), strings.ToLower(n))
		if distance < least && distance*2 < len(n) {
			best, least = n, distance
		}
	}
	return best
}

// Distance returns the Levenshtein distance between two names.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
