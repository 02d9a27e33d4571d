package moving

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestPlanned plans transfers for shards that need some, and none for others.
func TestPlanned(t *testing.T) {
	for _, test := range []struct {
		name string
		in   []level
		want string
	}{
		{"nothing happens", []level{{ok: true, left: 5}, {ok: true}}, "[]"},
		{"a dry shard takes what the others do not sell", []level{{ok: true, granted: 9, wants: 50, least: 1}, {ok: true, left: 10}}, "[{1 0 10}]"},
		{"what is on its way is not asked for again", []level{{ok: true, granted: 9, coming: 10, wants: 50, least: 1}, {ok: true}}, "[]"},
		{"one unit, and one claim", []level{{ok: true, wants: 1, least: 1}, {ok: true, left: 1}}, "[{1 0 1}]"},
		{"one unit, and claims on two shards", []level{{ok: true, wants: 1, least: 1}, {ok: true, left: 1}, {ok: true, wants: 1, least: 1}}, "[{1 0 1}]"},
		{"units come together for one claim", []level{{ok: true, left: 4, wants: 6, least: 6}, {ok: true, left: 2, wants: 6, least: 6}}, "[{1 0 2}]"},
		{"more than there is", []level{{ok: true, left: 4, wants: 6, least: 6}, {ok: true, left: 1}}, "[]"},
		{"a shard that is away gives nothing", []level{{ok: true, wants: 1, least: 1}, {left: 7}}, "[]"},
		{"ahead of need", []level{{ok: true, ahead: true, left: 10, granted: 99, sells: 50}, {ok: true, ahead: true, left: 190, granted: 99, sells: 50}}, "[{1 0 90}]"},
		{"not by nodes without the fleet lease", []level{{ok: true, left: 10, granted: 99, sells: 50}, {ok: true, left: 190, granted: 99, sells: 50}}, "[]"},
		{"all sell what they have", []level{{ok: true, ahead: true, left: 40, sells: 50}, {ok: true, ahead: true, left: 45, sells: 50}}, "[]"},
		{"few missing are not worth it", []level{{ok: true, ahead: true, left: 45, sells: 50}, {ok: true, ahead: true, left: 60, sells: 50}}, "[]"},
	} {
		if got := fmt.Sprint(planned(test.in)); got != test.want {
			t.Errorf("%s: planned %s, want %s", test.name, got, test.want)
		}
	}
}

// TestPace: a shard that sold fast and sells nothing of what it has keeps nothing for a crowd that
// is gone. One that has nothing left may have one all the same, and its pace falls slowly.
func TestPace(t *testing.T) {
	p := &pool{paces: make([]pace, 2), took: tookFirst / 3}
	look := func(ms, granted, left int64) {
		v := view{shards: make([]dibs.ShardStats, 2), ok: []bool{true, true}}
		for i := range v.shards {
			v.shards[i].Now, v.shards[i].Granted, v.shards[i].Remaining = ms, granted, left*int64(i)
			v.shards[i].Head.Epoch = 1
		}
		p.keepPace(&v)
	}
	look(1000, 0, 9_000)
	look(1200, 2_000, 7_000)
	if p.paces[0].perMS != 10 || p.paces[1].perMS != 10 {
		t.Fatalf("after 2,000 grants in 200 ms: %+v", p.paces)
	}
	look(1240, 2_000, 7_000)
	if p.paces[1].perMS != 10 {
		t.Errorf("40 ms tell nothing: %+v", p.paces)
	}
	look(1250, 2_000, 7_000)
	if p.paces[0].perMS != 7.5 || p.paces[1].perMS != 0 {
		t.Errorf("50 ms without a grant: %+v", p.paces)
	}
	// A shard that had nothing could sell nothing: it may have a crowd all the same.
	p.paces[0].perMS = 10
	look(1300, 2_000, 0)
	p.paces[0].left, p.paces[0].perMS = 0, 10
	look(1350, 2_000, 0)
	if p.paces[0].perMS != 7.5 {
		t.Errorf("a shard that had nothing: %+v", p.paces)
	}
}

