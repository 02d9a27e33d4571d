package redisengine

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// shard is one shard as this process knows it: how Redis names it, and what answers
// have told of it.
//
// p, id and keys never change. known guards what follows it and is held for no
// request. seen never moves back, and every script is told of it: so a Redis that
// has lost history of the shard is found out by the first process that has seen
// more. A shard that was made for one read knows nothing and is given up after it.
type shard struct {
	p    *process
	id   dibs.ShardID
	keys format.Keys

	known sync.Mutex
	seen  dibs.Cursor
	// ahead is how much Redis' clock is ahead of the local one, in ms.
	ahead int64
	// buckets is over how many buckets users are spread; 0 while not known. shards is
	// by how many shards of the campaign they are divided: 0 while not known, unwritten
	// where a version before opened the shard.
	buckets, shards int64
	// met is set once Redis has told its clock, the buckets and the shards.
	met bool
	// goneMS is the local time at which Redis said that it does not hold the shard,
	// and has not said otherwise since; 0 when it holds it.
	goneMS int64
}

// run runs a script of the shard that takes the highest place seen, and learns
// from its answer.
func (s *shard) run(ctx context.Context, script *conn.Script, keys []string, args ...string) (conn.Result, error) {
	s.known.Lock()
	seen := s.seen
	s.known.Unlock()
	args = append([]string{strconv.Itoa(int(seen.Epoch)), strconv.FormatUint(uint64(seen.Seq), 10)}, args...)
	res, err := conn.ResultOf(ctx, s.p.redis, script, keys, args...)
	if err != nil {
		return res, err
	}
	if res.Word == "behind" {
		if err := s.expel(ctx, seen); err != nil {
			s.p.log.Warn("a shard that has forked is not shut", "shard", s.id.String(), "err", err)
		} else {
			res.Word = "not_open"
		}
	}
	s.known.Lock()
	defer s.known.Unlock()
	s.ahead = res.NowMS - s.p.localMS()
	s.noteGone(res.Word == "absent")
	if res.Word == "ok" && s.seen.Before(res.At) {
		s.seen = res.At
	}
	return res, nil
}

// read runs a script that changes nothing.
func (s *shard) read(ctx context.Context, script *conn.Script, keys []string, args ...string) (conn.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.p.cfg.Patience)
	defer cancel()
	res, err := s.run(ctx, script, keys, args...)
	if err != nil {
		return res, conn.Fault(ctx, dibs.EffectNone, err)
	}
	return res, conn.Refusal(&res)
}

// expel takes the shard out, for all processes, when Redis is behind what this
// one has seen: only this one can tell. The shard is not open then, until it
// was compared with the ledger.
func (s *shard) expel(ctx context.Context, seen dibs.Cursor) error {
	s.p.log.Error("Redis has lost history of a shard, which is shut until it is loaded again",
		"shard", s.id.String(), "seen", seen.String())
	keys := []string{s.keys.Meta, s.keys.State}
	res, err := conn.ResultOf(ctx, s.p.redis, conn.ExpelScript, keys, format.Itoa(seen.Epoch), format.Itoa(seen.Seq))
	if err != nil {
		return err
	}
	return conn.Refusal(&res)
}

// standing asks Redis for its time and the epoch in which the shard is open, 0
// when it is not.
func (s *shard) standing(ctx context.Context) (nowMS int64, epoch uint16, err error) {
	res, err := conn.ResultOf(ctx, s.p.redis, conn.StatsScript, []string{s.keys.Meta}, "0", "0")
	if err == nil && res.Word == "ok" {
		epoch = res.At.Epoch
	}
	return res.NowMS, epoch, err
}

// meet asks Redis once, before the first claims, for its clock, the shard's place
// and the buckets.
func (s *shard) meet() error {
	s.known.Lock()
	met := s.met
	s.known.Unlock()
	if met {
		return nil
	}
	err := s.insist(func(ctx context.Context) error {
		res, err := s.run(ctx, conn.StatsScript, []string{s.keys.Meta})
		if err == nil && res.Word == "ok" && len(res.Rest) > 9 {
			s.respread(res.Rest[3].Number, res.Rest[9].Number)
		}
		return err
	})
	if err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	s.known.Lock()
	s.met = true
	s.known.Unlock()
	return nil
}

// advance notes a place that the shard has reached.
func (s *shard) advance(c dibs.Cursor) {
	s.known.Lock()
	defer s.known.Unlock()
	if s.seen.Before(c) {
		s.seen = c
	}
}

// unwritten is what is known of the number of shards where Redis has none: a version
// before opened the shard, and no process has changed the campaign since.
const unwritten = -1

// respread notes over how many buckets, and by how many shards, users are spread, as
// Redis has it.
func (s *shard) respread(buckets, shards int64) {
	s.known.Lock()
	defer s.known.Unlock()
	s.buckets, s.shards = buckets, shards
	if shards == 0 {
		s.shards = unwritten
	}
}

// dividedBy is by how many shards users are divided, as far as known.
func (s *shard) dividedBy() int64 {
	s.known.Lock()
	defer s.known.Unlock()
	return s.shards
}

// meetAgain has Redis asked anew before the next batch.
func (s *shard) meetAgain() {
	s.known.Lock()
	defer s.known.Unlock()
	s.shards, s.met = 0, false
}

// noteGone notes whether Redis holds the shard. It is called with known held.
func (s *shard) noteGone(gone bool) {
	switch {
	case !gone:
		s.goneMS = 0
	case s.goneMS == 0:
		s.goneMS = max(s.p.localMS(), 1)
	}
}

// holds reports whether Redis held the shard when it last answered this process.
func (s *shard) holds() bool {
	s.known.Lock()
	defer s.known.Unlock()
	return s.goneMS == 0 && s.seen != (dibs.Cursor{})
}

const (
	// insistPauseMin and insistPauseMax bound the pause between two attempts to have
	// an answer.
	insistPauseMin = 5 * time.Millisecond
	insistPauseMax = 100 * time.Millisecond
)

var (
	errStillOpen = errors.New("redisengine: the batch may be decided still")
	errUnsure    = errors.New("redisengine: the journal does not reach back to the batch")
)

// insist tries until it succeeds, it is pointless, patience is over, or the
// engine closes.
func (s *shard) insist(try func(ctx context.Context) error) error {
	since, pause := time.Now(), insistPauseMin
	for {
		ctx, cancel := context.WithTimeout(context.Background(), s.p.cfg.Deadline)
		err := try(ctx)
		cancel()
		if err == nil || errors.Is(err, errUnsure) || time.Since(since) > s.p.cfg.Patience {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.p.stop:
			<-timer.C
			// Only a deadline that will pass is waited for still.
			if !errors.Is(err, errStillOpen) {
				return err
			}
		}
		pause = min(2*pause, insistPauseMax)
	}
}
