package limit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// per is a campaign's limit of rate in a time.
func per(who string, rate int64, in time.Duration) dibs.LimitSpec {
	return dibs.LimitSpec{Per: who, Rate: rate, Every: dibs.Duration(in)}
}

// version is the campaign of the tests after changes.
func version(n int64, limits ...dibs.LimitSpec) *dibs.Campaign {
	c := campaign(limits...)
	c.Version = n
	return c
}

// passed is how many of n claims of a user are let through.
func passed(t *testing.T, l *Limiter, c *dibs.Campaign, user string, n int) (passed int) {
	t.Helper()
	for range n {
		if _, ok := l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: user}); ok {
			passed++
		}
	}
	return passed
}

// Nodes that meet a campaign before and after a change that left its limits as
// they were hold them together.
func TestNodesShareAcrossVersions(t *testing.T) {
	const burst = 100
	all := nodes(t, 2, Config{})
	spec := per("campaign", burst, 24*time.Hour)
	first := version(1, spec)
	later := version(9, per("user", 1000, time.Second), spec)
	sum := int64(0)
	for range 200 {
		sum = 0
		for i, c := range []*dibs.Campaign{first, later} {
			g := all[i].gateOf(c)
			b := g.buckets[len(g.buckets)-1]
			b.asked.Add(50)
			all[i].sharing.round()
			sum += b.share.Load()
		}
		if sum <= whole {
			return
		}
	}
	t.Errorf("two versions of a campaign hold %d billionths of one limit", sum)
}

// A limit that stays as it was keeps its count wherever it stands among others;
// one that changed begins anew, and nobody waits for what the one before
// would have made them wait for.
func TestChangedLimits(t *testing.T) {
	l, err := New(Config{})
	must(t, err)
	user, all := per("user", 3, 24*time.Hour), per("campaign", 5, 24*time.Hour)
	if n := passed(t, l, version(1, all, user), "ann", 10); n != 3 {
		t.Fatalf("at first: %d, want 3", n)
	}
	// Those whom the limit per user refused took nothing from the campaign's.
	if n := passed(t, l, version(2, user, all, per("address", 1, time.Second)), "ann", 10); n != 0 {
		t.Errorf("by the limit that stayed: %d, want 0", n)
	}
	if n := passed(t, l, version(3, all), "bob", 10); n != 2 {
		t.Errorf("of the campaign's: %d, want 2", n)
	}
	if n := passed(t, l, version(4, per("user", 7, time.Hour)), "ann", 10); n != 7 {
		t.Errorf("by the loosened limit: %d, want 7", n)
	}
}

// Two limits per user hold both, each with its own count; the same one twice is
// one.
func TestTwoLimitsOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{})
		must(t, err)
		c := version(1, per("user", 2, time.Second), per("user", 5, time.Hour), per("user", 5, time.Hour))
		for i, want := range []int{2, 2, 1, 0} {
			if n := passed(t, l, c, "ann", 10); n != want {
				t.Errorf("in second %d: %d, want %d", i, n, want)
			}
			<-time.After(time.Second)
		}
	})
}

// The limits of a campaign are forgotten when they are as if never used, and not
// before, with other nodes or without.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{})
		must(t, err)
		daily := version(1, per("campaign", 100, 24*time.Hour))
		if n := passed(t, l, daily, "ann", 200); n != 100 {
			t.Fatalf("at first: %d", n)
		}
		other := func(n int) {
			for i := range n {
				c := version(1, per("campaign", 10, time.Second))
				c.Number = uint32(1000 + i)
				passed(t, l, c, "ann", 1)
			}
		}
		kept := func() (n int) {
			l.campaigns.Range(func(_, _ any) bool { n++; return true })
			return n
		}
		other(500)
		<-time.After(20 * time.Minute)
		last := version(1, per("campaign", 10, time.Second))
		last.Number = 9
		passed(t, l, last, "ann", 1)
		if n := kept(); n != 2 {
			t.Errorf("%d campaigns are kept, want the daily one and the last one", n)
		}
		if n := passed(t, l, daily, "ann", 200); n > 2 {
			t.Errorf("20 minutes later: %d of 100 a day", n)
		}
		<-time.After(25 * time.Hour)
		last.Number = 10
		passed(t, l, last, "ann", 1)
		if n := kept(); n != 1 {
			t.Errorf("a day later %d campaigns are kept", n)
		}
	})
}

