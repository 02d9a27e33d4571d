package web

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dibs-dev/dibs"
)

func TestReadBody(t *testing.T) {
	cut := io.MultiReader(strings.NewReader(`{"a`), iotest.ErrReader(io.ErrUnexpectedEOF))
	for what, c := range map[string]struct {
		body        io.Reader
		contentType string
		want        error
	}{
		"JSON":              {strings.NewReader(`{}`), "application/json; charset=utf-8", nil},
		"no type":           {strings.NewReader(`{}`), "", nil},
		"nothing, of HTML":  {strings.NewReader(``), "text/html", nil},
		"a form":            {strings.NewReader(`a=1`), "application/x-www-form-urlencoded", ErrNotJSON},
		"as much as can be": {strings.NewReader(strings.Repeat(" ", 10)), "application/json", nil},
		"a byte too many":   {strings.NewReader(strings.Repeat(" ", 11)), "application/json", &dibs.Error{Reason: dibs.TooLarge}},
		"cut off":           {cut, "application/json", ErrCutOff},
	} {
		r := httptest.NewRequest("POST", "/", c.body)
		if c.contentType != "" {
			r.Header.Set("Content-Type", c.contentType)
		}
		_, err := ReadBody(httptest.NewRecorder(), r, 10)
		var p, want Problem
		if same := errors.As(err, &p) && errors.As(c.want, &want) && p.Status == want.Status; !same && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}
