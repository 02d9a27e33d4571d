package httpapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// scenario is one request and what its answer must, and must not, contain.
type scenario struct {
	name         string
	method, path string
	body         string
	headers      []string
	status       int
	contains     []string
	lacks        []string
	// has are headers of the answer, `Name: value`; an empty value only asks
	// for presence.
	has []string
}

// never may not appear in any answer: Go's words, SQL's, and secrets. No word is so short
// that the letters of a random id may spell it.
var never = []string{"dibs.", "json:", "Go ", "struct", "sql:", "SQL ", "SQLSTATE", "sqlite", "SQLITE", "mysql", "MySQL", "panic", "goroutine", ".go:", adminKey, jwtSecret, os.TempDir() + "/"}

func (s *stack) run(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			a := s.ask(sc.method, sc.path, sc.body, sc.headers...)
			if a.status != sc.status {
				t.Errorf("status %d, want %d: %s", a.status, sc.status, a.body)
			}
			for _, want := range sc.contains {
				if !strings.Contains(a.body, want) {
					t.Errorf("the answer lacks %s: %s", want, a.body)
				}
			}
			for _, no := range append(sc.lacks, never...) {
				if strings.Contains(a.body, no) {
					t.Errorf("the answer shows %q: %s", no, a.body)
				}
			}
			for _, h := range sc.has {
				name, value, _ := strings.Cut(h, ": ")
				if got := a.header.Get(name); got == "" || value != "" && got != value {
					t.Errorf("header %s is %q, want %q", name, got, value)
				}
			}
			checkCommon(t, a)
		})
	}
}

// checkDisposition checks that a browser shows no JSON of the API as a page of its own.
func checkDisposition(t *testing.T, a answer) {
	t.Helper()
	if kind, as := a.header.Get("Content-Type"), a.header.Get("Content-Disposition"); a.ofAPI && strings.HasSuffix(kind, "json") && as != `attachment; filename="api.json"` {
		t.Errorf("%s comes as %q: %s", kind, as, a.body)
	}
}

// checkCommon checks what every answer has, and every problem.
func checkCommon(t *testing.T, a answer) {
	t.Helper()
	if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("common headers are missing: %v", a.header)
	}
	checkDisposition(t, a)
	if a.status < 400 {
		return
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("an error of type %q: %s", ct, a.body)
	}
	for _, m := range []string{"type", "title", "status", "detail", "reason", "code", "retryable", "request_id"} {
		if _, ok := a.json[m]; !ok {
			t.Errorf("the problem lacks %s: %s", m, a.body)
		}
	}
	if a.json["status"] != float64(a.status) || a.json["request_id"] != a.header.Get("X-Request-Id") {
		t.Errorf("the problem differs from its headers: %s", a.body)
	}
	if a.json["type"] != "urn:dibs:problem:"+fmt.Sprint(a.json["reason"]) {
		t.Errorf("type and reason differ: %s", a.body)
	}
}
