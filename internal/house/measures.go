package main

import (
	"fmt"
	"path"
	"slices"

	"github.com/dibs-dev/dibs/internal/tidy"
)

// measure is one thing that is counted.
type measure string

// The measures of each package, then those of the whole house.
const (
	files     measure = "files"
	names     measure = "exported names"
	methods   measure = "methods of a type"
	wide      measure = "methods of an interface"
	circle    measure = "files that all need each other"
	fileLines measure = "lines of a file"
	funcLines measure = "lines of a function"
	wayLines  measure = "lines of a way"
	comments  measure = "percent of comment lines"
	tested    measure = "percent of files with a test beside them"
)

// bound is the limit of a measure. The aim is only shown.
type bound struct {
	limit, aim int
	// least is set when values below the limit break it, not values above.
	least bool
}

// bounds are the limits of the house. The sizes of files and functions are those
// of internal/tidy, which also holds them for tests and for other languages.
var bounds = map[measure]bound{
	files:     {limit: 40, aim: 30},
	names:     {limit: 260, aim: 200},
	methods:   {limit: 60, aim: 40},
	wide:      {limit: 25, aim: 15},
	circle:    {limit: 15, aim: 12},
	fileLines: {limit: tidy.MaxFileLines, aim: 250},
	funcLines: {limit: tidy.MaxFunctionLines, aim: 40},
	wayLines:  {limit: 300, aim: 250},
	comments:  {limit: 16, aim: 18, least: true},
	tested:    {limit: 50, aim: 50, least: true},
}

// ways are the files that are read from top to bottom by everyone who learns how
// the service works: the way of a claim through HTTP and to the engine, and of a journal
// entry into the ledger. Their limit is lower than that of other files.
var ways = []string{"httpapi/claim.go", "claims/claim.go", "live/settle.go"}

// rootFiles is the limit for the files of the root package, which everyone
// reads first.
// It is stricter than for other packages.
const rootFiles = 30

// everywhere stands in the place of a package for measures of the whole house.
const everywhere = "all packages"

// value is what was measured.
type value struct {
	measure measure
	// room is the package, the file of a way, or everywhere.
	room string
	n    int
	// at names the type, the file or the function that has the value, if one has.
	at string
}

// bound returns the limit for the value.
func (v value) bound() bound {
	b := bounds[v.measure]
	if v.measure == files && v.room == "." {
		b.limit, b.aim = rootFiles, rootFiles
	}
	return b
}

// past reports whether the value breaks a limit.
// A value at its limit is within it.
func (v value) past(limit int) bool {
	if v.bound().least {
		return v.n < limit
	}
	return v.n > limit
}

// String names the package and shows the value with its measure.
func (v value) String() string {
	s := fmt.Sprintf("%s: %d %s", v.room, v.n, v.measure)
	if v.at != "" {
		s += " (" + v.at + ")"
	}
	return s
}

// values measures every package, and the house.
// The two shares are of the whole house, since a small package may say all that is to
// say in few lines.
func (h *house) values() []value {
	var out []value
	lines, said, count, beside := 0, 0, 0, 0
	for _, r := range h.packages {
		out = append(out, h.roomValues(r)...)
		for _, f := range r.files {
			if file := path.Join(r.name, f.name); slices.Contains(ways, file) {
				out = append(out, value{measure: wayLines, room: file, n: f.lines})
			}
			lines += f.lines - f.blank
			said += f.comments
			count++
			if f.tested {
				beside++
			}
		}
	}
	return append(out,
		value{measure: comments, room: everywhere, n: 100 * said / max(lines, 1)},
		value{measure: tested, room: everywhere, n: 100 * beside / max(count, 1)})
}

// lostWays returns the ways whose files are not where ways says.
// Without this, a way that was renamed would be held by no limit.
func (h *house) lostWays() []string {
	lost := slices.Clone(ways)
	for _, v := range h.values() {
		if v.measure == wayLines {
			lost = slices.DeleteFunc(lost, func(file string) bool { return file == v.room })
		}
	}
	return lost
}

// roomValues measures one package.
// Every measure has a value, also for a package without types or functions: a ceiling
// names it.
func (h *house) roomValues(r *room) []value {
	most := map[measure]value{}
	raise := func(m measure, n int, at string) {
		if n >= most[m].n {
			most[m] = value{measure: m, room: r.name, n: n, at: at}
		}
	}
	raise(files, len(r.files), "")
	raise(names, r.exported(), "")
	raise(methods, 0, "")
	raise(wide, 0, "")
	for _, k := range r.kinds() {
		if k.isInterface {
			raise(wide, k.methods, k.named.Obj().Name())
		} else {
			raise(methods, k.methods, k.named.Obj().Name())
		}
	}
	raise(circle, h.fileUses(r).graph(nil).largest(), "")
	for _, f := range r.files {
		raise(fileLines, f.lines, f.name)
		raise(funcLines, slices.Max(append(f.functions, 0)), f.name)
	}
	var out []value
	for _, m := range []measure{files, names, methods, wide, circle, fileLines, funcLines} {
		out = append(out, most[m])
	}
	return out
}

// spread returns the median, the ninetieth percentile and the largest of some
// numbers.
// It sorts the numbers in place.
func spread(of []int) (median, p90, largest int) {
	if len(of) == 0 {
		return 0, 0, 0
	}
	slices.Sort(of)
	return of[len(of)/2], of[len(of)*9/10], of[len(of)-1]
}
