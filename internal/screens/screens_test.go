package main

import (
	"testing"
	"time"
)

// Every screen is without a fault that axe knows, a complaint of the browser's, a request to elsewhere, and something too
// small to press, in all eight looks: it is loaded in each language, and turned through both shades and widths.
func TestScreens(t *testing.T) {
	all := []look{{"en", false, 1280}, {"zh", true, 390}}
	faults, err := run(t.Context(), options{out: t.TempDir(), looks: all, turned: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestLooks(t *testing.T) {
	names := map[string]bool{}
	for _, l := range looks(false) {
		names[l.name()] = true
	}
	for _, l := range []look{{"en", false, 1280}, {"zh", true, 390}} {
		for _, turned := range append(l.turns(), l) {
			delete(names, turned.name())
		}
	}
	if len(looks(false)) != 8 || len(names) > 0 || len(looks(true)) != 2 || startsWithin < time.Minute {
		t.Errorf("%v", names)
	}
}

// The READMEs show four pictures, each under a name of its own.
func TestPictured(t *testing.T) {
	files := map[string]bool{}
	for _, p := range pictured() {
		files[p.file] = true
	}
	if len(files) != 4 || !files["console.png"] || !files["rain.zh.png"] {
		t.Errorf("%v", files)
	}
}
