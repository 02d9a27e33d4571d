package limit

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/dibs-dev/dibs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// every is a limit of rate in a time.
func every(rate int64, in time.Duration, burst int64) *dibs.LimitSpec {
	return &dibs.LimitSpec{Rate: rate, Every: dibs.Duration(in), Burst: burst}
}

// TestTokenBucketAgainstModel holds the token bucket against the one of
// golang.org/x/time/rate, claim by claim.
func TestTokenBucketAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		burst := 1 + random.Int64N(20)
		spec := every(1+random.Int64N(1000), time.Duration(1+random.Int64N(int64(10*time.Second))), burst)
		r := newRule(*spec, "user", 1)
		model := rate.NewLimiter(rate.Limit(float64(time.Second)/float64(r.each)), int(burst))
		begin, now, moment := time.Now(), int64(1), int64(0)
		for n := range 2000 {
			at := begin.Add(time.Duration(now))
			tokens := model.TokensAt(at)
			var ok bool
			moment, _, ok = r.take(moment, now)
			if edge := tokens - 1; edge > -1e-4 && edge < 1e-4 {
				// Where the model rounds, it may say either.
				model.SetBurstAt(at, int(burst))
				if ok {
					model.ReserveN(at, 1)
				}
			} else if want := model.AllowN(at, 1); ok != want {
				t.Fatalf("seed %d, claim %d, %+v: %v, want %v with %f tokens", seed, n, spec, ok, want, tokens)
			}
			if left, want := r.left(moment, now), model.TokensAt(at); float64(left) > want+1e-3 || float64(left) < want-1-1e-3 {
				t.Fatalf("seed %d, claim %d, %+v: %d are left, want %f", seed, n, spec, left, want)
			}
			now += random.Int64N(3 * r.each)
		}
	}
}

// TestLeakyBucket lets 20 come at once: one goes on, some wait for turns that
// are evenly apart, the rest hears when to come back.
func TestLeakyBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{Server: &dibs.LimitSpec{Bucket: dibs.LimitLeaky, Rate: 10, Burst: 5, MaxWait: dibs.Duration(10 * time.Second)}, Entries: 8})
		must(t, err)
		begin := time.Now()
		var mu sync.Mutex
		turns := map[time.Duration]int{}
		var refused atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				res, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "u"})
				if ok {
					mu.Lock()
					turns[time.Since(begin)]++
					mu.Unlock()
					return
				}
				refused.Add(1)
				if res.Outcome != dibs.RateLimited || res.RetryAfter != 100*time.Millisecond {
					t.Errorf("%v, again after %s", res.Outcome, res.RetryAfter)
				}
			})
		}
		all.Wait()
		for i := range 6 {
			if n := turns[time.Duration(i)*100*time.Millisecond]; n != 1 {
				t.Errorf("%d claims went on after %d00ms, want 1: %v", n, i, turns)
			}
		}
		if refused.Load() != 14 {
			t.Errorf("%d were refused, want 14", refused.Load())
		}
		// The longest wait holds, however long the queue may be.
		<-time.After(time.Minute)
		short, err := New(Config{Server: &dibs.LimitSpec{Bucket: dibs.LimitLeaky, Rate: 10, Burst: 1000, MaxWait: dibs.Duration(250 * time.Millisecond)}, Entries: 8})
		must(t, err)
		begin = time.Now()
		passed := 0
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() {
				defer cancel()
				if _, ok := short.Enter(ctx, &dibs.ClaimRequest{}); ok {
					mu.Lock()
					passed++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if passed != 3 || time.Since(begin) > 250*time.Millisecond {
			t.Errorf("%d went on within %s, want 3 within 250ms", passed, time.Since(begin))
		}
	})
}

// A caller that goes away while it waits makes no claim, and is never told a yes.
func TestLeakyBucketLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{Server: &dibs.LimitSpec{Bucket: dibs.LimitLeaky, Rate: 1, Burst: 5, MaxWait: dibs.Duration(10 * time.Second)}, Entries: 8})
		must(t, err)
		if _, ok := l.Enter(t.Context(), &dibs.ClaimRequest{}); !ok {
			t.Fatal("the first one was refused")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if res, ok := l.Enter(ctx, &dibs.ClaimRequest{}); ok || res.Outcome != dibs.RateLimited {
			t.Errorf("let through: %v, %v", ok, res.Outcome)
		}
	})
}

