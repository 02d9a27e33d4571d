package web

import (
	"errors"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// offer is a body.
type offer struct {
	Title string   `json:"title"`
	Units *int64   `json:"units,omitempty" minimum:"1"`
	Tags  []string `json:"tags,omitempty"`
}

// newOffers returns a decoder whose check finds fault with an empty title.
func newOffers() Decoder {
	return NewDecoder(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer), func(o *offer) error {
		if o.Title == "" {
			return dibs.Invalid(dibs.Fault{Field: "/title", Problem: dibs.Text{EN: "must not be empty"}})
		}
		return nil
	})
}

// Every fault of a body is named at once; a body without one is decoded.
func TestDecoder(t *testing.T) {
	for body, want := range map[string]string{
		`{"title":"T","units":2}`:                          "",
		`{"title":"T","units":0}`:                          "/units",
		`{"title":"T","units":1.5}`:                        "/units",
		`{"title":"T","Units":2}`:                          "/Units",
		`{"units":0}`:                                      "/title /units",
		`{"title":"","units":0}`:                           "/title /units",
		`{"title":"","units":2}`:                           "",
		`{"title":"T","title":"U"}`:                        "/title",
		`{"title":"T"} {}`:                                 " ",
		`{"title":"T","tags":["a",1],"x":{"y/z":1}}`:       "/tags/1 /x",
		`{"title":` + strings.Repeat("[", maxDepth):        "/title" + strings.Repeat("/0", maxDepth-1),
		`{"title":`:                                        " ",
		"{\"title\":\"\xff\"}":                             "none",
		`{"title":"T","units":99999999999999999999999999}`: "/units",
	} {
		var o offer
		_, err := newOffers().Decode([]byte(body), &o)
		var e *dibs.Error
		if want == "" {
			if err != nil || o.Units == nil || *o.Units != 2 {
				t.Errorf("%s: %+v, %v", body, o, err)
			}
			continue
		}
		if !errors.As(err, &e) || e.Reason != dibs.InvalidRequest {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var fields []string
		for _, f := range e.Faults {
			fields = append(fields, f.Field)
			if f.Problem.EN == "" || f.Problem.ZH == "" && f.Field != "/title" {
				t.Errorf("%s: %+v", body, f)
			}
		}
		if got := strings.Join(fields, " "); got != strings.TrimSpace(want) && want != "none" {
			t.Errorf("%s: faults of %q, want %q", body, got, want)
		}
	}
}
