package limit

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// oldKey is the hash by which buckets were found in earlier versions: FNV-1a over
// the rule and the name, with a final mix and no key, so that anybody could compute
// names that collide.
func oldKey(rule, name string) uint64 { return oldOf(oldAdd(14695981039346656037, rule), name) }

func oldOf(start uint64, name string) uint64 {
	h := oldAdd(start, name)
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func oldAdd(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}

// perDevice is one claim an hour for each device, and perDeviceText the rule as
// earlier versions hashed it, for the campaign of the tests.
var perDevice = dibs.LimitSpec{Per: "device", Rate: 1, Every: dibs.Duration(time.Hour)}

const perDeviceText = "campaign.device 7 token 1 3600000000000 1 0"

// colliding returns n names whose hash has the same low bits: those that choose a
// place in a table of so many sets.
func colliding(n, sets int, hash func(name string) uint64) []string {
	same := hash("device-0") % uint64(sets)
	names := []string{"device-0"}
	for i := 1; len(names) < n; i++ {
		if name := fmt.Sprint("device-", i); hash(name)%uint64(sets) == same {
			names = append(names, name)
		}
	}
	return names
}

// More names than a set has places used to push each other out of the table, and
// none was limited.
func TestCollidingNamesAreLimited(t *testing.T) {
	l, err := New(Config{Entries: 1 << 12})
	must(t, err)
	names := colliding(ways+4, 1<<12/ways, func(name string) uint64 { return oldKey(perDeviceText, name) })
	if n := passedOn(t, l, names, 5); n != len(names) {
		t.Errorf("%d claims of %d devices were let through, want one each", n, len(names))
	}
}

// passedOn is how many claims are let through when each device claims so many times,
// in turns.
func passedOn(t *testing.T, l *Limiter, devices []string, times int) (passed int) {
	t.Helper()
	c := campaign(perDevice)
	for range times {
		for _, d := range devices {
			if _, ok := l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: "mallory", Device: d}); ok {
				passed++
			}
		}
	}
	return passed
}

// A device whose name had the very hash of a user's bucket took the user's claims:
// by the limit of the server, here, three an hour.
func TestDeviceTakesNoUsersClaims(t *testing.T) {
	const user, device = "ann", "eszyci-~q?i:`Sxo4"
	if oldKey("user 0 token 1 3600000000000 3 0", user) != oldKey(perDeviceText, device) {
		t.Fatal("the names do not collide: the test shows nothing")
	}
	l, err := New(Config{User: every(1, time.Hour, 3)})
	must(t, err)
	c := campaign(perDevice)
	for range 3 {
		l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: "mallory", Device: device})
	}
	res, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: user})
	if !ok || res.Quota.Remaining != 2 {
		t.Errorf("the user's first claim: %v, %d left, want 2", res.Outcome, res.Quota.Remaining)
	}
}

// Everybody can read the algorithm, and nobody the key: names that collide under
// another key are held to their limits.
func TestCollisionsOfAnotherKey(t *testing.T) {
	theirs, err := New(Config{Entries: 1 << 12})
	must(t, err)
	rule := theirs.keyedRule(perDevice, perDevice.Per, 7)
	names := colliding(ways+4, 1<<12/ways, rule.key.of)
	if n := passedOn(t, theirs, names, 5); n <= len(names) {
		t.Fatalf("under their own key %d claims were let through: the names do not collide", n)
	}
	ours, err := New(Config{Entries: 1 << 12})
	must(t, err)
	if n := passedOn(t, ours, names, 5); n != len(names) {
		t.Errorf("%d claims of %d devices were let through, want one each", n, len(names))
	}
}