// TestEachLimit holds users, addresses, devices and campaigns apart, with many
// asking at once; what is let through is exact.
func TestEachLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{User: every(1, time.Hour, 30), Address: every(1, time.Hour, 50), Campaign: every(1, time.Hour, 1000), Server: every(1, time.Hour, 120)})
		must(t, err)
		enter := func(n int, user, address, campaign string) int {
			var passed atomic.Int64
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					req := &dibs.ClaimRequest{UserID: user, CampaignID: campaign}
					if address != "" {
						req.Address = netip.MustParseAddr(address)
					}
					if _, ok := l.Enter(t.Context(), req); ok {
						passed.Add(1)
					}
				})
			}
			all.Wait()
			return int(passed.Load())
		}
		for _, step := range []struct {
			what, user, address string
			want                int
		}{
			{"a user", "ann", "192.0.2.1", 30},
			{"the same", "ann", "192.0.2.9", 0},
			{"another from that address", "bob", "192.0.2.1", 20},
			{"one of a household", "cid", "2001:db8:1:2::1", 30},
			{"another of it", "dan", "2001:db8:1:2:ffff::2", 20},
			{"all that the server takes", "eve", "198.51.100.1", 20},
			{"nobody any more", "fay", "198.51.100.2", 0},
		} {
			if got := enter(200, step.user, step.address, "c"); got != step.want {
				t.Errorf("%s: %d, want %d", step.what, got, step.want)
			}
		}
	})
}

// From some addresses and devices nobody may claim; others no limit per address
// holds for.
func TestBlockedAndAllowed(t *testing.T) {
	l, err := New(Config{
		Address: every(1, time.Hour, 1), User: every(1, time.Hour, 100),
		Lists: Lists{
			Blocked:        []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:7::/48")},
			Allowed:        []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("203.0.113.7/32")},
			BlockedDevices: []string{"farm"}, AllowedDevices: []string{"till"},
		},
	})
	must(t, err)
	c := campaign(dibs.LimitSpec{Per: "device", Rate: 1, Every: dibs.Duration(time.Hour)}, dibs.LimitSpec{Per: "address", Rate: 1, Every: dibs.Duration(time.Hour)})
	for _, step := range []struct {
		address, device string
		want            string
	}{
		{"203.0.113.9", "", "forbidden forbidden forbidden"},
		{"203.0.113.7", "", "forbidden forbidden forbidden"},
		{"2001:db8:7:8::9", "", "forbidden forbidden forbidden"},
		{"198.51.100.1", "farm", "forbidden forbidden forbidden"},
		{"192.0.2.1", "till", "granted granted granted"},
		{"192.0.2.1", "phone", "granted rate_limited rate_limited"},
		{"198.51.100.1", "till", "granted rate_limited rate_limited"},
	} {
		var got []string
		for range 3 {
			req := &dibs.ClaimRequest{UserID: "ann", Address: netip.MustParseAddr(step.address), Device: step.device}
			res, ok := l.Enter(t.Context(), req)
			if ok {
				res, _ = l.Pass(t.Context(), c, req)
			}
			got = append(got, res.Outcome.String())
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s on %s: %v, want %s", step.address, step.device, got, step.want)
		}
	}
	// Other lists hold from the next claim on, and what was counted stays.
	l.SetLists(Lists{Blocked: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}})
	for address, want := range map[string]dibs.Reason{"192.0.2.1": dibs.Forbidden, "203.0.113.9": dibs.Granted, "198.51.100.1": dibs.RateLimited} {
		if res, _ := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "bob", Address: netip.MustParseAddr(address), Device: "farm"}); res.Outcome != want {
			t.Errorf("with other lists, %s hears %s, want %s", address, res.Outcome, want)
		}
	}
}

func campaign(limits ...dibs.LimitSpec) *dibs.Campaign {
	return &dibs.Campaign{Number: 7, ID: "c", Version: 1, Gate: &dibs.GateSpec{Limits: limits}}
}

