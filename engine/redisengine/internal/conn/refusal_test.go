package conn

import (
	"errors"
	"regexp"
	"testing"

	"github.com/dibs-dev/dibs"
)

// A load by too few shards is told from other refusals, so that it is not made again.
func TestALoadByTooFewShardsIsTold(t *testing.T) {
	var told interface {
		error
		NotDivided() bool
	}
	if err := Refusal(&Result{Word: "undivided"}); !errors.As(err, &told) || !told.NotDivided() {
		t.Errorf("%v does not say so", err)
	}
	if err := Refusal(&Result{Word: "superseded"}); errors.As(err, &told) {
		t.Errorf("%v says so", err)
	}
}

// Each word with which a script refuses stands for an error of its own, and a word
// that is not known for one of unknown effect.
func TestEveryWordIsAnError(t *testing.T) {
	if err := Refusal(&Result{Word: "ok"}); err != nil {
		t.Errorf("ok is %v", err)
	}
	words := map[string]bool{}
	word := regexp.MustCompile(`\{'([a-z_]+)', now`)
	files, err := luaFiles.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := luaFiles.ReadFile("lua/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range word.FindAllSubmatch(text, -1) {
			words[string(found[1])] = true
		}
	}
	t.Logf("the scripts say %v", words)
	for w := range words {
		var e *dibs.Error
		switch err := Refusal(&Result{Word: w}); {
		case w == "ok" || w == "held" || w == "respread":
			// Those who run these scripts look for these words themselves.
		case err == nil:
			t.Errorf("%s is no error", w)
		case errors.As(err, &e) && e.Effect == dibs.EffectUnknown:
			t.Errorf("%s is not known: %v", w, err)
		}
	}
	if err := Refusal(&Result{Word: "nonsense"}); !errors.Is(err, ErrShape) {
		t.Errorf("nonsense is %v", err)
	}
	if err := Refusal(&Result{Word: "too_many", Rest: []Reply{{Text: "3"}}}); !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("a withdrawal of too many is %v", err)
	}
}
