package room_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"

	"github.com/dibs-dev/dibs/gate"
)

func lottery(winners int64) dibs.RoomSpec {
	return dibs.RoomSpec{
		Mode: dibs.Lottery, Winners: winners, RegistrationOpensAt: noon.Add(-2 * hour), RegistrationClosesAt: noon.Add(-hour),
	}
}

// listOf is the closed list as it is published.
func listOf(t *testing.T, r *room.Rooms, c *dibs.Campaign) []string {
	t.Helper()
	var b bytes.Buffer
	must(t, r.WriteEntries(t.Context(), c, &b))
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func show(t *testing.T, r *room.Rooms, c *dibs.Campaign) gate.LotteryView {
	t.Helper()
	v, err := r.Lottery(t.Context(), c)
	must(t, err)
	return v
}

func register(t *testing.T, r *room.Rooms, c *dibs.Campaign, user string) gate.EntryView {
	t.Helper()
	v, _, err := r.Register(t.Context(), c, user)
	must(t, err)
	return v
}

// TestALotteryFromSeedToAdmission runs one on two nodes of a ledger, and draws
// again from what everybody sees.
func TestALotteryFromSeedToAdmission(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-3 * hour)}
	c := campaign(t, l, "draw", lottery(15))
	one, two := newRooms(t, room.Config{Ledger: l, Now: at.Now}), newRooms(t, room.Config{Ledger: l, Now: at.Now})
	tick := func() { one.Tick(c); two.Tick(c) }
	tick()
	before := show(t, two, c)
	if before.State != gate.LotteryUpcoming || len(before.SeedHash) != 64 || !before.CommittedAt.Equal(at.Now()) || before.Seed != "" || before.Winners != 15 {
		t.Fatalf("before registration: %+v", before)
	}
	_, _, err := one.Register(t.Context(), c, "ann")
	fails(t, err, dibs.NotStarted)

	at.set(noon.Add(-2 * hour))
	const people = 60
	entries := make([]gate.EntryView, people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			for _, r := range []*room.Rooms{one, two} {
				v, again, err := r.Register(t.Context(), c, user(i))
				if err != nil || again != (r == two) || again && v.Entry != entries[i].Entry {
					t.Errorf("%s: %+v, %v, %v", user(i), v, again, err)
				}
				entries[i] = v
			}
		})
	}
	all.Wait()
	if e := entries[7]; e.Entry != room.EntryHash("draw", user(7), e.Nonce).String() || e.Result != gate.LotteryPending || e.Ticket != "" {
		t.Fatalf("%+v", e)
	}
	fails(t, one.WriteEntries(t.Context(), c, &bytes.Buffer{}), dibs.InvalidState)
	if v := show(t, one, c); v.State != gate.LotteryOpen || v.Seed != "" || v.ListHash != "" {
		t.Fatalf("while it is open: %+v", v)
	}

	at.set(noon.Add(-hour))
	_, _, err = one.Register(t.Context(), c, "late")
	fails(t, err, dibs.Ended)
	tick()
	tick()
	v := show(t, two, c)
	checkDraw(t, v, before.SeedHash, "", listOf(t, one, c), entries)
	if again := show(t, one, c); again.Cutoff != v.Cutoff || !again.DrawnAt.Equal(*v.DrawnAt) {
		t.Errorf("two nodes tell of two draws: %+v and %+v", again, v)
	}
	checkResults(t, []*room.Rooms{one, two}, c, at, 15)
	third := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	third.Tick(c)
	checkResults(t, []*room.Rooms{third}, c, at, 15)
	if e := register(t, third, c, user(7)); e.Entry != entries[7].Entry {
		t.Errorf("who registers again afterwards sees %+v", e)
	}
}

// checkDraw draws again from what is public.
func checkDraw(t *testing.T, v gate.LotteryView, seedHash, public string, list []string, entries []gate.EntryView) {
	t.Helper()
	if v.State != gate.LotteryDrawn || v.Entries != int64(len(entries)) || len(list) != len(entries) || v.SeedHash != seedHash || hexOf(v.Seed) != seedHash {
		t.Fatalf("%d entries in the list of %d, %+v", len(list), len(entries), v)
	}
	for i := range entries {
		if _, found := slices.BinarySearch(list, entries[i].Entry); !found {
			t.Errorf("%s is not in the list", user(i))
		}
	}
	listHash, key, won := drawAgain(v.Seed, public, list, int(v.Winners))
	if v.ListHash != listHash || v.Key != key {
		t.Errorf("list %s and key %s, want %s and %s", v.ListHash, v.Key, listHash, key)
	}
	last := hexOf(key + won[len(won)-1])
	if v.Cutoff != last {
		t.Errorf("cutoff %s, the last winner has %s", v.Cutoff, last)
	}
}

