//go:build soak

package ci_test

import (
	"testing"
	"time"
)

// devSoon is how long dibs dev may take until its campaigns can be claimed.
const devSoon = time.Second

// TestDevIsSoonThere: once it is built, dibs dev serves its campaigns within a second of
// its start. The fastest of some starts counts. A time depends on the machine, so the soak
// alone asks for it.
func TestDevIsSoonThere(t *testing.T) {
	dibs, fastest := compiled(t), time.Hour
	for range 10 {
		t.Run("start", func(t *testing.T) {
			begun := time.Now()
			startDev(t, dibs)
			fastest = min(fastest, time.Since(begun))
		})
		if fastest < devSoon {
			break
		}
	}
	t.Logf("dibs dev served after %s", fastest.Round(time.Millisecond))
	if fastest >= devSoon {
		t.Errorf("dibs dev took %s, and may take %s", fastest, devSoon)
	}
}
