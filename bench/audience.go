package main

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/audience"
	"github.com/dibs-dev/dibs/internal/bigpages"

	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/gate"
)

// audiencePart imports ten million users and looks for some.
func audiencePart(ctx context.Context, _ *options) error {
	n, err := openNode(ctx, node.ServiceConfig{})
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

func measureList(ctx context.Context, n *benchNode, name string, of func(i int) string) error {
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
	begun = time.Now()
	set, err := audience.Load(ctx, n.Ledger, &got.Audience)
	if err != nil {
		return err
	}
	loaded := time.Since(begun)
	const looks = 1 << 20
	var asked strings.Builder
	for i := range looks {
		asked.WriteString(of((i * 7919) % (2 * gate.MaxAudience)))
	}
	l := lookUp(set, asked.String(), looks)
	fmt.Printf("| %s, half of those asked for are there (%d%%) | %.1f s | %.1f s | %.1f MiB | %.0f ns | %.0f ns | %.0f ns |\n", name, l.found*100/looks,
		imported.Seconds(), loaded.Seconds(), float64(set.Bytes())/(1<<20), median(l.apart), median(l.inTurn), median(l.read))
	return nil
}

// lookups are the nanoseconds of CPU that a look-up took in each round: each user
// by himself; each only when the one before was answered; and, to compare, one
// read at a random place of as much memory.
type lookups struct {
	apart, inTurn, read []float64
	found, last         int
	place, at           uint64
}

// lookUp looks for n users with ids of one length, each at another place of the
// list. They are in one text, so that little else is read. It measures the CPU
// time of this thread: neighbours come and go, and what is left of the import is
// collected meanwhile by other threads.
func lookUp(set *audience.Set, users string, n int) (l lookups) {
	size := len(users) / n
	memory := bigpages.Words(set.Bytes() / 4)
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
	for range 9 {
		l.found = 0
		per(&l.apart, func() {
			for i := range n {
				if set.Has(users[i*size : (i+1)*size]) {
					l.found++
				}
			}
		})
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
				// The product tells the next place, once what is there is known.
				place, _ := bits.Mul64(uint64(memory[l.place]+1)*0x9e3779b97f4a7c15+l.at, uint64(len(memory)))
				l.place, l.at = place, l.at+0xd6e8feb86659fd93
			}
		})
	}
	return l
}
