package redisengine

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
)

const (
	// asksAtOnce is how many shards are asked at the same time; the connection
	// sends them together.
	asksAtOnce = 64
	// goneAfter is how long a shard is missing until it is taken for retired. Its
	// next opening begins with another step on the list, a moment before it is there.
	goneAfter = 10 * time.Second
)

// surveys finds the shards that have something unsettled, once for all who ask
// at the same time.
type surveys struct {
	mu sync.Mutex
	// next takes all who come while another one is under way.
	next *survey
	busy bool

	// missing are the shards that are listed and not there: the running survey's.
	missing map[dibs.ShardID]missing
}

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
func (e *Engine) unsettled(ctx context.Context) ([]dibs.ShardID, error) {
	s := &e.surveys
	s.mu.Lock()
	if s.next == nil {
		s.next = &survey{done: make(chan struct{})}
	}
	mine := s.next
	if !s.busy {
		if !e.begin() {
			s.next = nil
			s.mu.Unlock()
			return nil, errClosed
		}
		s.busy = true
		go e.survey()
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.behind, mine.err
	case <-ctx.Done():
		return nil, dibs.Unavail(dibs.EffectNone, ctx.Err())
	}
}

// survey asks for as long as somebody waits.
func (e *Engine) survey() {
	defer e.running.Done()
	s := &e.surveys
	for {
		s.mu.Lock()
		now := s.next
		s.next, s.busy = nil, now != nil
		s.mu.Unlock()
		if now == nil {
			return
		}
		now.behind, now.err = e.findUnsettled(context.Background())
		close(now.done)
	}
}

// findUnsettled compares, for each shard, the place of its last entry with the
// one that is settled.
func (e *Engine) findUnsettled(ctx context.Context) ([]dibs.ShardID, error) {
	listed, err := e.listed(ctx)
	if err != nil {
		return nil, err
	}
	e.surveys.leaveOut(listed)
	var mu sync.Mutex
	var behind []dibs.ShardID
	var asks errgroup.Group
	asks.SetLimit(asksAtOnce)
	for id, step := range listed {
		asks.Go(func() error {
			there, settled, err := e.isSettled(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !there {
				e.surveys.miss(id, step)
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
// its entries. What is still being opened is settled up to where it will begin.
func (e *Engine) isSettled(ctx context.Context, id dibs.ShardID) (there, settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, "HMGET", keysOf(id).meta, "state", "epoch", "seq", "settled_epoch", "settled_seq")
	var answered *answeredError
	if errors.As(err, &answered) && strings.HasPrefix(answered.message, "WRONGTYPE") {
		// The question that follows is refused, and says why.
		return true, false, nil
	}
	if err != nil {
		return false, false, fault(ctx, dibs.EffectNone, err)
	}
	if len(r.list) != 5 {
		return false, false, dibs.Unavail(dibs.EffectNone, errShape)
	}
	f := r.list
	return !f[0].none, f[2].none || f[1].text == f[3].text && f[2].text == f[4].text, nil
}

// miss notes a shard that is not there.
func (s *surveys) miss(id dibs.ShardID, step string) {
	m, ok := s.missing[id]
	if !ok {
		if s.missing == nil {
			s.missing = make(map[dibs.ShardID]missing)
		}
		s.missing[id] = missing{step: step, since: time.Now()}
		return
	}
	if !m.gone && time.Since(m.since) > goneAfter {
		m.gone = true
		s.missing[id] = m
	}
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
