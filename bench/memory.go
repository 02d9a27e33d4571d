package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/memengine"
)

// cpuTime is the CPU time of this process since its start, user and system. Other processes on the
// machine do not count, which makes it steadier than time that passed.
func cpuTime() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// usedBy panics on an error, which a valid who cannot have.
func usedBy(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// nowhere is a journal that keeps nothing, so that the engine's memory is measured alone. It has the
// methods that the engine calls when it claims; any other call panics, since the embedded store is
// nil.
type nowhere struct{ dibs.JournalStore }

func (nowhere) Acquire(context.Context, string) (int64, error)         { return 1, nil }
func (nowhere) Append(context.Context, int64, []dibs.JournalRow) error { return nil }
func (nowhere) Close() error                                           { return nil }
func (nowhere) ReadRows(context.Context, dibs.ShardID, dibs.Cursor, int) ([]dibs.JournalRow, error) {
	return nil, nil
}

// memoryPart measures the engine's bytes per holder: a node has all claims of live campaigns in
// memory, so this decides how large a sale a machine can hold. Sizes differ by powers of ten, since
// tables grow in steps: a single size could meet a full table or one that has just doubled.
func memoryPart(ctx context.Context, o *options) error {
	fmt.Printf("| holders | bytes per holder in the engine, ids of 8 characters |\n|---|---|\n")
	for _, holders := range []int{10_000, 100_000, 1_000_000, o.holders} {
		per, err := bytesPerHolder(ctx, o.callers, holders)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.0f |\n", holders, per)
	}
	return nil
}

// bytesPerHolder opens an engine without node and ledger, grants to so many users, and divides what
// the heap grew by. Every claim has an idempotency key, as those over HTTP have from careful
// clients; without keys it would be less.
func bytesPerHolder(ctx context.Context, callers, holders int) (float64, error) {
	// The memory that the process has already, such as an engine of an earlier size that was collected.
	before := heap()
	e, err := memengine.Open(ctx, memengine.Config{Store: nowhere{}})
	if err != nil {
		return 0, err
	}
	shard := dibs.ShardID{Campaign: 1}
	c := &dibs.Campaign{
		Number: 1, ID: "c", Kind: dibs.Sale, State: dibs.Published, LimitPerUser: 1, Shards: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour), Stock: dibs.Stock{Kind: dibs.Units},
	}
	if err := e.Open(ctx, c, shard, &dibs.ShardLoad{Epoch: 1, StockLeft: math.MaxInt32}); err != nil {
		return 0, err
	}
	var all errgroup.Group
	for w := range callers {
		all.Go(func() error {
			for i := w; i < holders; i += callers {
				// Eight characters. The modulus gives some users twice, and the engine refuses the second
				// claim: so the bytes are divided by grants.
				user := "u" + strconv.Itoa(1_000_000+scatter(i)%9_000_000)
				if _, err := e.Claim(ctx, dibs.EngineClaim{Shard: shard, UserID: user, Quantity: 1, Key: uint64(i) + 1}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return 0, err
	}
	st, err := e.Stats(ctx, shard)
	if err != nil {
		return 0, err
	}
	per := float64(heap()-before) / float64(st.Granted)
	return per, e.Close(ctx)
}

// heap is the bytes of live objects. The second collection takes what the first one found to have
// finalizers or left in pools.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
