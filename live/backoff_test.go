package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// A campaign that could not be loaded is tried again within seconds for as long
// as that costs few epochs of the 4,095 that a shard has in its life.
func TestRestAfterFailedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r backoff
		fail := func() time.Duration {
			r.spend()
			return r.after(errAway)
		}
		for n := range rejoinMany {
			if pause := fail(); pause < rejoinMin || pause > rejoinSoon {
				t.Fatalf("after %d failed loads the next one is made in %s", n+1, pause)
			}
		}
		begun, n := time.Now(), rejoinMany
		for ; time.Since(begun) < 30*24*time.Hour; n++ {
			wait.Sleep(t.Context(), fail())
			if !r.over() {
				t.Fatal("the pause does not end")
			}
		}
		if n > int(dibs.MaxEpoch)+rejoinMany+1000 {
			t.Errorf("a month of failed loads costs %d epochs", n)
		}
		if pause := r.after(errAway); pause != rejoinMin {
			t.Errorf("an attempt that cost no epoch is made again in %s", pause)
		}
		r.after(nil)
		if pause := fail(); pause != rejoinMin {
			t.Errorf("after a load that went well, the next one is made in %s", pause)
		}
	})
}
