package main

import (
	"maps"
	"slices"
	"testing"
)

// user uses of two other files a name, a method, a field, and those of a
// generic type; it calls one method through an interface, and has a local name
// that is like a name of the other file.
// The package funds has a file of the same name.
const user = `
import far "example.com/dibs/funds"
func use(i face, g box[int]) {
	c := count{Name}
	c.Add()
	c.total++
	g.Get()
	g.item++
	i.Call()
	Other := 1
	_ = Other
	_ = far.Far{Distance: Other}
}
`

const used = `
const Name, Other = 1, 2

type count struct{ total int }

func (*count) Add() {}

type face interface{ Call() }

type box[T any] struct{ item T }

func (box[T]) Get() {}
`

func TestFileUses(t *testing.T) {
	body := "\nfunc init() { use(nil, box[int]{item: 1}) }\n"
	h := built{}.file("lab/user.go", user).file("lab/used.go", used).file("lab/both.go", body).
		file("funds/used.go", "// Far is.\ntype Far struct{ Distance int }\n").house(t)
	u := h.fileUses(h.room(t, "lab"))
	want := map[string]int{
		"Name": 1, "count": 1, "count.Add": 1, "count.total": 1, "face": 1,
		"box": 1, "box.Get": 1, "box.item": 1,
	}
	if got := u["user.go"]["used.go"]; !maps.Equal(got, want) {
		t.Errorf("user.go uses of used.go\n%v, want\n%v", got, want)
	}
	if got := u["both.go"]; !maps.Equal(got["user.go"], map[string]int{"use": 1}) || !maps.Equal(got["used.go"], map[string]int{"box": 1, "box.item": 1}) {
		t.Errorf("both.go uses %v", got)
	}
	if len(u) != 2 {
		t.Errorf("used.go uses something: %v", u["used.go"])
	}
}

// room returns a package that the module must have.
func (h *house) room(t *testing.T, name string) *room {
	t.Helper()
	at := slices.IndexFunc(h.packages, func(r *room) bool { return r.name == name })
	if at < 0 {
		t.Fatalf("there is no package %s", name)
	}
	return h.packages[at]
}
