package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// emptied is an engine whose journal has nothing to read, and ends at ends, one after the other.
type emptied struct {
	placed
	ends []dibs.Cursor
}

func (e *emptied) JournalEnd(context.Context, dibs.ShardID) (end dibs.Cursor, err error) {
	end = e.ends[0]
	if len(e.ends) > 1 {
		e.ends = e.ends[1:]
	}
	return end, nil
}

func (*emptied) ReadJournal(context.Context, dibs.ShardID, dibs.Cursor, int) ([]dibs.Entry, error) {
	return nil, nil
}

func (*emptied) Server(context.Context, dibs.ShardID) (string, error) { return "", nil }

// named is a ledger that knows one campaign.
type named struct {
	totalled
	c *dibs.Campaign
}

func (l *named) Campaign(context.Context, string) (*dibs.Campaign, error) { return l.c, nil }

// TestAnEmptiedServerIsNoOlderLedger: a journal that ended behind the ledger's position, and ends before it when it is asked
// again, belongs to a server that was emptied in between. One that still ends there was trimmed: the ledger is older.
func TestAnEmptiedServerIsNoOlderLedger(t *testing.T) {
	at := func(seq uint32) dibs.Cursor { return dibs.Cursor{Epoch: 2, Seq: seq} }
	c := &dibs.Campaign{ID: "phone", Number: 1, Shards: 1}
	for what, of := range map[string]struct {
		ends  []dibs.Cursor
		halts bool
	}{
		"was emptied":            {[]dibs.Cursor{at(4), {}}, false},
		"lost its tail":          {[]dibs.Cursor{at(4), at(1)}, false},
		"was trimmed to nothing": {[]dibs.Cursor{at(4)}, true},
		"goes on meanwhile":      {[]dibs.Cursor{at(4), at(7)}, true},
	} {
		e := &emptied{placed{counting{shared: true}}, of.ends}
		l := &named{totalled{totals: ShardTotals{Epoch: 2, Position: at(1)}}, c}
		n := newNode(t, Config{Engine: e, Ledger: l})
		err := n.Loader.SettleTails(t.Context(), c, []dibs.ShardID{{Campaign: 1}}, false)
		if _, halted := n.Loader.halts.Load("phone"); err == nil || halted != of.halts || errors.Is(err, dibs.ErrGap) != of.halts {
			t.Errorf("a journal that %s: halted %v, %v; want halted %v", what, halted, err, of.halts)
		}
	}
}

// TestAHaltIsJudgedAgain: a campaign that is over here was halted, and another node has settled it since. A gap that is still
// there, and any other cause, keep it halted.
func TestAHaltIsJudgedAgain(t *testing.T) {
	c := &dibs.Campaign{ID: "phone", Number: 1, Shards: 1}
	end := dibs.Cursor{Epoch: 2, Seq: 4}
	for what, of := range map[string]struct {
		position dibs.Cursor
		cause    error
		halted   bool
	}{
		"is settled by now":           {end, dibs.ErrGap, false},
		"still has the gap":           {dibs.Cursor{Epoch: 2, Seq: 1}, dibs.ErrGap, true},
		"was halted for another fork": {end, dibs.ErrCorrupt, true},
	} {
		e := &emptied{placed{counting{shared: true}}, []dibs.Cursor{end}}
		n := newNode(t, Config{Engine: e, Ledger: &named{totalled{totals: ShardTotals{Epoch: 2, Position: of.position}}, c}})
		n.Loader.halts.Store("phone", of.cause)
		n.Loader.judgeAgain(t.Context())
		if halted := n.Loader.haltedCount() == 1; halted != of.halted {
			t.Errorf("a campaign that %s: halted %v, want %v", what, halted, of.halted)
		}
	}
}

// uninformed is an engine that holds a shard by a definition of before the campaign's end.
type uninformed struct {
	emptied
	knows, told int64
	retired     bool
}

func (e *uninformed) Configure(_ context.Context, c *dibs.Campaign) error {
	e.told++
	e.knows = c.Version
	return nil
}