// TestPaceOfFewAndOfPauses: a shard that sells a few a second keeps its pace between them, and so
// does one whose crowd pauses for less than half a transfer.
func TestPaceOfFewAndOfPauses(t *testing.T) {
	p := &pool{paces: make([]pace, 1), took: tookFirst / 3}
	at, granted := int64(1_000), int64(0)
	look := func(ms, sold int64) float64 {
		at, granted = at+ms, granted+sold
		v := view{shards: make([]dibs.ShardStats, 1), ok: []bool{true}}
		v.shards[0].Now, v.shards[0].Granted, v.shards[0].Remaining, v.shards[0].Head.Epoch = at, granted, 9_000, 1
		p.keepPace(&v)
		return p.paces[0].perMS
	}
	look(0, 0)
	for range 20 {
		look(50, 1)
	}
	if pace := look(50, 0); pace < 0.01 {
		t.Errorf("20 a second, and none in 50 ms: %g a ms", pace)
	}
	p.took = tookFirst
	for range 20 {
		look(50, 500)
	}
	if pace := look(100, 0); pace < 4 {
		t.Errorf("10,000 a second, and none for 100 ms: %g a ms", pace)
	}
	if pace := look(50, 0); pace != 0 {
		t.Errorf("none for 150 ms: %g a ms", pace)
	}
}

// sale is a campaign whose shards sell by the step, and whose transfers take steps.
type sale struct {
	levels  []level
	flying  []flight
	gave    []int
	got     []int
	sold    int64
	arrives int
}

type flight struct {
	tranche
	at int
}

// step lets each shard sell up to so many units, and plans transfers as a node does
// with the fleet lease.
func (s *sale) step(now int, pace []int64) {
	kept := s.flying[:0]
	for _, f := range s.flying {
		if f.at > now {
			kept = append(kept, f)
			continue
		}
		s.levels[f.to].left += f.units
		s.levels[f.to].coming -= f.units
	}
	s.flying = kept
	for i := range s.levels {
		l := &s.levels[i]
		n := min(l.left, pace[i])
		l.left, l.granted, s.sold = l.left-n, l.granted+n, s.sold+n
		l.sells, l.wants, l.least = 3*int64(s.arrives)*n, pace[i]-n, 1
	}
	for _, t := range planned(append([]level(nil), s.levels...)) {
		s.levels[t.from].left -= t.units
		s.levels[t.to].coming += t.units
		s.flying = append(s.flying, flight{t, now + s.arrives})
		s.gave[t.from]++
		s.got[t.to]++
	}
}

// TestTransfersAreFew sells a million units over up to 64 shards, to crowds that are
// even, uneven, and all on one shard: everything is sold, in at most twice the time
// that the crowd needs, with few transfers for each shard.
func TestTransfersAreFew(t *testing.T) {
	const stock, arrives = 1_000_000, 3
	for _, n := range []int{2, 5, 8, 64} {
		for name, weight := range map[string]func(i int) int64{
			"even":     func(int) int64 { return 1000 },
			"uneven":   func(i int) int64 { return 200 + 1600*int64(i)/int64(n) },
			"few":      func(i int) int64 { return max(0, 1000-int64(i)*300) },
			"one":      func(i int) int64 { return max(0, 1000-int64(i)*1000) },
			"one slow": func(i int) int64 { return max(0, 10-int64(i)*10) },
		} {
			s := &sale{levels: make([]level, n), gave: make([]int, n), got: make([]int, n), arrives: arrives}
			pace, sum := make([]int64, n), int64(0)
			for i := range s.levels {
				s.levels[i] = level{ok: true, ahead: true, left: stock / int64(n)}
				pace[i] = weight(i)
				sum += pace[i]
			}
			all, now := stock/int64(n)*int64(n), 0
			for ; s.sold < all && int64(now) < 4*all/sum+100; now++ {
				s.step(now, pace)
			}
			// A shard that sells all receives from each of the others at least once.
			gave, got := slices.Max(s.gave), slices.Max(s.got)
			t.Logf("%d shards, %s: %d of %d in %d steps, at least %d; a shard gave %d times and received %d times", n, name, s.sold, all, now, all/sum, gave, got)
			if s.sold != all || int64(now) > 2*(all/sum)+50 || gave > 40 || got > n+40 {
				t.Errorf("%d shards, %s: %d of %d sold in %d steps of %d, a shard gave %d times and received %d times", n, name, s.sold, all, now, all/sum, gave, got)
			}
		}
	}
}
