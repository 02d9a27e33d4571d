package settings

import "strings"

// Nearest returns the known name that is most like a name, empty when none is
// near: a third of its letters may differ, and hyphens count as underscores.
func Nearest(name string, known []string) string {
	plain := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	best, nearest := max(len(plain)/3, 1)+1, ""
	for _, k := range known {
		if d := distance(plain, strings.ToLower(k)); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// meant is the question that follows a mistyped word; empty when none of some words is near.
func meant(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// distance is how many letters have to be added, removed, replaced or swapped
// with their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
