package live

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// A position that was read under one fence says nothing once the node has opened a later
// epoch, and a node that reads late does not go back within its own.
func TestPositionsStayWithinTheirFence(t *testing.T) {
	at := func(epoch uint16, seq uint32) dibs.Cursor { return dibs.Cursor{Epoch: epoch, Seq: seq} }
	s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{}, time.Now())
	s.progress.enter(1, at(1, 5))
	is := func(when string, fence uint16, want dibs.Cursor) {
		t.Helper()
		if f, p := s.progress.fenced(); f != fence || p != want {
			t.Errorf("%s the shard stands at %v under the fence %d, want %v under %d", when, p, f, want, fence)
		}
	}
	s.progress.moveTo(2, &dibs.Entry{Cursor: at(1, 9)})
	is("moved under a fence that it is not in,", 1, at(1, 5))
	s.progress.moveTo(1, &dibs.Entry{Cursor: at(1, 9)})
	is("moved under its own,", 1, at(1, 9))
	s.progress.enter(1, at(1, 7))
	is("entered again with an older reading,", 1, at(1, 9))
	s.progress.moveFrom(1, at(1, 8), at(1, 20))
	is("moved from where it is not any more,", 1, at(1, 9))
	s.progress.enter(2, at(1, 7))
	is("in a later epoch, whose ledger had less,", 2, at(1, 7))
	if s.progress.leave(1) {
		t.Error("it leaves an epoch that it is not in")
	}
	if !s.progress.leave(2) {
		t.Error("it does not leave its epoch")
	}
	is("outside,", 0, at(1, 7))
}

// An entry's wait is counted from its decision on, by the engine's clock: a stream of claims
// that never stands still is no lag, however long it lasts.
func TestLagOfAStream(t *testing.T) {
	const second, skew = int64(1000), int64(60_000)
	for _, settles := range []bool{true, false} {
		begun := time.UnixMilli(1_000_000)
		s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{}, begun)
		s.seen.skewMS.Store(skew)
		s.progress.enter(1, dibs.Cursor{Epoch: 1})
		settled := dibs.Cursor{Epoch: 1}
		lag := func(at, want, most int64, head dibs.Cursor) {
			t.Helper()
			if is := s.lagMS(head, begun.Add(time.Duration(at)*time.Millisecond)); is < want || is > most {
				t.Errorf("settles %t: after %d ms the lag is %d ms, want %d to %d", settles, at, is, want, most)
			}
		}
		// An entry a millisecond; all that is older than 200 ms is settled each 100 ms, and a look comes in between.
		for at := int64(100); at <= 60*second; at += 100 {
			now := begun.UnixMilli() + skew + at
			head := dibs.Cursor{Epoch: 1, Seq: uint32(at)}
			s.progress.measure(&dibs.ShardStats{Head: head, Settled: settled, Now: now}, settles)
			if at > second {
				lag(at, 100, 600, head)
			}
			if settled.Seq = uint32(max(at-200, 0)); settles && settled.Seq > 0 {
				s.progress.moveTo(1, &dibs.Entry{Cursor: settled, At: now - 200})
				lag(at, 200, 200, head)
			}
		}
		// Settling stops, and the oldest entry waits on.
		last := dibs.Cursor{Epoch: 1, Seq: uint32(60 * second)}
		lag(70*second, 10*second+200, 10*second+600, last)
		// All is settled; what comes a minute later has not waited for that long.
		s.progress.moveFrom(1, s.progress.at(), last)
		lag(70*second, 0, 0, last)
		s.progress.measure(&dibs.ShardStats{Head: last, Now: begun.UnixMilli() + skew + 130*second}, settles)
		lag(130*second+50, 50, 50, dibs.Cursor{Epoch: 1, Seq: last.Seq + 1})
	}
}

// Callers that wait are woken when the position moves, and when it never will.
func TestWaitingCallersAreWoken(t *testing.T) {
	for what, c := range map[string]struct {
		act   func(s *Shard)
		wakes bool
	}{
		"the position moved":       {func(s *Shard) { s.progress.moveTo(1, &dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: 9}}) }, true},
		"another fence's moved":    {func(s *Shard) { s.progress.moveTo(2, &dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: 9}}) }, false},
		"an attempt failed":        {func(s *Shard) { s.progress.failed(dibs.ErrUnavailable) }, false},
		"settling is halted":       {func(s *Shard) { s.progress.failed(fmt.Errorf("gone: %w", dibs.ErrForked)) }, true},
		"an entry is set aside":    {func(s *Shard) { s.progress.failed(errors.Join(dibs.ErrCorrupt, dibs.ErrPoison)) }, false},
		"the journal is corrupt":   {func(s *Shard) { s.progress.failed(dibs.ErrCorrupt) }, true},
		"too many are in the way":  {func(s *Shard) { s.progress.failed(errTooMany) }, true},
		"an attempt has succeeded": {func(s *Shard) { s.progress.failed(nil) }, false},
	} {
		s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{}, time.Now())
		s.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 1})
		moved := s.progress.moved
		c.act(s)
		woken := false
		select {
		case <-moved:
			woken = true
		default:
		}
		if woken != c.wakes {
			t.Errorf("%s: callers are woken: %v", what, woken)
		}
	}
}

// Across epochs the backlog is a lower bound: the newest epoch's entries.
func TestBacklog(t *testing.T) {
	for _, c := range []struct {
		position, head dibs.Cursor
		want           int64
	}{
		{dibs.Cursor{Epoch: 1, Seq: 3}, dibs.Cursor{Epoch: 1, Seq: 3}, 0},
		{dibs.Cursor{Epoch: 1, Seq: 3}, dibs.Cursor{Epoch: 1, Seq: 8}, 5},
		{dibs.Cursor{Epoch: 1, Seq: 8}, dibs.Cursor{Epoch: 1, Seq: 3}, 0},
		{dibs.Cursor{Epoch: 1, Seq: 900}, dibs.Cursor{Epoch: 2, Seq: 4}, 4},
		{dibs.Cursor{Epoch: 3, Seq: 1}, dibs.Cursor{Epoch: 2, Seq: 4}, 0},
	} {
		if got := backlogOf(c.position, c.head); got != c.want {
			t.Errorf("from %v to %v wait %d, want %d", c.position, c.head, got, c.want)
		}
	}
}
