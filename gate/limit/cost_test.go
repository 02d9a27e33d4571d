package limit

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestMemoryOfNames: names that clients make up take the memory of the tables that there are
// from the beginning, and no more, however many come.
func TestMemoryOfNames(t *testing.T) {
	const entries = 1 << 18
	before := heap()
	l, err := New(Config{Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	tables := heap() - before
	t.Logf("%d bytes for each of %d names, in %d tables", tables/entries/int64(kinds), entries, kinds)
	if per := tables / entries / int64(kinds); per < 14 || per > 20 {
		t.Errorf("a name takes %d bytes", per)
	}
	c := &dibs.Campaign{Number: 1, Gate: &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "device", Rate: 1, Every: dibs.Duration(time.Hour)}}}}
	made := heap()
	for i := range 4 * entries {
		// Some are refused, in sets of the table that are full.
		l.Pass(t.Context(), c, &dibs.ClaimRequest{CampaignID: "c", UserID: "42", Device: fmt.Sprint("made up ", i)})
	}
	if grown := heap() - made; grown > 1<<20 {
		t.Errorf("%d made-up names took %d bytes more", 4*entries, grown)
	}
	runtime.KeepAlive(l)
}

// heap is what is in use, in bytes, once collections free nothing more: what tests before
// have closed may end a little later.
func heap() int64 {
	var s runtime.MemStats
	for last := uint64(math.MaxUint64); ; last = s.HeapAlloc {
		runtime.GC()
		runtime.ReadMemStats(&s)
		if s.HeapAlloc >= last {
			return int64(last)
		}
		<-time.After(20 * time.Millisecond)
	}
}
