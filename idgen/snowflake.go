package idgen

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Snowflake gives ids of 63 bits: 41 of milliseconds since the beginning of
// 2022, 10 of a worker, 12 of a sequence. Workers are leased in Redis, so that
// nobody has to number the processes; a lease promises the milliseconds up to
// its end to its holder, and the next holder begins there. So neither a clock
// that steps back nor a paused process makes two ids alike. When the clock steps
// back, ids go on from the last millisecond. Safe for concurrent use.
//
// mu guards worker, last and promised, and is not held while Redis is asked. last never falls,
// and no id has a millisecond of promised or later.
type Snowflake struct {
	c      rueidis.Client
	key    string
	token  string
	worker int64
	life   time.Duration
	clock  func() time.Time

	mu sync.Mutex
	// last is the millisecond and the sequence of the last id; promised is where
	// the lease ends.
	last, promised int64
	stop           chan struct{}
	ended          sync.WaitGroup
}

const (
	snowflakeEpoch = dailyEpoch * 1000
	sequenceBits   = 12
	workerBits     = 10
	// workers is how many there are.
	workers = 1 << workerBits
)

var (
	// ErrNoWorker: all workers are leased.
	ErrNoWorker = errors.New("idgen: all workers are leased")
	// ErrLease: the lease has ended and could not be renewed.
	ErrLease = errors.New("idgen: the lease of the worker has ended")
)

//go:embed lua/lease.lua
var leaseText string

var leaseScript = rueidis.NewLuaScript(leaseText)

// leastLease is the shortest lease.
const leastLease = time.Second

// OpenSnowflake leases a worker in Redis, under a prefix ("ids:" when it is
// empty), for as long as it is open; life is how long a worker outlives a
// process that is not heard of, a second or more. now is the clock; nil means
// time.Now.
func OpenSnowflake(ctx context.Context, url, prefix string, life time.Duration, now func() time.Time) (*Snowflake, error) {
	if life < leastLease {
		return nil, fmt.Errorf("idgen: a lease is %s or more, not %s", leastLease, life)
	}
	if now == nil {
		now = time.Now
	}
	c, err := openRedis(url)
	if err != nil {
		return nil, err
	}
	s := &Snowflake{c: c, key: cmp.Or(prefix, "ids:") + "workers", token: rand.Text(), worker: -1, life: life, clock: now, stop: make(chan struct{})}
	if err := s.lease(ctx); err != nil {
		c.Close()
		return nil, err
	}
	s.ended.Go(s.renew)
	return s, nil
}

// lease takes a worker, or renews the lease of the one that it has. Where that one is
// another process's by now, it takes a free one, and begins after all that Redis may have
// promised of it and lost since; the ids that it was promised before stay its own.
func (s *Snowflake) lease(ctx context.Context) error {
	s.mu.Lock()
	worker := s.worker
	s.mu.Unlock()
	now := s.clock()
	err := s.ask(ctx, worker, now)
	if errors.Is(err, ErrLease) {
		err = s.ask(ctx, -1, now.Add(s.life))
	}
	return err
}

// ask leases a worker, or any with -1, for ids from a time on. ErrLease when the worker is not
// this process's, ErrNoWorker when all are leased.
func (s *Snowflake) ask(ctx context.Context, worker int64, at time.Time) error {
	from := at.UnixMilli() - snowflakeEpoch
	s.mu.Lock()
	from = max(from, s.last>>sequenceBits)
	s.mu.Unlock()
	reply, err := leaseScript.Exec(ctx, s.c, []string{s.key}, []string{
		s.token, strconv.FormatInt(worker, 10), strconv.FormatInt(s.life.Milliseconds(), 10), strconv.FormatInt(from, 10), strconv.Itoa(workers),
	}).AsIntSlice()
	if err != nil {
		return fmt.Errorf("idgen: leasing a worker: %w", err)
	}
	if len(reply) != 3 || reply[0] < 0 {
		if worker >= 0 {
			return ErrLease
		}
		return ErrNoWorker
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker = reply[0]
	s.last = max(s.last, reply[1]<<sequenceBits)
	s.promised = reply[2]
	return nil
}

func (s *Snowflake) renew() {
	t := time.NewTicker(s.life / 4)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.stop:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.life/4)
		// A renewal that fails is tried again; Next refuses when the lease has ended.
		_ = s.lease(ctx)
		cancel()
	}
}

// Worker is the number of the worker.
func (s *Snowflake) Worker() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker
}

// Next returns an id. ErrLease when the lease has ended, or when more ids were
// asked for than its milliseconds hold.
func (s *Snowflake) Next() (int64, error) {
	now := (s.clock().UnixMilli() - snowflakeEpoch) << sequenceBits
	s.mu.Lock()
	defer s.mu.Unlock()
	// The sequence runs on into the next millisecond when it is full.
	s.last = max(s.last+1, now)
	if s.last>>sequenceBits >= s.promised {
		s.last--
		return 0, ErrLease
	}
	return s.last>>sequenceBits<<(sequenceBits+workerBits) | s.worker<<sequenceBits | s.last&(1<<sequenceBits-1), nil
}

// Close gives the worker back at the end of its lease.
func (s *Snowflake) Close() {
	close(s.stop)
	s.ended.Wait()
	s.c.Close()
}
