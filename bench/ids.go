package main

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/idgen"
)

// idMaker is one way to make ids. next may be called by several goroutines at a time.
type idMaker struct {
	name string
	// count is how many are made in a round: about as many as take a second or some.
	count int
	next  func() error
}

// ids measures how many ids of each kind a second gives, with one caller and with two: where the
// rate falls with two, callers wait for each other. A generator that asks Redis for each id stands
// beside one that takes blocks, and shows what a block saves. Redis runs here, without a network in between. At the
// end collisions looks for ids that are alike, of the kind that counts by day.
func ids(ctx context.Context, o *options) error {
	r, stop, err := startRedis()
	if err != nil {
		return err
	}
	defer stop()
	counter, err := idgen.OpenRedisCounter(r.URL(), "")
	if err != nil {
		return err
	}
	defer counter.Close()
	daily, err := idgen.NewDaily(counter, "d", 1<<16, nil)
	if err != nil {
		return err
	}
	defer daily.Close()
	// A block of one id: each id is a call to Redis.
	single, err := idgen.NewDaily(counter, "one", 1, nil)
	if err != nil {
		return err
	}
	defer single.Close()
	sequence, err := idgen.NewSequence(counter, "s", 1<<16)
	if err != nil {
		return err
	}
	flake, err := idgen.OpenSnowflake(ctx, r.URL(), "", time.Hour, nil)
	if err != nil {
		return err
	}
	defer flake.Close()
	perm, err := idgen.NewFeistel(make([]byte, idgen.KeySize))
	if err != nil {
		return err
	}
	// Seal takes and returns the block by value: callers share no memory.
	var block [10]byte
	makers := []idMaker{
		{"1+31+32 by day, blocks of 65,536", 20_000_000, func() error { _, err := daily.Next(ctx); return err }},
		{"the same, each from Redis", 20_000, func() error { _, err := single.Next(ctx); return err }},
		// A worker has 4,096 ids a millisecond. The lease of an hour lets ids run ahead of the clock;
		// with a short lease, a rate above that would end in an error. Both callers share one worker.
		{"snowflake, leased worker", 2_000_000, func() error { _, err := flake.Next(); return err }},
		{"UUIDv7", 2_000_000, func() error { _, err := idgen.UUID(); return err }},
		{"sequence, blocks of 65,536", 20_000_000, func() error { _, err := sequence.Next(ctx); return err }},
		{"keyed permutation of a number", 1_000_000, func() error { perm.Seal(block); return nil }},
	}
	fmt.Printf("| ids/s | 1 caller | 2 callers |\n|---|---|---|\n")
	for _, m := range makers {
		var one, two []float64
		for range o.rounds {
			// The order of the two changes from round to round, as a map's does.
			for callers, into := range map[int]*[]float64{1: &one, 2: &two} {
				rate, err := m.rate(callers)
				if err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
				*into = append(*into, rate)
			}
		}
		fmt.Printf("| %s | %.0f | %.0f |\n", m.name, median(one), median(two))
	}
	return collisions(ctx, daily)
}

// rate returns ids made a second by so many callers together. An error of any caller spoils it.
func (m *idMaker) rate(callers int) (float64, error) {
	var all errgroup.Group
	begun := time.Now()
	for range callers {
		all.Go(func() error {
			for range m.count / callers {
				if err := m.next(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := all.Wait()
	return float64(m.count) / time.Since(begun).Seconds(), err
}

// many is how many ids are compared. The bits of four callers take about 62 MB together.
const many = 100_000_000

// collisions makes many ids with four callers and fails to count one that two of them have. A
// second has fewer than 2^32 counts, so the count of the day alone tells two ids apart, and a bit
// for each is enough. Each caller sets bits of its own: a shared set would need a lock.
func collisions(ctx context.Context, d *idgen.Daily) error {
	const callers = 4
	base, err := d.Next(ctx)
	if err != nil {
		return err
	}
	_, from := idgen.DailyTime(base)
	seen := make([][]uint64, callers)
	var group errgroup.Group
	for c := range callers {
		// A quarter more than many: counts may be taken in a block and then not given.
		seen[c] = make([]uint64, (many+many/4)/64)
		group.Go(func() error {
			for range many / callers {
				id, err := d.Next(ctx)
				if err != nil {
					return err
				}
				_, count := idgen.DailyTime(id)
				at := count - from
				seen[c][at/64] ^= 1 << (at % 64)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	made := 0
	for i := range seen[0] {
		var all uint64
		for c := range callers {
			// An id that two callers have counts once here, and one that a caller has twice not at all,
			// since its bit was flipped back: in both cases the sum falls below many.
			all |= seen[c][i]
		}
		made += bits.OnesCount64(all)
	}
	fmt.Printf("\n%d ids of the day by %d callers: %d different, %d alike\n", many, callers, made, many-made)
	return nil
}
