package limit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
)

var theRedis *servers.Redis

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dibs-limit-")
	if err == nil {
		theRedis, err = servers.StartRedis(dir, "--save", "", "--databases", "1024")
	}
	code := 1
	if err == nil {
		code = m.Run()
		theRedis.Kill()
	}
	if err := errors.Join(err, os.RemoveAll(dir), leaks.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// sharedKey is that of nodes that share.
var sharedKey = []byte("0123456789abcdef")

// database counts the databases of the server that tests have used.
var database atomic.Int64

// nodes are limiters that share, and do so only when a test says: without time
// passing, what they let through is exact.
func nodes(t *testing.T, n int, cfg Config) []*Limiter {
	t.Helper()
	at := fmt.Sprintf("%s/%d", theRedis.URL(), database.Add(1))
	cfg.Redis = func() string { return at }
	cfg.Entries = 1 << 10
	if cfg.Key == nil {
		cfg.Key = sharedKey
	}
	list := make([]*Limiter, n)
	for i := range list {
		l, err := New(cfg)
		must(t, err)
		// The loop ends; rounds are made by hand from here on.
		l.sharing.cancel()
		l.sharing.loop.Wait()
		l.sharing.life = t.Context()
		t.Cleanup(l.Close)
		list[i] = l
	}
	return list
}

// TestSharesNeverExceedTheWhole moves the crowd among three nodes at random: the
// shares that are held never add up to more than the limit, nor do the claims
// that are let through, but for the one that each node has room for.
func TestSharesNeverExceedTheWhole(t *testing.T) {
	const burst = 90
	all := nodes(t, 3, Config{Server: every(1, 24*time.Hour, burst)})
	random := rand.New(rand.NewPCG(3, 9))
	passed, asked := 0, 0
	var most int64
	for range 60 {
		busy := all[random.IntN(len(all))]
		for range random.IntN(4) {
			asked++
			if _, ok := busy.Enter(t.Context(), &dibs.ClaimRequest{}); ok {
				passed++
			}
		}
		for _, i := range random.Perm(len(all)) {
			if random.IntN(2) == 0 {
				all[i].sharing.round()
			}
			sum := int64(0)
			for _, l := range all {
				sum += l.server.share.Load()
			}
			if most = max(most, sum); sum > whole {
				t.Fatalf("the shares add up to %d billionths", sum)
			}
		}
	}
	if passed > burst+len(all) {
		t.Errorf("%d of %d claims were let through, the limit is %d", passed, asked, burst)
	}
	if most < whole*9/10 {
		t.Errorf("the shares never added up to more than %d billionths", most)
	}
}

// TestSharesFollowTheCrowd: the node to which most come gets most of the limit,
// and one that is gone leaves its share to the others.
func TestSharesFollowTheCrowd(t *testing.T) {
	all := nodes(t, 3, Config{Server: every(1000, time.Second, 1000)})
	ask := func(l *Limiter, n int) {
		for range n {
			l.Enter(t.Context(), &dibs.ClaimRequest{})
		}
	}
	for range 12 {
		ask(all[0], 900)
		ask(all[1], 100)
		for _, l := range all {
			l.sharing.round()
		}
	}
	if busy, calm := all[0].server.share.Load(), all[1].server.share.Load(); busy < whole*7/10 || calm < whole/20 || calm > whole*2/10 {
		t.Errorf("the busy node has %d, the calm one %d billionths", busy, calm)
	}
	// The busy one dies: within the time that shares are held, its share is free.
	over := time.Now().Add(time.Minute)
	for all[1].server.share.Load() < whole*8/10 {
		ask(all[1], 10)
		all[1].sharing.round()
		if time.Now().After(over) {
			t.Fatalf("a minute after the busy node died, the other one has %d billionths", all[1].server.share.Load())
		}
	}
}

// TestUsersAcrossNodes has a user ask three nodes at once: each lets through what
// it knows nothing against, and then all know of all.
func TestUsersAcrossNodes(t *testing.T) {
	const burst = 10
	all := nodes(t, 3, Config{User: every(1, time.Hour, burst)})
	ask := func(l *Limiter) (passed int, last dibs.Result) {
		for range 3 * burst {
			res, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
			if ok {
				passed++
			}
			last = res
		}
		return passed, last
	}
	sum := 0
	for _, l := range all {
		n, _ := ask(l)
		sum += n
	}
	if sum != 3*burst {
		t.Errorf("%d were let through before nodes told each other, want %d", sum, 3*burst)
	}
	for range 2 {
		for _, l := range all {
			l.sharing.round()
		}
	}
	// 30 were used where 10 may be: the twenty too many are paid back before the
	// next one.
	for i, l := range all {
		if n, last := ask(l); n != 0 || last.RetryAfter < 20*time.Hour || last.RetryAfter > 22*time.Hour {
			t.Errorf("node %d let %d through; the next one in %s", i, n, last.RetryAfter)
		}
	}
	if n, _ := all[0].Enter(t.Context(), &dibs.ClaimRequest{UserID: "bob"}); n.Outcome != dibs.Granted {
		t.Error("another user pays for it")
	}
}

// TestWithoutRedis: nodes go on with their shares, and tell what they used when
// Redis is back.
func TestWithoutRedis(t *testing.T) {
	dir := t.TempDir()
	r, err := servers.StartRedis(dir, "--save", "")
	must(t, err)
	defer r.Kill()
	l, err := New(Config{Redis: r.URL, Key: sharedKey, User: every(1, time.Hour, 10), Server: every(1, time.Hour, 100)})
	must(t, err)
	t.Cleanup(l.Close)
	l.sharing.cancel()
	l.sharing.loop.Wait()
	l.sharing.life = t.Context()
	r.Kill()
	for range 20 {
		l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	l.sharing.round()
	if !l.sharing.failing {
		t.Error("a round without Redis did not fail")
	}
	if share := l.server.share.Load(); share != whole {
		t.Errorf("the share became %d billionths", share)
	}
	must(t, r.Start())
	over := time.Now().Add(time.Minute)
	for l.sharing.round(); l.sharing.failing; l.sharing.round() {
		if time.Now().After(over) {
			t.Fatal("a minute after Redis came back, rounds still fail")
		}
	}
	other, err := New(Config{Redis: r.URL, Key: sharedKey, User: every(1, time.Hour, 10)})
	must(t, err)
	t.Cleanup(other.Close)
	other.sharing.cancel()
	other.sharing.loop.Wait()
	other.sharing.life = t.Context()
	for range 6 {
		other.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	other.sharing.round()
	if _, ok := other.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"}); ok {
		t.Error("what was used while Redis was away is forgotten")
	}
}

// TestElsewhere: nodes share at another Redis when the one before is gone, what they let
// through before included, and at the first one again when it is back.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	first, err := servers.StartRedis(dir, "--save", "")
	must(t, err)
	defer first.Kill()
	at, second := first.URL(), fmt.Sprintf("%s/%d", theRedis.URL(), database.Add(1))
	all := make([]*Limiter, 2)
	for i := range all {
		l, err := New(Config{
			Redis: func() string { return at }, Key: sharedKey, User: every(1, time.Hour, 10), Server: every(1, time.Hour, 100), Entries: 1 << 10,
		})
		must(t, err)
		l.sharing.cancel()
		l.sharing.loop.Wait()
		l.sharing.life = t.Context()
		t.Cleanup(l.Close)
		all[i] = l
	}
	share := func(where string) {
		t.Helper()
		for _, l := range all {
			l.server.share.Store(0)
		}
		over := time.Now().Add(time.Minute)
		for all[0].server.share.Load() != whole/2 || all[1].server.share.Load() != whole/2 {
			if time.Now().After(over) {
				t.Fatalf("at %s the shares are %d and %d billionths", where, all[0].server.share.Load(), all[1].server.share.Load())
			}
			for _, l := range all {
				l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "zoe"})
				l.sharing.round()
			}
		}
	}
	share("the first one")
	first.Kill()
	at = second
	for range 8 {
		all[0].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	share("the second one")
	if all[0].sharing.failing || all[1].sharing.failing {
		t.Error("rounds fail with a Redis that answers")
	}
	for range 4 {
		all[1].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	all[1].sharing.round()
	if _, ok := all[1].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"}); ok {
		t.Error("what another node let through before is not known at the second one")
	}
	must(t, first.Start())
	at = first.URL()
	share("the first one again")
}