// The same name under two rules is two: for users and devices, for two campaigns,
// and for two limits of one campaign.
func TestRulesShareNoBucket(t *testing.T) {
	l, err := New(Config{Key: make([]byte, KeySize)})
	must(t, err)
	hour, day := perDevice, perDevice
	day.Every = dibs.Duration(24 * time.Hour)
	seen := map[uint64]string{}
	for _, r := range []rule{
		l.keyedRule(hour, "user", 0), l.keyedRule(hour, "user", 7), l.keyedRule(hour, "user", 8),
		l.keyedRule(hour, "device", 7), l.keyedRule(hour, "address", 7), l.keyedRule(day, "user", 7),
	} {
		key := r.key.of("ann")
		if other, taken := seen[key]; taken {
			t.Errorf("%q and %q share a bucket", r.id, other)
		}
		seen[key] = r.id
	}
	// On every node with the same key they are the same.
	again, err := New(Config{Key: make([]byte, KeySize)})
	must(t, err)
	r := again.keyedRule(hour, "user", 7)
	if _, known := seen[r.key.of("ann")]; !known {
		t.Error("another node with the same key has another bucket")
	}
	c := campaign(dibs.LimitSpec{Per: "user", Rate: 1, Every: hour.Every}, hour)
	for i, want := range []bool{true, false} {
		if _, ok := l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: "ann", Device: "ann"}); ok != want {
			t.Errorf("claim %d of a user on a device of the same name: %v", i+1, ok)
		}
	}
}

// Devices that are made up take no places from users, however many they are.
func TestMadeUpDevicesPushNobodyOut(t *testing.T) {
	const entries = 1 << 10
	l, err := New(Config{User: every(1, time.Minute, 3), Entries: entries})
	must(t, err)
	for range 3 {
		l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"})
	}
	c := campaign(perDevice)
	for i := range 20 * entries {
		l.Pass(t.Context(), c, &dibs.ClaimRequest{UserID: "ann", Device: fmt.Sprint("made-up-", i)})
	}
	if _, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann"}); ok {
		t.Error("the user's limit was forgotten")
	}
}

// BenchmarkNameHash is what the hash of a name costs each limit that a claim is held
// against, beside the hash of earlier versions.
func BenchmarkNameHash(b *testing.B) {
	l, err := New(Config{})
	must(b, err)
	r := l.keyedRule(perDevice, perDevice.Per, 7)
	for _, name := range []string{"user-123456", "0198c0de-7a3b-7f00-8000-0123456789ab"} {
		b.Run(fmt.Sprintf("SipHash-2-4/%d bytes", len(name)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.key.of(name)
			}
		})
		start := oldAdd(14695981039346656037, perDeviceText)
		b.Run(fmt.Sprintf("FNV-1a/%d bytes", len(name)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				oldOf(start, name)
			}
		})
	}
}

// TestSetKey: under another key limits of the server and of campaigns count anew, by that key, and claims go on meanwhile;
// a limit per campaign, which counts no names, keeps its count.
func TestSetKey(t *testing.T) {
	user := per("user", 2, time.Hour)
	l, err := New(Config{User: &user, Key: make([]byte, KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	c := campaign(per("user", 1, time.Hour), per("campaign", 2, time.Hour))
	other := *c
	other.Number++
	entered := func() (n int) {
		for range 5 {
			if _, ok := l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "ann", CampaignID: c.ID}); ok {
				n++
			}
		}
		return n
	}
	if n, m := entered(), passed(t, l, c, "ann", 5); n != 2 || m != 1 {
		t.Fatalf("%d and %d claims pass", n, m)
	}
	for name, key := range map[string][]byte{"none": nil, "a short one": make([]byte, KeySize-1)} {
		if err := l.SetKey(key); err == nil || entered() != 0 {
			t.Errorf("%s is taken as a key: %v", name, err)
		}
	}
	stop := make(chan struct{})
	var claims sync.WaitGroup
	for range 2 {
		claims.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.Enter(t.Context(), &dibs.ClaimRequest{UserID: "bob", CampaignID: c.ID})
					l.Pass(t.Context(), &other, &dibs.ClaimRequest{UserID: "bob"})
				}
			}
		})
	}
	next := bytes.Repeat([]byte{7}, KeySize)
	err = l.SetKey(next)
	close(stop)
	claims.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if n, m := entered(), passed(t, l, c, "ann", 5); n != 2 || m != 1 {
		t.Errorf("after the change %d and %d claims pass", n, m)
	}
	// ann has made both claims of the campaign.
	if m := passed(t, l, c, "eve", 5); m != 0 {
		t.Errorf("the limit of the campaign lets %d more through", m)
	}
	want, err := newHashKey(next)
	if err != nil {
		t.Fatal(err)
	}
	if r := l.user.Load(); r.key != want.derive(r.id) || l.key != want {
		t.Error("names are hashed under another key")
	}
}