func (e *uninformed) Retire(context.Context, dibs.ShardID) error {
	if e.knows < 2 {
		return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "it goes on"})
	}
	e.retired = true
	return nil
}

// endedLedger is a ledger whose campaign has ended, in version 2.
type endedLedger struct {
	totalled
	c *dibs.Campaign
}

func (l *endedLedger) CampaignByNumber(context.Context, uint32) (*dibs.Campaign, error) {
	return l.c, nil
}

// TestAShardOpenedTooLateLeaves: a shard that was opened when its campaign had just been ended, by a node that was not told
// that it was opened, is live nowhere. It leaves the engine as soon as the campaign is over, and not at the end of its window.
func TestAShardOpenedTooLateLeaves(t *testing.T) {
	now := time.Now()
	c := &dibs.Campaign{
		ID: "phone", Number: 1, Shards: 2, Version: 2, State: dibs.EndedState, EndsAt: now.Add(time.Hour), UpdatedAt: now.Add(-time.Hour),
	}
	e := &uninformed{emptied: emptied{placed{counting{shared: true}}, []dibs.Cursor{{}}}, knows: 1}
	n := newNode(t, Config{Engine: e, Ledger: &endedLedger{totalled{}, c}})
	if err := n.Poller.leave(t.Context(), dibs.ShardID{Campaign: 1, Shard: 1}); err != nil || !e.retired || e.told != 1 {
		t.Errorf("%v; retired %v, told %d times", err, e.retired, e.told)
	}
}

// leased is an engine whose shard is leased to another node.
type leased struct{ uninformed }

func (*leased) Lease(context.Context, dibs.ShardID, dibs.Cursor) (bool, error) { return false, nil }

// TestALeaseKeepsNothingThatIsSettled: of a campaign that is over another node renews the lease for ever, since it is not the
// one that lets campaigns leave. The shard leaves once the ledger has all of its journal, and not before.
func TestALeaseKeepsNothingThatIsSettled(t *testing.T) {
	now := time.Now()
	c := &dibs.Campaign{ID: "phone", Number: 1, Shards: 1, Version: 2, State: dibs.EndedState, EndsAt: now.Add(-time.Hour), EndedAt: now.Add(-time.Hour)}
	end := dibs.Cursor{Epoch: 8, Seq: 4}
	for position, leaves := range map[dibs.Cursor]bool{end: true, {Epoch: 8, Seq: 3}: false} {
		e := &leased{uninformed{emptied: emptied{placed{counting{shared: true}}, []dibs.Cursor{end}}, knows: 2}}
		// A load that was broken off has raised the epoch, so that no node takes the shard over.
		n := newNode(t, Config{Engine: e, Ledger: &endedLedger{totalled{totals: ShardTotals{Epoch: 9, Position: position}}, c}})
		if err := n.Poller.leave(t.Context(), dibs.ShardID{Campaign: 1}); err != nil || e.retired != leaves {
			t.Errorf("settled up to %s: it has left %v, want %v, %v", position, e.retired, leaves, err)
		}
	}
}

// A campaign is over by the time at which it was ended. A later change, for example of its comment, does not change
// that, and no call waits for the engine, which the campaign has left.
func TestWhatChangesAfterTheEndKeepsNoCampaign(t *testing.T) {
	now := time.Now()
	long, just := now.Add(-time.Hour), now.Add(-time.Second)
	for what, of := range map[string]struct {
		ended, updated time.Time
		over           bool
	}{
		"ended long ago":                            {long, long, true},
		"ended long ago, and changed just now":      {long, just, true},
		"ended just now":                            {just, just, false},
		"ended by a version that did not note when": {time.Time{}, long, true},
	} {
		n := newNode(t, Config{Engine: &placed{counting{shared: true}}, Ledger: &totalled{}})
		c := &dibs.Campaign{State: dibs.EndedState, EndsAt: now.Add(time.Hour), EndedAt: of.ended, UpdatedAt: of.updated}
		if over := n.Registry.Over(c); over != of.over {
			t.Errorf("a campaign that was %s is over: %v, want %v", what, over, of.over)
		}
	}
}