// checkResults asks every node for every user's result, and for whether the user's
// claim passes.
func checkResults(t *testing.T, nodes []*room.Rooms, c *dibs.Campaign, at *clock, winners int) {
	t.Helper()
	v := show(t, nodes[0], c)
	at.set(noon)
	for n, r := range nodes {
		won := 0
		for i := range int(v.Entries) {
			e, err := r.Entry(t.Context(), c, user(i))
			must(t, err)
			wins := hexOf(v.Key+e.Entry) <= v.Cutoff
			if (e.Result == gate.LotteryWon) != wins || (e.Admission != "") != wins || e.Ticket != hexOf(v.Key+e.Entry) {
				t.Fatalf("node %d: %s has %+v, and wins: %v", n, user(i), e, wins)
			}
			if wins {
				won++
			}
			for _, admission := range []string{"", e.Admission} {
				res, passed := claims(r, c, user(i), admission)
				if passed != wins || !passed && res.Outcome != dibs.NotEligible {
					t.Fatalf("node %d: the claim of %s: passed %v, %s; wins: %v", n, user(i), passed, res.Outcome, wins)
				}
			}
		}
		if won != winners {
			t.Errorf("node %d: %d won, want %d", n, won, winners)
		}
		if res, passed := claims(r, c, "nobody", ""); passed || res.Outcome != dibs.NotEligible {
			t.Errorf("who did not register: passed %v, %s", passed, res.Outcome)
		}
	}
	at.set(noon.Add(-hour))
}

func TestALotteryWaitsForItsPublicValue(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-2 * hour)}
	spec := lottery(0)
	spec.PublicValue, spec.PublicValueFormat = "the closing SSE Composite of 2026-12-01", "decimal:2"
	c := campaign(t, l, "draw", spec)
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	r.Tick(c)
	before := show(t, r, c)
	if before.Winners != c.Stock.Total || before.PublicValueIs != spec.PublicValue || before.PublicValueFormat != "decimal:2" || before.PublicValue != nil {
		t.Fatalf("%+v", before)
	}
	entries := make([]gate.EntryView, 40)
	for i := range entries {
		entries[i] = register(t, r, c, user(i))
	}
	tell := func(value string) error {
		_, err := r.TellPublicValue(t.Context(), c, value)
		return err
	}
	fails(t, tell("3888.60"), dibs.InvalidState)
	at.set(noon.Add(-hour))
	r.Tick(c)
	if v := show(t, r, c); v.State != gate.LotteryClosed || v.Seed != "" || v.Entries != 40 || len(v.ListHash) != 64 {
		t.Fatalf("closed: %+v", v)
	}
	at.set(noon)
	if res, passed := claims(r, c, user(1), ""); passed || res.Outcome != dibs.Waiting {
		t.Errorf("before the draw: passed %v, %s", passed, res.Outcome)
	}
	fails(t, tell(""), dibs.InvalidRequest)
	fails(t, tell("two\nlines"), dibs.InvalidRequest)
	for _, other := range []string{"3,888.60", "3888.6", "3888.600", " 3888.60"} {
		// Each spelling would be a draw of its own.
		fails(t, tell(other), dibs.InvalidRequest)
	}
	must(t, tell("3888.60"))
	must(t, tell("3888.60"))
	fails(t, tell("3888.61"), dibs.InvalidState)
	at.pass(time.Second)
	r.Tick(c)
	v := show(t, r, c)
	if v.PublicValue == nil || *v.PublicValue != "3888.60" {
		t.Fatalf("%+v", v)
	}
	checkDraw(t, v, before.SeedHash, "3888.60", listOf(t, r, c), entries)
	checkResults(t, []*room.Rooms{r}, c, at, 20)
}

// Fewer register than can win, or nobody at all.
func TestALotteryThatEverybodyWins(t *testing.T) {
	l, at := newLedger(t), &clock{now: noon.Add(-2 * hour)}
	few, none := campaign(t, l, "few", lottery(5)), campaign(t, l, "none", lottery(5))
	r := newRooms(t, room.Config{Ledger: l, Now: at.Now})
	for i := range 3 {
		register(t, r, few, user(i))
	}
	at.set(noon.Add(-hour))
	r.Tick(few, none)
	if v := show(t, r, few); v.Cutoff != strings.Repeat("f", 64) {
		t.Errorf("%+v", v)
	}
	checkResults(t, []*room.Rooms{r}, few, at, 3)
	if v := show(t, r, none); v.State != gate.LotteryDrawn || v.Entries != 0 || v.ListHash != hexOf("") {
		t.Errorf("%+v", v)
	}
	at.set(noon)
	if res, passed := claims(r, none, "ann", ""); passed || res.Outcome != dibs.NotEligible {
		t.Errorf("passed %v, %s", passed, res.Outcome)
	}
	_, err := r.Entry(t.Context(), none, "ann")
	fails(t, err, dibs.NotFound)
	_, err = r.TellPublicValue(t.Context(), none, "1")
	fails(t, err, dibs.InvalidState)
}
