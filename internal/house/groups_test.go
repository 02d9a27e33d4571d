package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// usesOf reads uses written as "a>b:name a>b:name".
func usesOf(text string) uses {
	u := uses{}
	for _, w := range strings.Fields(text) {
		files, name, _ := strings.Cut(w, ":")
		from, to, _ := strings.Cut(files, ">")
		u.add(from, to, name)
	}
	return u
}

func TestGroups(t *testing.T) {
	u := usesOf("a>b:x b>a:x c>d:x d>e:x e>c:x b>c:x e>f:x g>a:x e>x:x x>y:x y>x:x")
	want := [][]string{{"c", "d", "e"}, {"x", "y"}, {"a", "b"}}
	if got := u.graph(nil).groups(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
	if n := u.graph(func(e edge) bool { return e == edge{"e", "c"} }).largest(); n != 2 {
		t.Errorf("without an edge of the larger group the largest has %d files, want 2", n)
	}
	if n := usesOf("a>b:x").graph(nil).largest(); n != 0 {
		t.Errorf("a group of %d files where none is", n)
	}
}

// TestGroupsAgainstReach compares random graphs with the definition: two files
// are in one group when each reaches the other.
func TestGroupsAgainstReach(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	const size = 8
	for range 300 {
		u, reach := uses{}, [size][size]bool{}
		for range dice.IntN(20) {
			a, b := dice.IntN(size), dice.IntN(size)
			if a != b {
				u.add(strconv.Itoa(a), strconv.Itoa(b), "x")
				reach[a][b] = true
			}
		}
		for k := range size {
			for a := range size {
				for b := range size {
					reach[a][b] = reach[a][b] || reach[a][k] && reach[k][b]
				}
			}
		}
		in := map[string]int{}
		for i, g := range u.graph(nil).groups() {
			for _, f := range g {
				in[f] = i + 1
			}
		}
		for a := range size {
			for b := range a {
				both := reach[a][b] && reach[b][a]
				together := in[strconv.Itoa(a)] > 0 && in[strconv.Itoa(a)] == in[strconv.Itoa(b)]
				if both != together {
					t.Fatalf("%d and %d in one group: %v, want %v, in %v", a, b, together, both, u)
				}
			}
		}
	}
}

// seam is two halves; the lower one needs the upper one by one use only.
const seam = "a>b:x b>a:y a>b:z  c>d:x d>c:y c>d:z  b>c:p b>c:p a>d:q  d>b:last"

func TestOrderAndCuts(t *testing.T) {
	u := usesOf(seam)
	order := u.order([]string{"a", "b", "c", "d"})
	if got := strings.Join(order, ""); got != "abcd" {
		t.Errorf("order %s, want abcd", got)
	}
	want := []cut{{edge{"d", "b"}, 1, 2}, {edge{"b", "a"}, 1, 2}, {edge{"d", "c"}, 1, 0}}
	if got := u.cuts(order); !slices.Equal(got, want) {
		t.Errorf("cuts %v, want %v", got, want)
	}
}

// TestOrderCannotBeBettered moves single files of random groups: no move leaves
// fewer uses uphill.
func TestOrderCannotBeBettered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	files := strings.Split("abcdefg", "")
	for range 200 {
		u := uses{}
		for range 30 {
			u.add(files[dice.IntN(len(files))], files[dice.IntN(len(files))], "x")
		}
		order := u.order(files)
		best := u.uphill(order)
		for from, f := range order {
			for to := range order {
				moved := slices.Insert(slices.Delete(slices.Clone(order), from, from+1), to, f)
				if n := u.uphill(moved); n < best {
					t.Fatalf("order %v has %d uses uphill, %v has %d, of %v", order, best, moved, n, u)
				}
			}
		}
	}
}

// uphill counts the uses of files that stand before their users.
func (u uses) uphill(order []string) int {
	n := 0
	for i, to := range order {
		for _, from := range order[i+1:] {
			n += u.count(edge{from, to})
		}
	}
	return n
}

func TestTies(t *testing.T) {
	got := usesOf(seam).ties()
	want := tie{name: "last", file: "b", users: 1, uses: 1, largest: 2}
	if got[0] != want {
		t.Errorf("the name that ties most is %v, want %v", got[0], want)
	}
	if len(got) != 9 {
		t.Errorf("%d names, want 9: %v", len(got), got)
	}
}

func TestWithin(t *testing.T) {
	u := usesOf(seam).within([]string{"c", "d"})
	if len(u) != 2 || u.count(edge{"c", "d"}) != 2 || u.count(edge{"d", "c"}) != 1 || u.count(edge{"d", "b"}) != 0 {
		t.Errorf("within c and d: %v", u)
	}
}
