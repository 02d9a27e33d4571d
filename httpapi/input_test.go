package httpapi_test

import (
	"regexp"
	"strings"
	"testing"
)

// Every route that takes parameters refuses those that it does not know: a filter that
// is mistyped would list everything.
func TestUnknownParameters(t *testing.T) {
	s := newGated(t)
	paths, _ := s.ask("GET", "/openapi.json", "").json["paths"].(map[string]any)
	takes := func(operation map[string]any) bool {
		list, _ := operation["parameters"].([]any)
		for _, p := range list {
			if at(p)["in"] == "query" {
				return true
			}
		}
		return false
	}
	tried := 0
	for path, methods := range paths {
		operation := at(methods, "get")
		if operation == nil || !takes(operation) {
			continue
		}
		tried++
		address := regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "1") + "?nobody_knows=1"
		refused := false
		for _, as := range []string{asAdmin, asUser} {
			a := s.ask("GET", address, "", as)
			refused = refused || a.status == 400 && strings.Contains(a.body, `"/nobody_knows"`)
		}
		if !refused {
			t.Errorf("GET %s takes any parameter", path)
		}
	}
	if tried < 10 {
		t.Errorf("only %d routes take parameters", tried)
	}
}
