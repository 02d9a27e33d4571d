package web

import (
	"errors"
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

// noted keeps the deadline that was set last.
type noted struct {
	*httptest.ResponseRecorder
	last *time.Time
}

func (n noted) SetReadDeadline(at time.Time) error {
	*n.last = at
	return nil
}

// stalling is a body of which some bytes come, and then none before the deadline.
type stalling struct {
	left int
	last *time.Time
	at   time.Time
}

func (s *stalling) Read(to []byte) (int, error) {
	n := min(s.left, len(to))
	s.left -= n
	if n == 0 {
		s.at = *s.last
		return 0, os.ErrDeadlineExceeded
	}
	return n, nil
}

// TestSlowUploadsEnd: who sends nothing gives the place of an import back after half a
// minute, and each byte gives a sender more time, up to ten minutes.
func TestSlowUploadsEnd(t *testing.T) {
	for sent, want := range map[int]time.Duration{0: 30 * time.Second, 1 << 20: 46 * time.Second, 32 << 20: 542 * time.Second, 64 << 20: 10 * time.Minute} {
		var last time.Time
		body := &stalling{left: sent, last: &last}
		r := httptest.NewRequest("POST", "/", body)
		r.Header.Set("Content-Type", "text/csv")
		begun := time.Now()
		if _, _, err := ReceiveCSV(noted{httptest.NewRecorder(), &last}, r, 1<<30); !errors.Is(err, ErrCutOff) {
			t.Errorf("%d bytes: %v", sent, err)
		}
		if has := body.at.Sub(begun); has < want-time.Second || has > want+5*time.Second {
			t.Errorf("after %d bytes a sender has %v in all, want %v", sent, has, want)
		}
	}
}
