package main

import (
	"cmp"
	"fmt"
	"go/types"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// view says how much of a package is printed.
type view struct {
	// edges is how many edges and names of each group are printed.
	edges int
	// promoted is set to count the promoted methods of embedded types too.
	promoted bool
}

// show prints what one package consists of: its files, its types, and the
// groups of files that all need each other, with the places where a group
// comes apart most easily.
// It is for whoever looks for a seam; no test depends on its text.
func (h *house) show(w io.Writer, r *room, v view) error {
	for _, err := range r.faults {
		fmt.Fprintf(w, "does not compile, so that uses are missing: %v\n", err)
	}
	fmt.Fprintf(w, "package %s: %d files, %d exported names\n", r.name, len(r.files), r.exported())
	u := h.fileUses(r)
	t := table(w, "\nFILES", "lines", "comments", "test", "needs", "is needed by")
	for _, f := range r.files {
		needed := 0
		for _, tos := range u {
			if tos[f.name] != nil {
				needed++
			}
		}
		test := ""
		if f.tested {
			test = "yes"
		}
		row(t, f.name, f.lines, f.comments, test, len(u[f.name]), needed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := h.showTypes(w, r, v.promoted); err != nil {
		return err
	}
	groups := u.graph(nil).groups()
	if len(groups) == 0 {
		fmt.Fprintln(w, "\nno two files need each other")
	}
	for _, g := range groups {
		if err := u.within(g).show(w, g, v.edges); err != nil {
			return err
		}
	}
	return nil
}

// showTypes prints the types with methods, those with most methods first.
// Types without methods are left out: they tie no files together.
func (h *house) showTypes(w io.Writer, r *room, promoted bool) error {
	all := r.kinds()
	slices.SortStableFunc(all, func(a, b kind) int { return b.methods - a.methods })
	t := table(w, "\nTYPES", "kind", "methods", "in files", "declared in")
	for _, k := range all {
		if promoted {
			k.methods = types.NewMethodSet(types.NewPointer(k.named)).Len()
		}
		if k.methods == 0 {
			continue
		}
		of := "type"
		if k.isInterface {
			of = "interface"
		}
		files := map[string]bool{}
		for m := range k.named.Methods() {
			files[h.file(m)] = true
		}
		row(t, k.named.Obj().Name(), of, k.methods, max(len(files), 1), h.file(k.named.Obj()))
	}
	return t.Flush()
}

// file is the name of the file that declares an object.
func (h *house) file(obj types.Object) string {
	return filepath.Base(h.fset.Position(obj.Pos()).Filename)
}

// show prints one group, of whose files u holds all uses.
// Edges and names are sorted by how much they break, so the first lines are the ones
// to read.
func (u uses) show(w io.Writer, group []string, shown int) error {
	order := u.order(group)
	cuts := u.cuts(order)
	uphill, total := 0, 0
	for _, c := range cuts {
		uphill += c.uses
	}
	for from, tos := range u {
		for to := range tos {
			total += u.count(edge{from, to})
		}
	}
	fmt.Fprintf(w, "\nGROUP of %d files that all need each other, in the order with the fewest uses uphill:\n%s\n", len(group), wrap(order))
	fmt.Fprintf(w, "%d of %d uses go uphill, over %d edges; without these edges there is no group. The ones that break it most:\n", uphill, total, len(cuts))
	t := table(w, "  FROM", "to", "uses", "group then", "names")
	for _, c := range cuts[:min(shown, len(cuts))] {
		row(t, "  "+c.from, c.to, c.uses, c.largest, most(u[c.from][c.to]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	ties := u.ties()
	fmt.Fprintf(w, "\nNAMES without which it would break most, if they stood in another package (%d in all):\n", len(ties))
	t = table(w, "  NAME", "declared in", "used by files", "uses", "group then")
	for _, n := range ties[:min(shown, len(ties))] {
		row(t, "  "+n.name, n.file, n.users, n.uses, n.largest)
	}
	return t.Flush()
}

// most lists the names of an edge, the most used first, with their counts.
func most(names map[string]int) string {
	list := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(names[b]-names[a], cmp.Compare(a, b))
	})
	const room = 6
	var out []string
	for _, n := range list[:min(room, len(list))] {
		out = append(out, fmt.Sprintf("%s %d", n, names[n]))
	}
	if len(list) > room {
		out = append(out, fmt.Sprintf("and %d more", len(list)-room))
	}
	return strings.Join(out, ", ")
}

// wrap sets words into lines of about 120 characters.
func wrap(words []string) string {
	var out strings.Builder
	line := " "
	for _, w := range words {
		if len(line)+len(w) > 118 {
			out.WriteString(line + "\n")
			line = " "
		}
		line += " " + w
	}
	return out.String() + line
}

// table begins a table with the given columns.
func table(w io.Writer, columns ...any) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(t, columns...)
	return t
}

func row(t *tabwriter.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, c)
	}
	fmt.Fprintln(t)
}