// Made-up devices near their limit take no places from the users that nodes tell
// each other of.
func TestMadeUpDevicesSilenceNobody(t *testing.T) {
	all := nodes(t, 2, Config{User: every(1, time.Hour, 2)})
	c := campaign(perDevice)
	for i := range 2 * hotShards * hotMost {
		all[0].Pass(t.Context(), c, &dibs.ClaimRequest{Device: fmt.Sprint("made-up-", i)})
	}
	for range 2 {
		all[0].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	all[0].sharing.round()
	// A node asks for the users that it has seen itself.
	all[1].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	all[1].sharing.round()
	if _, ok := all[1].Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"}); ok {
		t.Error("the second node was not told of the user")
	}
}

// Nodes of the version before this one hash names in another way: each group holds
// users to their limits on its own until all nodes are of one version. Both share the
// limits of campaigns and of the server, by the same keys as before.
func TestRollingUpgrade(t *testing.T) {
	all := nodes(t, 1, Config{Server: every(1, time.Hour, 100), User: every(1, time.Hour, 2)})
	l := all[0]
	// As the version before named it: see oldKey for its hash.
	old := fmt.Sprintf("dibs:limit:{users}:%s", strconv.FormatUint(oldKey("user 0 token 1 3600000000000 2 0", "ann"), 36))
	do := func(args ...string) string {
		t.Helper()
		text, err := l.sharing.c.Do(t.Context(), l.sharing.c.B().Arbitrary(args...).Build()).ToString()
		must(t, err)
		return text
	}
	later := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	do("SET", old, later)
	c := campaign(dibs.LimitSpec{Per: "campaign", Rate: 5, Every: dibs.Duration(time.Minute)})
	for range 2 {
		req := &dibs.ClaimRequest{UserID: "ann", CampaignID: "c"}
		if _, ok := l.Enter(t.Context(), req); !ok {
			t.Error("refused for what a node of another version told")
		}
		l.Pass(t.Context(), c, req)
	}
	l.sharing.round()
	for _, key := range []string{"dibs:limit:{nodes}", "dibs:limit:{server}", "dibs:limit:{c7.dd51adc09ac4a1a0}"} {
		if kind := do("TYPE", key); kind != "hash" {
			t.Errorf("%s is %s, want hash: nodes of the version before look there", key, kind)
		}
	}
	if got := do("GET", old); got != later {
		t.Errorf("what the other version told was changed to %s", got)
	}
}
