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
}

func (l *shelf) LiveVersions(context.Context, time.Time) (vs []dibs.CampaignVersion, err error) {
	for _, c := range l.has {
		vs = append(vs, dibs.CampaignVersion{Number: c.Number, Version: c.Version})
	}
	slices.SortFunc(vs, func(a, b dibs.CampaignVersion) int { return int(a.Number) - int(b.Number) })
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
		s.Registry.lives.LoadOrStore(c.ID, &Campaign{})
	}
	for n := range uint32(3 * fewChanged) {
		put(n+1, 1)
	}
	reads := func(when string, all, ones int) []*dibs.Campaign {
		t.Helper()
		l.all, l.ones = 0, 0
		got, err := s.Watcher.readChanged(t.Context())
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
	s.Registry.lives.Delete(l.has[9].ID)
	reads("while one has to be taken up", 0, 1)
	reads("and as long as it was not", 0, 1)
	for n := range uint32(fewChanged + 1) {
		put(n+20, 9)
	}
	reads("after many changes", 1, 0)
}
