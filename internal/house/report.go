package main

import (
	"fmt"
	"io"
	"strings"
)

// report prints the measures of all packages, and those of the house.
// It only shows; check is what fails.
func (h *house) report(w io.Writer) error {
	columns := []measure{files, names, methods, wide, circle, fileLines, funcLines}
	t := table(w, "PACKAGE", "files", "exported names", "type's methods", "interface's methods", "circle of files", "file lines", "function lines")
	of := map[string]map[measure]value{}
	for _, v := range h.values() {
		if of[v.room] == nil {
			of[v.room] = map[measure]value{}
		}
		of[v.room][v.measure] = v
	}
	for _, r := range h.packages {
		cells := []any{r.name}
		for _, m := range columns {
			cells = append(cells, cell(of[r.name][m]))
		}
		row(t, cells...)
	}
	limits, aims := []any{"limit (root: 30 files)"}, []any{"aim"}
	for _, m := range columns {
		limits, aims = append(limits, bounds[m].limit), append(aims, bounds[m].aim)
	}
	row(t, limits...)
	row(t, aims...)
	if err := t.Flush(); err != nil {
		return err
	}
	var perFile, perFunc []int
	total := 0
	for _, r := range h.packages {
		for _, f := range r.files {
			total += f.lines
			perFile = append(perFile, f.lines)
			perFunc = append(perFunc, f.functions...)
		}
	}
	fmt.Fprintf(w, "\n%d lines in %d files of %d packages, tests not counted\n", total, len(perFile), len(h.packages))
	median, p90, largest := spread(perFile)
	fmt.Fprintf(w, "file lines: median %d, p90 %d, max %d\n", median, p90, largest)
	median, p90, largest = spread(perFunc)
	fmt.Fprintf(w, "function lines: median %d, p90 %d, max %d\n", median, p90, largest)
	for _, file := range ways {
		if v, ok := of[file][wayLines]; ok {
			fmt.Fprintf(w, "%s: %s lines, the limit of a way is %d, the aim %d\n", file, cell(v), bounds[wayLines].limit, bounds[wayLines].aim)
		}
	}
	for _, m := range []measure{comments, tested} {
		v := of[everywhere][m]
		fmt.Fprintf(w, "%s: %s, the limit is %d, the aim %d\n", m, cell(v), bounds[m].limit, bounds[m].aim)
	}
	if unlisted := h.unlisted(layers); len(unlisted) > 0 {
		fmt.Fprintf(w, "without a place in the layers: %s\n", strings.Join(unlisted, " "))
	}
	return nil
}

// cell shows a value, with an exclamation mark when it is past its limit.
func cell(v value) string {
	s := fmt.Sprint(v.n)
	if v.past(v.bound().limit) {
		s += "!"
	}
	if v.at != "" && (v.measure == methods || v.measure == wide) {
		s += " " + v.at
	}
	return s
}
