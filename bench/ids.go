package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/idgen"
)

// idMaker is one way to make ids.
type idMaker struct {
	name string
	// count is how many are made in a round.
	count int
	next  func() error
}

// ids measures how many ids of each kind a second gives, with one caller and
// with two.
func ids(ctx context.Context, o *options) error {
	r, dir, err := plainRedis()
	if err != nil {
		return err
	}
	defer stopRedis(r, dir)
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
	var block [10]byte
	makers := []idMaker{
		{"1+31+32 by day, blocks of 65,536", 20_000_000, func() error { _, err := daily.Next(ctx); return err }},
		{"the same, each from Redis", 20_000, func() error { _, err := single.Next(ctx); return err }},
		{"snowflake, leased worker", 2_000_000, func() error { _, err := flake.Next(); return err }},
		{"UUIDv7", 2_000_000, func() error { _, err := idgen.UUID(); return err }},
		{"sequence, blocks of 65,536", 20_000_000, func() error { _, err := sequence.Next(ctx); return err }},
		{"keyed permutation of a number", 1_000_000, func() error { perm.Seal(block); return nil }},
	}
	fmt.Printf("| ids/s | 1 caller | 2 callers |\n|---|---|---|\n")
	for _, m := range makers {
		var one, two []float64
		for range o.rounds {
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

func (m *idMaker) rate(callers int) (float64, error) {
	errs := make(chan error, callers)
	begun := time.Now()
	for range callers {
		go func() {
			for range m.count / callers {
				if err := m.next(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range callers {
		if err := <-errs; err != nil {
			first = err
		}
	}
	return float64(m.count) / time.Since(begun).Seconds(), first
}

// many is how many ids are looked at for two that are alike.
const many = 100_000_000

// collisions makes many ids with four callers. A second has fewer than 2^32
// counts, so that the count of the day alone tells two ids apart: a bit for each.
func collisions(ctx context.Context, d *idgen.Daily) error {
	const callers = 4
	base, err := d.Next(ctx)
	if err != nil {
		return err
	}
	_, from := idgen.DailyTime(base)
	seen := make([][]uint64, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		seen[c] = make([]uint64, (many+many/4)/64)
		wg.Go(func() {
			for range many / callers {
				id, err := d.Next(ctx)
				if err != nil {
					errs[c] = err
					return
				}
				_, count := idgen.DailyTime(id)
				at := count - from
				seen[c][at/64] ^= 1 << (at % 64)
			}
		})
	}
	wg.Wait()
	made := 0
	for i := range seen[0] {
		var all uint64
		for c := range callers {
			if errs[c] != nil {
				return errs[c]
			}
			// An id that two callers have, or one has twice, is missing then.
			all |= seen[c][i]
		}
		made += ones(all)
	}
	fmt.Printf("\n%d ids of the day by %d callers: %d different, %d alike\n", many, callers, made, many-made)
	return nil
}
