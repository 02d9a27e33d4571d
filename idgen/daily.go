package idgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Daily gives ids of 64 bits: a zero, 31 bits of seconds since the
// beginning of 2022, and 32 bits of a counter that begins anew each day (UTC). A
// positive number, in the order of the seconds, of which the day's count can be
// read. It takes the counts in blocks, so that an id costs no round trip.
//
// Two ids are never alike: ids of one second are of one day, and have different
// counts. That does not hang on the clock: when it steps back, a process goes on
// with the last second it has seen, and one that is started anew takes new
// counts of the earlier day. Safe for concurrent use.
//
// Counts are taken from the block in now without a lock. mu is held to put a new block there,
// also while the Counter is asked, so that a used block is replaced once. seconds never falls.
type Daily struct {
	counter Counter
	name    string
	size    int64
	clock   func() time.Time

	mu  sync.Mutex
	now atomic.Pointer[block]
	// seconds is the highest that the clock has shown, read every tick.
	seconds atomic.Int64
	stop    chan struct{}
	ended   sync.WaitGroup
}

const (
	// dailyEpoch is where the seconds begin: 2022-01-01 00:00:00 UTC.
	dailyEpoch = 1640995200
	countBits  = 32
	maxSeconds = 1<<31 - 1
	day        = 24 * 60 * 60
	// tick is how often the clock is read: an id's second may be so much late.
	tick = 20 * time.Millisecond
)

// ErrUsedUp: the day's 2^32 counts, or the 68 years of the seconds, are used up.
var ErrUsedUp = errors.New("idgen: no ids are left")

// NewDaily counts under a name, size counts a block. now is the clock; nil
// means time.Now. Close ends it.
func NewDaily(c Counter, name string, size int64, now func() time.Time) (*Daily, error) {
	if size < 1 || size > maxBlock {
		return nil, fmt.Errorf("idgen: a block has 1 to %d counts, not %d", maxBlock, size)
	}
	if now == nil {
		now = time.Now
	}
	d := &Daily{counter: c, name: name, size: size, clock: now, stop: make(chan struct{})}
	d.now.Store(&block{})
	d.read()
	d.ended.Go(d.watch)
	return d, nil
}

// Close ends the reading of the clock.
func (d *Daily) Close() {
	close(d.stop)
	d.ended.Wait()
}

func (d *Daily) watch() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			d.read()
		case <-d.stop:
			return
		}
	}
}

// read reads the clock, which only goes forward here.
func (d *Daily) read() {
	now := d.clock().Unix() - dailyEpoch
	for {
		last := d.seconds.Load()
		if now <= last || d.seconds.CompareAndSwap(last, now) {
			return
		}
	}
}

// Next returns an id. ErrUsedUp, or an error of the counter.
func (d *Daily) Next(ctx context.Context) (int64, error) {
	for {
		b := d.now.Load()
		second := d.seconds.Load()
		if second >= b.from && second < b.until {
			if n := b.give(); n > 0 {
				return second<<countBits | n, nil
			}
		}
		if err := d.lease(ctx, b); err != nil {
			return 0, err
		}
	}
}

// lease takes a block of the day in place of a used one, or of one of an earlier
// day.
func (d *Daily) lease(ctx context.Context, used *block) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now.Load() != used {
		return nil
	}
	second := d.seconds.Load()
	if second < 0 || second > maxSeconds {
		return fmt.Errorf("%w: the clock shows a time outside of 2022 to 2090", ErrUsedUp)
	}
	begin := second - (second+dailyEpoch)%day
	name := d.key(time.Unix(second+dailyEpoch, 0))
	last, err := d.counter.Take(ctx, name, d.size)
	if err != nil {
		return err
	}
	if last >= 1<<countBits {
		return fmt.Errorf("%w: %d were taken on one day", ErrUsedUp, last)
	}
	b := &block{end: last, name: name, from: begin, until: begin + day}
	b.next.Store(last - d.size)
	d.now.Store(b)
	return nil
}

// key is the counter of a day, as ids:name:2026:11:21.
func (d *Daily) key(t time.Time) string { return d.name + ":" + t.UTC().Format("2006:01:02") }

// Count is how many ids of a day were taken by all processes, what is left of
// their blocks included.
func (d *Daily) Count(ctx context.Context, on time.Time) (int64, error) {
	return d.counter.Taken(ctx, d.key(on))
}

// DailyTime is the second of an id, and its count of the day.
func DailyTime(id int64) (at time.Time, count uint32) {
	return time.Unix(id>>countBits+dailyEpoch, 0).UTC(), uint32(id)
}
