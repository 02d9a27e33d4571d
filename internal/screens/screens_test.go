package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Every screen is without a fault that axe knows, a complaint of the browser's, a request to elsewhere, and something too
// small to press. With every change one screen is looked at in English, wide and light, the next in Chinese, on a telephone
// and dark; in long campaigns each is in both, and is turned to the other widths and shades.
func TestScreens(t *testing.T) {
	all := []look{{"en", false, 1280}, {"zh", true, 390}}
	long := os.Getenv("SOAK") != ""
	faults, err := run(t.Context(), options{looks: all, turned: long, spread: !long})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestLooks(t *testing.T) {
	names, tested := map[string]bool{}, map[string]bool{}
	for _, l := range looks(false) {
		names[l.name()] = true
	}
	for _, l := range []look{{"en", false, 1280}, {"zh", true, 390}} {
		for _, l := range []look{l, l.turned()} {
			tested[fmt.Sprint(l.language, l.dark)], tested[fmt.Sprint(l.language, l.width)] = true, true
			if !names[l.name()] {
				t.Errorf("%s is no look", l.name())
			}
		}
	}
	if len(names) != 8 || len(tested) != 8 || len(looks(true)) != 2 || startsWithin < time.Minute {
		t.Errorf("%v %v", names, tested)
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
