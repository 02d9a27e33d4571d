package live

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// shelf is a ledger with live campaigns that counts what is read of it.
type shelf struct {
	Ledger
	has       map[uint32]*dibs.Campaign
	all, ones int
	// asked, when it is set, is called when a single one is read.
	asked func()
}

func (l *shelf) LiveVersions(context.Context, time.Time) (vs []CampaignVersion, err error) {
	for _, c := range l.has {
		vs = append(vs, CampaignVersion{Number: c.Number, Version: c.Version})
	}
	slices.SortFunc(vs, func(a, b CampaignVersion) int { return int(a.Number) - int(b.Number) })
	return vs, nil
}

func (l *shelf) LiveCampaigns(context.Context, time.Time) (cs []*dibs.Campaign, err error) {
	l.all++
	for _, c := range l.has {
		is := *c
		cs = append(cs, &is)
	}
	return cs, nil
}

func (l *shelf) CampaignByNumber(_ context.Context, number uint32) (*dibs.Campaign, error) {
	l.ones++
	if l.asked != nil {
		l.asked()
	}
	if c := l.has[number]; c != nil {
		is := *c
		return &is, nil
	}
	return nil, dibs.ErrNotFound
}

// Each second a node reads the campaigns that have changed, and no others.
func TestOnlyWhatChangedIsRead(t *testing.T) {
	l := &shelf{has: map[uint32]*dibs.Campaign{}}
	s := lookupService(t, l)
	put := func(number uint32, version int64) {
		c := &dibs.Campaign{Number: number, ID: string(rune('a' + number)), State: dibs.PausedState, Version: version, EndsAt: time.Now().Add(time.Hour)}
		l.has[number] = c
		// On sale here already.
		s.Registry.byID.LoadOrStore(c.ID, &Campaign{})
	}
	for n := range uint32(3 * fewChanged) {
		put(n+1, 1)
	}
	reads := func(when string, all, ones int) []*dibs.Campaign {
		t.Helper()
		l.all, l.ones = 0, 0
		got, err := s.Poller.readChanged(t.Context())
		if err != nil || l.all != all || l.ones != ones {
			t.Errorf("%s: all were read %d times and single ones %d, %v; want %d and %d", when, l.all, l.ones, err, all, ones)
		}
		if len(got) != len(l.has) {
			t.Errorf("%s: %d campaigns, want %d", when, len(got), len(l.has))
		}
		for i, c := range got {
			if c.Version != l.has[c.Number].Version || i > 0 && got[i-1].Number >= c.Number {
				t.Errorf("%s: campaign %d has version %d", when, c.Number, c.Version)
			}
		}
		return got
	}
	reads("at first", 1, 0)
	reads("a second later", 0, 0)
	put(3, 2)
	put(5, 7)
	reads("after two changes", 0, 2)
	put(1000, 1)
	delete(l.has, 4)
	reads("after one came and one went", 0, 1)
	s.Registry.byID.Delete(l.has[9].ID)
	reads("while one has to be taken up", 0, 1)
	reads("and as long as it was not", 0, 1)
	for n := range uint32(fewChanged + 1) {
		put(n+20, 9)
	}
	reads("after many changes", 1, 0)
}

// A node has a campaign as the ledger has it, also where the ledger went back in time; but
// what it has learnt while it asked is kept.
func TestAnOlderDefinitionIsTaken(t *testing.T) {
	l := &shelf{has: map[uint32]*dibs.Campaign{1: {Number: 1, ID: "a", Version: 2}}}
	s := lookupService(t, l)
	held := NewCampaign(&dibs.Campaign{Number: 1, ID: "a", Version: 4})
	has := func(when string, want int64) {
		t.Helper()
		if _, err := s.Poller.readAgain(t.Context(), held); err != nil || held.Def().Version != want {
			t.Errorf("%s the node has version %d, %v; want %d", when, held.Def().Version, err, want)
		}
	}
	has("when the ledger has an older one,", 2)
	l.has[1].Version = 5
	has("when it was changed elsewhere,", 5)
	l.has[1].Version = 3
	l.asked = func() { held.Renew(&dibs.Campaign{Number: 1, ID: "a", Version: 6}) }
	has("when it is changed while the ledger is asked,", 6)
}

// settling is a shelf that says how far it is.
type settling struct {
	shelf
	at dibs.Cursor
}

func (l *settling) Totals(context.Context, dibs.ShardID) (ShardTotals, error) {
	return ShardTotals{Position: l.at}, nil
}

// ending is an engine whose journals have five entries.
type ending struct{ counting }

func (ending) JournalEnd(context.Context, dibs.ShardID) (dibs.Cursor, error) {
	return dibs.Cursor{Epoch: 1, Seq: 5}, nil
}

// A campaign that got more shards is kept by the definition before until those are open
// here; one that was over before that is let go, since they will not be, once all is
// settled.
func TestMoreShardsOfACampaignThatIsOver(t *testing.T) {
	at := time.Now()
	l := &settling{shelf: shelf{has: map[uint32]*dibs.Campaign{}}}
	s := newNode(t, Config{Ledger: l, Engine: &ending{}})
	is := func(version int64, shards int, state dibs.State) *dibs.Campaign {
		return &dibs.Campaign{Number: 1, ID: "a", Version: version, Shards: shards, State: state, EndsAt: at.Add(time.Hour)}
	}
	held := NewCampaign(is(1, 1, dibs.Published))
	held.Shards = []*Shard{newShard(dibs.ShardID{Campaign: 1}, held)}
	s.Registry.Put(held.Def(), held)
	for _, c := range []struct {
		now     *dibs.Campaign
		settled uint32
		version int64
	}{{is(2, 2, dibs.Published), 0, 1}, {is(3, 2, dibs.EndedState), 4, 1}, {is(3, 2, dibs.EndedState), 5, 0}} {
		l.has[1], l.at = c.now, dibs.Cursor{Epoch: 1, Seq: c.settled}
		if _, err := s.Poller.readAgain(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		var version int64
		if has := s.Registry.Live("a"); has != nil {
			version = has.Def().Version
		}
		if version != c.version {
			t.Errorf("of version %d, %s, settled to %d, the node has version %d, want %d", c.now.Version, c.now.State, c.settled, version, c.version)
		}
	}
}
