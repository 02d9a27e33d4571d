package redisengine

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

const (
	// asksAtOnce is how many shards are asked at the same time; the connection
	// sends them together.
	asksAtOnce = 64
	// goneAfter is how long a shard is missing until it is taken for retired. Its
	// next opening begins with another step on the list, a moment before it is there.
	goneAfter = 10 * time.Second
)

// surveys finds the shards that have something unsettled, once for all callers that
// ask at the same time.
//
// mu guards next and busy, and is held for no request. At most one survey runs, while
// busy is set; missing is its own, written under the lock of that survey.
type surveys struct {
	p    *process
	list shardList

	mu sync.Mutex
	// next takes all callers that come while another one is under way.
	next *survey
	busy bool

	// missing are the shards that are listed and not there: the running survey's.
	missing map[dibs.ShardID]missing
}

// survey is one survey and what it found. behind and err are set by its goroutine before it
// closes done, and do not change after that.
type survey struct {
	behind []dibs.ShardID
	err    error
	done   chan struct{}
}

// missing is since when, and at which step on the list, a shard is not there.
type missing struct {
	step  string
	since time.Time
	gone  bool
}

// unsettled returns the shards that have journal entries beyond what Lease has
// told. It asks after the call, so that what was granted before is seen.
func (s *surveys) unsettled(ctx context.Context) ([]dibs.ShardID, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &survey{done: make(chan struct{})}
	}
	mine := s.next
	if !s.busy {
		if !s.p.start(s.survey) {
			s.next = nil
			s.mu.Unlock()
			return nil, errClosed
		}
		s.busy = true
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.behind, mine.err
	case <-ctx.Done():
		return nil, dibs.Unavail(dibs.EffectNone, ctx.Err())
	}
}

// survey asks for as long as a caller waits.
func (s *surveys) survey() {
	for {
		s.mu.Lock()
		now := s.next
		s.next, s.busy = nil, now != nil
		s.mu.Unlock()
		if now == nil {
			return
		}
		now.behind, now.err = s.findUnsettled(context.Background())
		close(now.done)
	}
}

// findUnsettled compares, for each shard, the place of its last entry with the
// one that is settled.
func (s *surveys) findUnsettled(ctx context.Context) ([]dibs.ShardID, error) {
	listed, err := s.list.listed(ctx)
	if err != nil {
		return nil, err
	}
	s.leaveOut(listed)
	var mu sync.Mutex
	var behind []dibs.ShardID
	var asks errgroup.Group
	asks.SetLimit(asksAtOnce)
	for id, step := range listed {
		asks.Go(func() error {
			there, settled, err := s.isSettled(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !there {
				s.miss(id, step)
			}
			if there && !settled {
				behind = append(behind, id)
			}
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return nil, err
	}
	return behind, nil
}

// isSettled reports whether a shard is there, and whether the ledger has all of
// its entries. A shard that is still being opened is settled up to where it will begin.
func (s *surveys) isSettled(ctx context.Context, id dibs.ShardID) (there, settled bool, err error) {
	keys, err := s.p.keysOf(id)
	if err != nil {
		return false, false, err
	}
	r, err := s.p.call(ctx, "HMGET", keys.Meta, "state", "epoch", "seq", "settled_epoch", "settled_seq")
	switch {
	case conn.Says(err, "WRONGTYPE"):
		// The question that follows is refused, and says why.
		return true, false, nil
	case err != nil:
		return false, false, err
	case len(r.List) != 5:
		return false, false, dibs.Unavail(dibs.EffectNone, conn.ErrShape)
	}
	f := r.List
	return !f[0].None, f[2].None || f[1].Text == f[3].Text && f[2].Text == f[4].Text, nil
}

// miss notes a shard that is not there.
func (s *surveys) miss(id dibs.ShardID, step string) {
	m, ok := s.missing[id]
	if !ok {
		m = missing{step: step, since: time.Now()}
	}
	m.gone = m.gone || time.Since(m.since) > goneAfter
	s.missing[id] = m
}

// leaveOut takes those that are gone off a list, and forgets what was listed
// again or is on the list no more.
func (s *surveys) leaveOut(listed map[dibs.ShardID]string) {
	maps.DeleteFunc(s.missing, func(id dibs.ShardID, m missing) bool { return listed[id] != m.step })
	for id, m := range s.missing {
		if m.gone {
			delete(listed, id)
		}
	}
}
