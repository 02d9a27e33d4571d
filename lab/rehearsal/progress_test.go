package rehearsal

import (
	"testing"
	"time"
)

// A pace is shown when it means something, and never by the hour.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		done int64
		took time.Duration
		want string
	}{{0, time.Hour, ""}, {5_000, 10 * time.Millisecond, ""}, {5_000, time.Second, " 5,000/s"}, {1, 10 * time.Second, " 0/s"}, {30_000, 2 * time.Second, " 15,000/s"}} {
		if got := pace(test.done, test.took); got != test.want {
			t.Errorf("%d in %s: %q, want %q", test.done, test.took, got, test.want)
		}
	}
}
