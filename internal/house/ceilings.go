package main

import "fmt"

// ceiling lets a value stand that is past its limit, but not grow.
// n is the value that stands: a maximum, or for shares a minimum.
type ceiling struct {
	measure measure
	room    string
	n       int
}

// ceilings are the values past the limits that stand today. When a value is
// within its limit again, the test demands that its line here be deleted. A line
// may be lowered, and renamed with its package, but not raised or added.
var ceilings []ceiling

// standingImports are the imports against the layers that stand today, in the
// words of the complaint. The test demands the end of those that are gone.
var standingImports []string

// check returns what breaks the limits or goes against the layers, and the
// exceptions that are not needed any more. The answer is empty when the house
// is in order.
// A value that is better than its ceiling but past the limit is no fault: the line
// may stay.
func (h *house) check(allowed []ceiling, allowedImports []string) []string {
	var out []string
	for _, r := range h.packages {
		if n := len(r.faults); n > 0 {
			out = append(out, fmt.Sprintf("%s: does not compile: %v (the first of %d)", r.name, r.faults[0], n))
		}
	}
	left := map[value]int{}
	for _, c := range allowed {
		left[value{measure: c.measure, room: c.room}] = c.n
	}
	for _, v := range h.values() {
		key := value{measure: v.measure, room: v.room}
		ceiling, stands := left[key]
		// The lines that are left in the end name no package of today.
		delete(left, key)
		limit := v.bound().limit
		switch {
		case stands && !v.past(limit):
			out = append(out, fmt.Sprintf("%s: within the limit of %d: delete its line in ceilings", v, limit))
		case stands && v.past(ceiling):
			out = append(out, fmt.Sprintf("%s: %d stood, the limit is %d", v, ceiling, limit))
		case !stands && v.past(limit):
			out = append(out, fmt.Sprintf("%s: the limit is %d", v, limit))
		}
	}
	for _, c := range allowed {
		if _, ok := left[value{measure: c.measure, room: c.room}]; ok {
			out = append(out, fmt.Sprintf("%s: there is no such package: delete or rename its line in ceilings (%s)", c.room, c.measure))
		}
	}
	return append(out, h.checkImports(allowedImports)...)
}

// checkImports compares the imports against the layers with those that stand.
func (h *house) checkImports(allowed []string) []string {
	var out []string
	standing := map[string]bool{}
	for _, s := range allowed {
		standing[s] = true
	}
	for _, s := range h.climbs(layers) {
		if !standing[s] {
			out = append(out, s)
		}
		delete(standing, s)
	}
	for _, s := range allowed {
		if standing[s] {
			out = append(out, fmt.Sprintf("%q is gone: delete its line in standingImports", s))
		}
	}
	return out
}
