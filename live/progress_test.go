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
	s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
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

// line is a journal with an entry for each millisecond from an hour before begun on, the
// first of them numbered 1.
type line struct{ begun int64 }

func (l line) at(seq uint32) int64 { return l.begun - 3_600_000 + int64(seq) }

func (l line) stats(head uint32, settled dibs.Cursor, now int64) *dibs.ShardStats {
	return &dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: head}, HeadAt: l.at(head), Settled: settled, Now: now}
}

// look is what the poll loop does with progress.
func (l line) look(s *Shard, st *dibs.ShardStats, settles bool) {
	s.progress.measure(st, settles)
	if after, ask := s.progress.asks(st); ask {
		s.progress.found(after, &dibs.Entry{At: l.at(after.Seq + 1)})
	}
}

// An entry waits from its decision on, by the engine's clock. A stream of claims without a
// pause makes the lag no longer, however long it lasts and whichever node settles it.
func TestLagOfAStream(t *testing.T) {
	l := line{begun: 100_000_000}
	for _, settles := range []bool{true, false} {
		for _, wait := range []uint32{200, 40_000} {
			s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
			s.progress.enter(1, dibs.Cursor{Epoch: 1})
			settled := dibs.Cursor{Epoch: 1}
			for seq := uint32(100); seq <= 300_000; seq += 100 {
				st := l.stats(seq, settled, l.at(seq))
				l.look(s, st, settles)
				want := int64(min(seq-1, wait))
				if is := s.progress.lagMS(st, st.Now); is < want-100 || is > want+roughLag+200 {
					t.Fatalf("settles %t: entry %d waits for %d ms, and the lag is %d", settles, settled.Seq+1, want, is)
				}
				if settled.Seq = max(seq, wait) - wait; settles && settled.Seq > 0 {
					s.progress.moveTo(1, &dibs.Entry{Cursor: settled, At: l.at(settled.Seq)})
				}
			}
		}
	}
}

// What waits when a node begins is as old as the journal says, by the engine's clock,
// whatever the node's own says.
func TestLagOfABacklog(t *testing.T) {
	l := line{begun: 100_000_000}
	for _, skew := range []int64{-60_000, 0, 60_000} {
		s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
		s.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 9})
		st := l.stats(5000, dibs.Cursor{}, l.begun)
		s.seen.keep(st, time.UnixMilli(l.begun-skew))
		lag := func(when string, want int64) {
			t.Helper()
			if is := s.lagMS(st, time.UnixMilli(st.Now-skew)); is != want {
				t.Errorf("%s, with clocks %d ms apart, the lag is %d ms, want %d", when, skew, is, want)
			}
		}
		lag("before the journal was asked", l.begun-l.at(5000))
		l.look(s, st, true)
		lag("once it was", l.begun-l.at(10))
		s.progress.moveTo(1, &dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: 2000}, At: l.at(2000)})
		lag("when a part is settled", l.begun-l.at(2000))
		s.progress.moveTo(1, &dibs.Entry{Cursor: st.Head, At: st.HeadAt})
		lag("when all is", 0)
		s.progress.measure(st, true)
		// A minute without a look, and one entry.
		st = &dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: 5001}, HeadAt: l.begun + 60_000, Now: l.begun + 60_050}
		lag("of an entry after a quiet minute", 50)
		// Two of them, right after a look that found nothing waiting.
		s.progress.moveTo(1, &dibs.Entry{Cursor: st.Head, At: st.HeadAt})
		s.progress.measure(&dibs.ShardStats{Head: st.Head, HeadAt: st.HeadAt, Now: l.begun + 120_000}, true)
		st = &dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: 5003}, HeadAt: l.begun + 120_030, Now: l.begun + 120_050}
		lag("of entries after a quiet minute of looks", 50)
	}
}

// The journal is asked once a second at most, and not while the lag is short.
func TestJournalIsAskedRarely(t *testing.T) {
	l := line{begun: 100_000_000}
	s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
	s.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 1})
	asked := 0
	for now := l.at(1); now < l.at(1)+10*roughLag; now += 50 {
		if _, ask := s.progress.asks(l.stats(2, dibs.Cursor{}, now)); ask {
			asked++
			s.progress.found(dibs.Cursor{Epoch: 1, Seq: 1}, &dibs.Entry{At: l.at(2)})
		}
	}
	if asked < 9 || asked > 10 {
		t.Errorf("in ten seconds the journal was asked %d times", asked)
	}
}

// A look that falls into the first commit after a pause tells little of what waits for it; the
// lag does not begin with the entry before the pause.
func TestLagOfACommit(t *testing.T) {
	const pause, now = 3 * 3_600_000, 100_000_000
	s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
	s.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 1})
	st := dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: 1}, HeadAt: now - pause, Now: now - 50}
	s.progress.measure(&st, true)
	st.Now, st.Queued = now, 2
	s.progress.measure(&st, true)
	st.Head.Seq, st.HeadAt, st.Now, st.Queued = 3, now-1, now+5, 0
	s.progress.measure(&st, true)
	if lag := s.progress.lagMS(&st, st.Now); lag < 6 || lag > 55 {
		t.Errorf("two entries have waited for 6 ms, the look before was 55 ms ago, and the lag is %d ms", lag)
	}
}

// What was known by one clock says nothing by another: that of the next server, or the same
// that is set back.
func TestLagByAnotherClock(t *testing.T) {
	const now, back = 100_000_000, 600_000
	for _, fence := range []uint16{1, 2} {
		s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
		s.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 1})
		s.progress.measure(&dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: 1}, HeadAt: now - 5, Now: now}, true)
		s.progress.enter(fence, dibs.Cursor{Epoch: 1, Seq: 1})
		st := dibs.ShardStats{Head: dibs.Cursor{Epoch: fence, Seq: 100}, HeadAt: now - back + 40, Now: now - back + 50}
		s.progress.measure(&st, true)
		after, ask := s.progress.asks(&st)
		if !ask {
			t.Fatalf("epoch %d: the journal is not asked for the oldest entry", fence)
		}
		s.progress.found(after, &dibs.Entry{At: now - back + 10})
		if lag := s.progress.lagMS(&st, st.Now); lag != 40 {
			t.Errorf("epoch %d: the oldest entry has waited for 40 ms, and the lag is %d ms", fence, lag)
		}
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
		"an attempt failed":        {func(s *Shard) { s.progress.noteAttempt(dibs.ErrUnavailable) }, false},
		"settling is halted":       {func(s *Shard) { s.progress.noteAttempt(fmt.Errorf("gone: %w", dibs.ErrForked)) }, true},
		"an entry is set aside":    {func(s *Shard) { s.progress.noteAttempt(errors.Join(dibs.ErrCorrupt, dibs.ErrPoison)) }, false},
		"the journal is corrupt":   {func(s *Shard) { s.progress.noteAttempt(dibs.ErrCorrupt) }, true},
		"too many are in the way":  {func(s *Shard) { s.progress.noteAttempt(errTooMany) }, true},
		"an attempt has succeeded": {func(s *Shard) { s.progress.noteAttempt(nil) }, false},
	} {
		s := newShard(dibs.ShardID{Campaign: 1}, &Campaign{})
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
