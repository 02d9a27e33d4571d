package bounded_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/bounded"
)

// A cache keeps what it is given up to its bound, and forgets what it is told to.
func TestCache(t *testing.T) {
	c, err := bounded.New[int, string](10)
	if err != nil {
		t.Fatal(err)
	}
	defer c.StopAllGoroutines()
	if _, ok := c.GetIfPresent(1); ok {
		t.Error("it has what it was not given")
	}
	if _, ok := c.Set(1, "one"); !ok {
		t.Error("something was there before")
	}
	if v, ok := c.GetIfPresent(1); !ok || v != "one" {
		t.Errorf("%q, %v", v, ok)
	}
	if v, ok := c.Invalidate(1); !ok || v != "one" {
		t.Errorf("%q, %v", v, ok)
	}
	if _, ok := c.GetIfPresent(1); ok {
		t.Error("it has what it was told to forget")
	}
	for i := range 1000 {
		c.Set(i, "more")
	}
	kept := func() (n int) {
		for i := range 1000 {
			if _, ok := c.GetIfPresent(i); ok {
				n++
			}
		}
		return n
	}
	// Another goroutine drops what is too much.
	for deadline := time.Now().Add(time.Minute); kept() > 10 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := kept(); n == 0 || n > 10 {
		t.Errorf("it keeps %d of 10", n)
	}
}