// The bucket that the setting gives a campaign is one, however many claims meet
// it at once, and is found again.
func TestDefaultBucketIsOne(t *testing.T) {
	all := nodes(t, 1, Config{Campaign: every(1000, time.Second, 1000)})
	l := all[0]
	for i := range 50 {
		var met sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			met.Go(func() {
				<-begin
				l.defaultBucket(fmt.Sprint("c", i), l.now())
			})
		}
		close(begin)
		met.Wait()
	}
	if n := len(l.sharing.buckets); n > 50 {
		t.Errorf("%d buckets are shared for 50 campaigns", n)
	}
	if n := testing.AllocsPerRun(100, func() { l.defaultBucket("c1", 1) }); n != 0 {
		t.Errorf("finding a bucket takes %v allocations", n)
	}
}

// The setting for campaigns is counted of those that the node holds, each by
// itself; names that users make up take no bucket, and so no share in Redis.
func TestMadeUpCampaigns(t *testing.T) {
	held := map[string]bool{}
	for i := range 100 {
		held[fmt.Sprint("c", i)] = true
	}
	cfg := Config{Campaign: every(1, 24*time.Hour, 3), Holds: func(id string) bool { return held[id] }}
	l := nodes(t, 1, cfg)[0]
	ask := func(id string) (passed int) {
		for range 5 {
			if _, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann", CampaignID: id}); ok {
				passed++
			}
		}
		return passed
	}
	for i := range 10_000 {
		if n := ask(fmt.Sprint("made up ", i)); n != 5 {
			t.Fatalf("a campaign that there is not takes from a limit: %d of 5", n)
		}
	}
	for id := range held {
		if n := ask(id); n != 3 {
			t.Errorf("%s: %d, want 3: it shares its limit", id, n)
		}
	}
	if n := len(l.sharing.buckets); n != len(held) {
		t.Errorf("%d buckets are shared, want %d", n, len(held))
	}
}

// Campaigns beyond a number share a bucket, and those that nobody claims from
// are forgotten.
func TestManyDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{Campaign: every(10, time.Second, 10)})
		must(t, err)
		kept := func() (n int) {
			l.defaults.Range(func(_, _ any) bool { n++; return true })
			return n
		}
		for i := range maxDefaults + 100 {
			l.Enter(t.Context(), &dibs.ClaimRequest{CampaignID: fmt.Sprint("c", i)})
		}
		if n := kept(); n != maxDefaults+1 || l.defaultCount != n {
			t.Errorf("%d buckets, counted %d, want %d", n, l.defaultCount, maxDefaults+1)
		}
		<-time.After(time.Duration(forgetAfter) + time.Minute)
		l.Enter(t.Context(), &dibs.ClaimRequest{CampaignID: "new"})
		if n := kept(); n != 1 || l.defaultCount != 1 {
			t.Errorf("%d buckets are kept, counted %d", n, l.defaultCount)
		}
	})
}

// A claim for a campaign that shares its bucket waits for nobody who makes one.
func TestManyDefaultsWithoutALock(t *testing.T) {
	l, err := New(Config{Campaign: every(10, time.Second, 10)})
	must(t, err)
	ask := func(i int) { l.Enter(t.Context(), &dibs.ClaimRequest{CampaignID: fmt.Sprint("c", i)}) }
	for i := range maxDefaults + 1 {
		ask(i)
	}
	l.making.Lock()
	asked := make(chan struct{})
	go func() {
		ask(maxDefaults)
		ask(maxDefaults + 1)
		close(asked)
	}()
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Error("it waits")
	}
	l.making.Unlock()
	<-asked
}
