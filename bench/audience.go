package main

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/internal/bigpages"

	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/gate"
)

// audiencePart measures lists of the greatest size that dibs takes: the import into the ledger,
// the load from there into memory, the memory, and a look-up. The yardstick of a look-up is one
// read at a random place of as much memory, in the same run: a list of this size does not fit the
// processor's caches, so no look-up does without one. Users are named in two ways, because short
// names and UUIDs differ in the bytes to hash. Big pages change both figures alike; where Linux
// does not give them, the absolute figures are worse.
func audiencePart(ctx context.Context, _ *options) error {
	n, err := openNode(ctx, node.Config{})
	if err != nil {
		return err
	}
	defer n.discard()
	fmt.Printf("| list of %d users | import into SQLite | load | memory | a look-up | one after the other | a random read |\n|---|---|---|---|---|---|---|\n", gate.MaxAudience)
	for _, shape := range []struct {
		name string
		of   func(i int) string
	}{
		{"names of ten characters", func(i int) string { return fmt.Sprintf("u%09d", scatter(i)%1_000_000_000) }},
		{"UUIDs", func(i int) string { return fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", scatter(i)) }},
	} {
		if err := measureList(ctx, n, shape.name, shape.of); err != nil {
			return err
		}
	}
	return nil
}

// measureList imports a list of users that of names, loads it, looks users up and prints a row.
func measureList(ctx context.Context, n *benchNode, name string, of func(i int) string) error {
	// The import reads from a pipe, as a request's body: a file would add the disk's reads. Making
	// the names runs beside the import and takes a part of its CPU.
	users, write := io.Pipe()
	go func() {
		b := make([]byte, 0, 1<<16)
		for i := range gate.MaxAudience {
			if b = append(append(b, of(i)...), '\n'); len(b) > 1<<16-64 {
				_, _ = write.Write(b)
				b = b[:0]
			}
		}
		_, _ = write.Write(b)
		_ = write.Close()
	}()
	begun := time.Now()
	got, err := audience.Import(ctx, n.Ledger, "all", users, nil)
	if err != nil {
		return err
	}
	imported := time.Since(begun)
	// import and load happen once: their times are single values, not medians.
	begun = time.Now()
	set, err := audience.Load(ctx, n.Ledger, &got.Audience)
	if err != nil {
		return err
	}
	loaded := time.Since(begun)
	const looks = 1 << 20
	// The numbers go up to twice the list, so that many of those asked for are absent: a user who
	// is absent must cost no more than one who is there. scatter repeats users beyond 2^24, so more
	// than half are there; the row prints the part. 7919 has no factor in common with the range, so
	// no number is asked for twice.
	var asked strings.Builder
	for i := range looks {
		asked.WriteString(of((i * 7919) % (2 * gate.MaxAudience)))
	}
	l := lookUp(set, asked.String(), looks)
	fmt.Printf("| %s, half of those asked for are there (%d%%) | %.1f s | %.1f s | %.1f MiB | %.0f ns | %.0f ns | %.0f ns |\n", name, l.found*100/looks,
		imported.Seconds(), loaded.Seconds(), float64(set.Bytes())/(1<<20), median(l.apart), median(l.inTurn), median(l.read))
	return nil
}

// lookups are the nanoseconds of CPU that a look-up took in each round: apart, independent look-ups;
// inTurn, look-ups of which each decides which user comes next; read, the yardstick, one read at a
// random place of as much memory. found, last, place and at are the state of the three loops: the
// compiler cannot leave work out whose result is kept.
type lookups struct {
	apart, inTurn, read []float64
	found, last         int
	place, at           uint64
}

// lookUp looks for n users with ids of one length, each at another place of the list. All ids are in
// one text, one after the other, so that little memory is read besides the list. It measures the CPU
// time of its own thread: other processes do not count, and other threads collect meanwhile what is
// left of the import.
func lookUp(set *audience.Set, users string, n int) (l lookups) {
	size := len(users) / n
	memory := bigpages.Words(set.Bytes() / 4)
	// Writing each word makes the system give every page. Pages that were never written are all
	// one page of zeros, which stays in the cache, and the random read would seem to cost nothing.
	for i := range memory {
		memory[i] = uint32(i) * 2654435761
	}
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	per := func(list *[]float64, measured func()) {
		begun := threadTime()
		measured()
		*list = append(*list, float64(threadTime()-begun)/float64(n))
	}
	// Each of the nine rounds takes the three ways in turn, so that a slow second meets all three.
	for range 9 {
		l.found = 0
		// The look-ups do not depend on each other: the processor overlaps their reads of memory.
		per(&l.apart, func() {
			for i := range n {
				if set.Has(users[i*size : (i+1)*size]) {
					l.found++
				}
			}
		})
		// The result of a look-up decides which user comes next, so the processor cannot overlap
		// them: this is what one claim waits for.
		per(&l.inTurn, func() {
			for range n {
				step := 1
				if set.Has(users[l.last*size : (l.last+1)*size]) {
					step = 2
				}
				l.last = (l.last + step) % n
			}
		})
		per(&l.read, func() {
			for range n {
				// The next place follows from the word that was read, so this read cannot overlap the
				// next one either. at changes in each step; without it the walk could fall into a
				// short cycle, whose words stay in the cache.
				place, _ := bits.Mul64(uint64(memory[l.place]+1)*0x9e3779b97f4a7c15+l.at, uint64(len(memory)))
				l.place, l.at = place, l.at+0xd6e8feb86659fd93
			}
		})
	}
	return l
}
