package main

import (
	"cmp"
	"maps"
	"slices"
)

// edge says that one file needs another.
type edge struct{ from, to string }

// graph leads from each file to the files that it needs.
// The order of a list does not matter. A file without needs may be missing.
type graph map[string][]string

// graph drops the counts. Edges for which skip returns true are left out.
func (u uses) graph(skip func(edge) bool) graph {
	g := graph{}
	for from, tos := range u {
		for to := range tos {
			if skip == nil || !skip(edge{from, to}) {
				g[from] = append(g[from], to)
			}
		}
	}
	return g
}

// groups returns the sets of two and more files that all need each other, over
// any number of steps: the strongly connected components, the largest first.
// It is Tarjan's algorithm.
// Files are visited in the order of their names, so that the result is the same at
// each run.
func (g graph) groups() [][]string {
	t := &tarjan{g: g, index: map[string]int{}, low: map[string]int{}, on: map[string]bool{}}
	for _, v := range slices.Sorted(maps.Keys(g)) {
		if t.index[v] == 0 {
			t.visit(v)
		}
	}
	slices.SortStableFunc(t.found, func(a, b []string) int { return len(b) - len(a) })
	return t.found
}

// largest returns the size of the largest group, 0 when no two files need each other.
func (g graph) largest() int {
	if all := g.groups(); len(all) > 0 {
		return len(all[0])
	}
	return 0
}

// tarjan is the state of one search. Indexes begin with 1.
//
// index is when a file was met first, 0 for not yet. low is the lowest index that is
// known to be reachable from it within the stack. A file is on the stack until its
// group is complete.
type tarjan struct {
	g          graph
	index, low map[string]int
	stack      []string
	on         map[string]bool
	found      [][]string
}

func (t *tarjan) visit(v string) {
	t.index[v] = len(t.index) + 1
	t.low[v] = t.index[v]
	t.stack = append(t.stack, v)
	t.on[v] = true
	for _, w := range t.g[v] {
		if t.index[w] == 0 {
			t.visit(w)
			t.low[v] = min(t.low[v], t.low[w])
		} else if t.on[w] {
			t.low[v] = min(t.low[v], t.index[w])
		}
	}
	// The group has an earlier file, which closes it.
	if t.low[v] != t.index[v] {
		return
	}
	at := slices.Index(t.stack, v)
	group := slices.Sorted(slices.Values(t.stack[at:]))
	for _, w := range group {
		t.on[w] = false
	}
	t.stack = t.stack[:at]
	if len(group) > 1 {
		t.found = append(t.found, group)
	}
}

// within keeps only the uses between the files of a group.
// The uses themselves are shared and must not be changed.
func (u uses) within(group []string) uses {
	out := uses{}
	for from, tos := range u {
		for to, names := range tos {
			if slices.Contains(group, from) && slices.Contains(group, to) {
				if out[from] == nil {
					out[from] = map[string]map[string]int{}
				}
				out[from][to] = names
			}
		}
	}
	return out
}

// count is how often the edge is used.
func (u uses) count(e edge) int {
	n := 0
	for _, c := range u[e.from][e.to] {
		n += c
	}
	return n
}

// order puts the files of a group into an order with few uses uphill, from a
// file to one that stands before it. No order without any exists in a group. It
// begins with the files that use much and are used little, then moves single
// files to their best place until no move helps.
// It finds a good order, not always the best: that problem has no fast solution.
func (u uses) order(group []string) []string {
	// The gain when the first stands above the second: uses that then go
	// downhill, less those that go uphill.
	gain := func(above, below string) int { return u.count(edge{above, below}) - u.count(edge{below, above}) }
	lead := map[string]int{}
	for _, a := range group {
		for _, b := range group {
			lead[a] += gain(a, b)
		}
	}
	out := slices.Clone(group)
	slices.SortStableFunc(out, func(a, b string) int { return lead[b] - lead[a] })
	const rounds = 100 // Each round lowers the count, so that far fewer are needed.
	for moved, round := true, 0; moved && round < rounds; round++ {
		moved = false
		for _, f := range group {
			from := slices.Index(out, f)
			// Only a strict gain moves a file, so the count of uphill uses falls in each
			// move and the loop ends.
			best, at := 0, from
			for to, sum := from-1, 0; to >= 0; to-- {
				if sum += gain(f, out[to]); sum > best {
					best, at = sum, to
				}
			}
			for to, sum := from+1, 0; to < len(out); to++ {
				if sum += gain(out[to], f); sum > best {
					best, at = sum, to
				}
			}
			if at != from {
				out = slices.Insert(slices.Delete(out, from, from+1), at, f)
				moved = true
			}
		}
	}
	return out
}

// cut is an edge, and the size of the largest group after it and all cuts
// before it are removed.
type cut struct {
	edge
	uses, largest int
}

// cuts returns the edges that go uphill in the given order, the ones first that
// break the group most, and among those the ones with the fewest uses. When all
// are removed no group is left.
// It chooses the best edge of each step. A better set of two or three edges together
// may exist.
func (u uses) cuts(order []string) []cut {
	var uphill []edge
	for i, to := range order {
		for _, from := range order[i+1:] {
			if u[from][to] != nil {
				uphill = append(uphill, edge{from, to})
			}
		}
	}
	removed := map[edge]bool{}
	var out []cut
	for len(uphill) > 0 {
		best := cut{largest: len(order) + 1}
		for _, e := range uphill {
			rest := u.graph(func(x edge) bool { return removed[x] || x == e }).largest()
			c := cut{e, u.count(e), rest}
			if cmp.Or(c.largest-best.largest, c.uses-best.uses) < 0 {
				best = c
			}
		}
		removed[best.edge] = true
		uphill = slices.DeleteFunc(uphill, func(e edge) bool { return e == best.edge })
		out = append(out, best)
	}
	return out
}

// tie is a name that files of a group use.
type tie struct {
	name, file string
	// users is how many other files of the group use it, uses how often.
	users, uses int
	// largest is the size of the largest group if the name stood in another package.
	largest int
}

// ties returns the names that connect the files of a group, the ones first
// without which the group falls apart most.
func (u uses) ties() []tie {
	byName := map[edge]*tie{}
	for _, tos := range u {
		for to, names := range tos {
			for name, n := range names {
				k := edge{name, to}
				if byName[k] == nil {
					byName[k] = &tie{name: name, file: to}
				}
				byName[k].users++
				byName[k].uses += n
			}
		}
	}
	var out []tie
	for _, t := range byName {
		t.largest = u.graph(func(e edge) bool {
			names := u[e.from][e.to]
			return e.to == t.file && len(names) == 1 && names[t.name] > 0
		}).largest()
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b tie) int {
		return cmp.Or(a.largest-b.largest, b.users-a.users, b.uses-a.uses, cmp.Compare(a.name, b.name), cmp.Compare(a.file, b.file))
	})
	return out
}
