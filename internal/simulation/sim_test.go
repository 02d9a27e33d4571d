package simulation

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestSpike(t *testing.T) {
	from, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64)
	if n == 0 {
		n = 1
	}
	began := time.Now()
	var virtual time.Duration
	bad := 0
	for seed := from; seed < from+n; seed++ {
		out := Run(t, seed, Planted{})
		virtual += out.Virtual
		if len(out.Broken) > 0 {
			bad++
			if n == 1 {
				t.Error(out)
			} else {
				t.Error(seed, out.Broken[0])
			}
		}
	}
	t.Logf("%d seeds, %d broken, %s, virtual %s", n, bad, time.Since(began), virtual)
}
