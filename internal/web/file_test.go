package web

import (
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A file that is received leaves no name behind, whatever becomes of it.
func TestReceiveCSV(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for what, c := range map[string]struct {
		body, contentType string
		status            int
	}{
		"a file":    {"code\nA1\n", "text/csv; charset=utf-8", 0},
		"too large": {strings.Repeat("x", 100), "text/csv", 413},
		"JSON":      {"[]", "application/json", 415},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		file, sum, err := ReceiveCSV(deadlines{httptest.NewRecorder()}, r, 10)
		if c.status != 0 {
			p := ProblemOf(err)
			if err == nil || p.StatusCode() != c.status {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(file)
		if err != nil || string(raw) != c.body || len(sum) != 64 {
			t.Errorf("%s: %q, %s, %v", what, raw, sum, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// deadlines is a ResponseWriter that takes deadlines, as net/http's do.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error { return nil }
