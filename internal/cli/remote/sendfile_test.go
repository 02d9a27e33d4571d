package remote

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCountLines counts lines of any length, the last one without an end too, and
// leaves the file at its beginning.
func TestCountLines(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for text, want := range map[string]int64{"": 0, "a": 1, "a\n": 1, "a\r\n\nb": 3, long + "\n" + long: 2} {
		path := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := countLines(file)
		rest, readErr := io.ReadAll(file)
		if err != nil || got != want || readErr != nil || string(rest) != text {
			t.Errorf("%.9q: %d lines, want %d, %v; then %d bytes, %v", text, got, want, err, len(rest), readErr)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestImportProgress writes a line now and then.
func TestImportProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		progress, end := importProgress(&out, 10, "codes")
		progress(1)
		<-time.After(progressEvery)
		progress(7)
		progress(8)
		end()
		if out.String() != "imported 7 of 10 codes\n" {
			t.Errorf("%q", &out)
		}
	})
}