func TestLimitsOfCampaigns(t *testing.T) {
	l, err := New(Config{})
	must(t, err)
	spec := []dibs.LimitSpec{{Per: "user", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 3}, {Per: "device", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 5}, {Per: "campaign", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 7}}
	c := campaign(spec...)
	pass := func(c *dibs.Campaign, n int, user, device string) (passed int, last dibs.Result) {
		for range n {
			res, ok := l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: user, Device: device})
			if !ok {
				return passed, res
			}
			passed++
		}
		return passed, last
	}
	for _, step := range []struct {
		user, device string
		want         int
		name         string
	}{{"ann", "phone", 3, "campaign.user"}, {"bob", "phone", 2, "campaign.device"}, {"cid", "other", 2, "campaign.campaign"}} {
		if n, res := pass(c, 10, step.user, step.device); n != step.want || res.Quota.Name != step.name || res.RetryAfter <= 0 || res.Detail.EN == "" {
			t.Errorf("%s on %s: %d by %q, want %d by %q", step.user, step.device, n, res.Quota.Name, step.want, step.name)
		}
	}
	// Another campaign is another matter, and so is this one with other limits:
	// only what stays as it was keeps its count.
	other := campaign(spec...)
	other.Number = 8
	if n, _ := pass(other, 10, "ann", "phone"); n != 3 {
		t.Errorf("on another campaign: %d", n)
	}
	changed := campaign(dibs.LimitSpec{Per: "campaign", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 2}, spec[2])
	changed.Version = 2
	if n, _ := pass(changed, 10, "ann", ""); n != 0 {
		t.Errorf("with another limit beside one that is used up: %d", n)
	}
	changed = campaign(dibs.LimitSpec{Per: "campaign", Rate: 1, Every: dibs.Duration(time.Hour), Burst: 4})
	changed.Version = 3
	if n, _ := pass(changed, 10, "ann", ""); n != 4 {
		t.Errorf("with another limit alone: %d", n)
	}
	if n, _ := pass(&dibs.Campaign{Number: 9, Gate: &dibs.GateSpec{}}, 10, "ann", ""); n != 10 {
		t.Errorf("without limits: %d", n)
	}
}

// TestTableIsBounded puts many more users than there is room for through the
// table: who is limited stays so while the others come and go.
func TestTableIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Config{User: every(1, time.Second, 3), Entries: 1 << 10})
		must(t, err)
		sets := len(l.tables[users].sets)
		name := func(i int) string { return "u" + time.Duration(i).String() }
		again := 0
		for i := range 20_000 {
			req := &dibs.ClaimRequest{UserID: name(i)}
			for range 4 {
				if _, ok := l.Enter(t.Context(), req); !ok {
					again++
				}
			}
			// Each hundred of them, time goes on so far that theirs are forgotten.
			if i%100 == 99 {
				<-time.After(4 * time.Second)
			}
		}
		if again != 20_000 {
			t.Errorf("%d of 20,000 users were held to their limit", again)
		}
		if len(l.tables[users].sets) != sets || sets*ways > 2<<10 {
			t.Errorf("the table has %d sets", len(l.tables[users].sets))
		}
	})
}

func BenchmarkEnterUserAndAddress(b *testing.B) {
	l, err := New(Config{User: every(1000, time.Second, 1000), Address: every(1000, time.Second, 1000)})
	if err != nil {
		b.Fatal(err)
	}
	at := netip.MustParseAddr("192.0.2.1")
	users := make([]dibs.ClaimRequest, 1<<16)
	for i := range users {
		users[i] = dibs.ClaimRequest{UserID: "user-" + time.Duration(i).String(), Address: at}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Enter(b.Context(), &users[i%len(users)])
	}
}

// A network of IPv4 that is written as one of IPv6 is meant all the same.
func TestMappedNetworks(t *testing.T) {
	n := networksOf([]netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("::ffff:203.0.113.7"), 128), netip.PrefixFrom(netip.MustParseAddr("::ffff:198.51.100.1"), 120)})
	for at, in := range map[string]bool{"203.0.113.7": true, "203.0.113.8": false, "198.51.100.200": true, "::1": false} {
		if n.has(netip.MustParseAddr(at)) != in {
			t.Errorf("%s is in: %v, want %v", at, !in, in)
		}
	}
}
