package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/lock"
)

const (
	// lockTurns is how often a lock is taken and given back in a round, and lockSlice how often
	// before it is the other way's turn: some milliseconds, in which the machine's speed holds.
	lockTurns, lockSlice = 5000, 50
	// contenders is how many callers want one lock at a time, each contenderTurns times.
	contenders, contenderTurns = 50, 20
)

// locks measures the lock on one Redis. The yardstick of a lock and unlock that nobody else wants is
// rueidislock, on the same server and by the same Redis client; the yardstick of a hand-over among
// many is asking for the lock every 10 ms, which is what most code does.
func locks(ctx context.Context, o *options) error {
	r, stop, err := startRedis()
	if err != nil {
		return err
	}
	defer stop()
	ours, err := lock.OpenRedis(lock.RedisConfig{URL: r.URL()})
	if err != nil {
		return err
	}
	defer ours.Close()
	theirs, err := rueidislock.NewLocker(rueidislock.LockerOption{
		// One key: by default it takes a majority of three keys, and would do more work than ours.
		ClientOption: rueidis.ClientOption{InitAddress: []string{r.Addr()}}, KeyMajority: 1,
		// On a busy machine its default of 20 ms expires before the answer comes, and then it waits
		// for a message that nobody sends.
		TryNextAfter: time.Second,
	})
	if err != nil {
		return err
	}
	defer theirs.Close()
	mine := func() error {
		h, err := ours.Lock(ctx, "free", lock.Options{})
		if err != nil {
			return err
		}
		return h.Unlock(ctx)
	}
	other := func() error {
		_, cancel, err := theirs.WithContext(ctx, "free")
		if err == nil {
			cancel()
		}
		return err
	}
	// In short turns, so that what else the machine does meets both alike.
	var a, b []float64
	// So many slices of each way.
	for range o.rounds * lockTurns / lockSlice {
		for _, way := range []struct {
			do   func() error
			into *[]float64
		}{{mine, &a}, {other, &b}} {
			begun := time.Now()
			for range lockSlice {
				if err := way.do(); err != nil {
					return err
				}
			}
			*way.into = append(*way.into, float64(time.Since(begun).Microseconds())/lockSlice)
		}
	}
	fmt.Printf("| lock and unlock, no other holder | µs | to rueidislock |\n|---|---|---|\n")
	fmt.Printf("| lock | %.0f | %.2f |\n| rueidislock, one server | %.0f | 1.00 |\n", median(a), median(a)/median(b), median(b))
	return handOvers(ctx, o, ours)
}

// handOvers measures from the Unlock of one holder until the Lock of the next returns: woken in
// order by the lock, and asking. Asking every 10 ms has a mean of some ms by itself; the p99 shows
// callers who are unlucky again and again.
func handOvers(ctx context.Context, o *options, l lock.Locker) error {
	// Both ways take the same kind of lock on the same server: only the waiting differs.
	waited := func() (lock.Held, error) { return l.Lock(ctx, "wanted", lock.Options{}) }
	polled := func() (h lock.Held, err error) {
		err = until(ctx, 10*time.Millisecond, func() (bool, error) {
			if h, err = l.Lock(ctx, "wanted", lock.Options{Wait: lock.NoWait}); errors.Is(err, lock.ErrBusy) {
				return false, nil
			}
			return true, err
		})
		return h, err
	}
	fmt.Printf("\n| hand-over among %d, ms | p50 | p99 |\n|---|---|---|\n", contenders)
	var p99 [2]float64
	for i, way := range []struct {
		name string
		take func() (lock.Held, error)
	}{{"woken in order", waited}, {"asking every 10 ms", polled}} {
		var mids, highs []float64
		for range o.rounds {
			took, err := handOver(ctx, way.take)
			if err != nil {
				return err
			}
			mid, high := quantiles(took)
			mids, highs = append(mids, mid), append(highs, high)
		}
		p99[i] = median(highs)
		fmt.Printf("| %s | %.2f | %.2f |\n", way.name, median(mids), p99[i])
	}
	fmt.Printf("\nThe p99 of asking is %.1f times that of being woken.\n", p99[1]/p99[0])
	return nil
}

// handOver has contenders take the lock by turns, and returns the hand-overs in milliseconds. Holders
// do nothing while they hold it, so that only the hand-over is measured. A caller may take it again
// at once; that counts as a hand-over too.
func handOver(ctx context.Context, take func() (lock.Held, error)) (took []float64, err error) {
	var all errgroup.Group
	// The lock under test guards given and took: two holders at once would be a data race, and a
	// defect of the lock. given is read just before Unlock, so its call to Redis is included.
	var given time.Time
	for range contenders {
		all.Go(func() error {
			for range contenderTurns {
				h, err := take()
				if err != nil {
					return err
				}
				if !given.IsZero() {
					took = append(took, time.Since(given).Seconds()*1000)
				}
				given = time.Now()
				if err := h.Unlock(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = all.Wait()
	return took, err
}
