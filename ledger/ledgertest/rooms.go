package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// lotteryOf is a lottery of three winners that is not stored yet. The seed is
// 32 bytes in hexadecimal.
func lotteryOf(number uint32) gate.LotteryRow {
	return gate.LotteryRow{Campaign: number, Seed: strings.Repeat("5e", 32), Winners: 3, CommittedAt: start}
}

// entry makes up a registration whose hash begins with two digits of n. n
// decides the order of the list.
func entry(user string, n int) gate.LotteryEntry {
	return gate.LotteryEntry{UserID: user, Entry: fmt.Sprintf("%02x%062d", n, 0), Nonce: "n-" + user, At: start.Add(time.Second)}
}

// testLotteries commits a lottery once: a second seed never replaces the first.
// Changes need the version that was read. The seed is published as a commitment
// before users register. A node that replaced it could choose the winners.
func testLotteries(t *testing.T, f *fixture) {
	ctx, l, number := t.Context(), f.ledger().Rooms, f.insert(campaign("draw", 10)).Number
	wants(t, "a lottery that was not committed", errOf(l.LotteryOf(ctx, number)), dibs.ErrNotFound)
	early := []gate.LotteryEntry{entry("ann", 7)}
	wants(t, "a registration without a lottery", errOf(l.RegisterEntries(ctx, number, early, 10)), dibs.ErrNotFound)
	first, err := l.CommitLottery(ctx, lotteryOf(number))
	if err != nil || first.Seed != lotteryOf(number).Seed || !first.CommittedAt.Equal(start) || !first.ClosedAt.IsZero() || first.Version != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	// Another node commits as well: it is given the first one's seed.
	second := lotteryOf(number)
	second.Seed, second.Winners = strings.Repeat("00", 32), 9
	same(t, "a second seed, the first one must stay", *try(l.CommitLottery(ctx, second)).must(t), *first)
	// Its version is outdated by the update that follows.
	stale := *first
	first.PublicValue = "3,141.59"
	f.must(l.UpdateLottery(ctx, first))
	same(t, "the version", first.Version, 2)
	wants(t, "an update of an older version", l.UpdateLottery(ctx, &stale), dibs.ErrConflict)
	wants(t, "an update of nothing", l.UpdateLottery(ctx, &gate.LotteryRow{Campaign: number + 1, Version: 1}), dibs.ErrNotFound)
	same(t, "what is kept", *try(l.LotteryOf(ctx, number)).must(t), *first)
}

// testLotteryEntries registers users once, in calls that repeat some of them,
// up to a bound. Entries are listed by their hash, in pages. The draw is
// checked against the list of hashes, so its order must not depend on the order
// of arrival.
func testLotteryEntries(t *testing.T, f *fixture) {
	ctx, l, number := t.Context(), f.ledger().Rooms, f.insert(campaign("draw", 10)).Number
	f.must(errOf(l.CommitLottery(ctx, lotteryOf(number))))
	register := func(max int64, entries ...gate.LotteryEntry) []gate.LotteryEntry {
		t.Helper()
		return try(l.RegisterEntries(ctx, number, entries, max)).must(t)
	}
	// zoe comes twice in one call: one of the two entries is taken, and both
	// answers name it.
	got := register(3, entry("zoe", 9), entry("ann", 3), entry("zoe", 4))
	if got[0] != entry("zoe", 9) && got[0] != entry("zoe", 4) || got[2] != got[0] || got[1] != entry("ann", 3) {
		t.Fatalf("%+v", got)
	}
	// Users who are registered stay as they are; a full lottery takes no more.
	got = register(3, entry("ann", 5), entry("bob", 6), entry("carl", 7))
	if got[0] != entry("ann", 3) || got[1] != entry("bob", 6) || got[2] != (gate.LotteryEntry{}) {
		t.Fatalf("%+v", got)
	}
	same(t, "a user's entry", *try(l.EntryOf(ctx, number, "bob")).must(t), entry("bob", 6))
	wants(t, "the entry of a user who has none", errOf(l.EntryOf(ctx, number, "carl")), dibs.ErrNotFound)
	var hashes []string
	for after := ""; ; after = hashes[len(hashes)-1] {
		page := try(l.EntriesAfter(ctx, number, after, 2)).must(t)
		if len(page) == 0 {
			break
		}
		for i := range page {
			hashes = append(hashes, page[i].Entry)
		}
	}
	if len(hashes) != 3 || hashes[0] != entry("", 3).Entry || hashes[1] != entry("", 6).Entry {
		t.Fatalf("the list is %v", hashes)
	}
	same(t, "the entries that are counted", try(l.LotteryOf(ctx, number)).must(t).Entries, 3)
}

// testLotteryClosing closes a lottery while users register: the list is what
// the count says, for good. The number at the closing is published, and the
// winners are drawn from the list: an entry that came in after it would make
// the draw impossible to check. So every registration is either in the list and
// the count, or was refused.
func testLotteryClosing(t *testing.T, f *fixture) {
	ctx, l, number := t.Context(), f.ledger().Rooms, f.insert(campaign("draw", 10)).Number
	row := try(l.CommitLottery(ctx, lotteryOf(number))).must(t)
	const people = 24
	begun, taken := make(chan struct{}), make(chan string, people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			if i == people/4 {
				close(begun)
			}
			got, err := l.RegisterEntries(ctx, number, []gate.LotteryEntry{entry(fmt.Sprint("u", i), i)}, people)
			switch {
			case err == nil:
				taken <- got[0].Entry
			case !errors.Is(err, dibs.ErrInvalidState):
				t.Error(err)
			}
		})
	}
	<-begun
	// The closing meets registrations that are under way.
	row.ClosedAt = start.Add(time.Minute)
	f.must(l.UpdateLottery(ctx, row))
	closed := try(l.LotteryOf(ctx, number)).must(t)
	all.Wait()
	close(taken)
	list, err := l.EntriesAfter(ctx, number, "", people+1)
	if err != nil || int64(len(list)) != closed.Entries || len(list) != len(taken) {
		t.Fatalf("%d entries, %d counted at the closing, %d answered, %v", len(list), closed.Entries, len(taken), err)
	}
	late := []gate.LotteryEntry{entry("late", 99)}
	wants(t, "after the closing", errOf(l.RegisterEntries(ctx, number, late, people+9)), dibs.ErrInvalidState)
}

// testRooms stores places of a room, some of them twice, and how far the room
// is. A place that was given up goes to the end, once; places are forgotten
// only after the campaign's end. A process saves places in batches; after a
// crash another one goes on from them, so nobody loses their place in the
// queue.
func testRooms(t *testing.T, f *fixture) {
	ctx, l, number := t.Context(), f.ledger().Rooms, f.insert(campaign("room", 10)).Number
	wants(t, "a room that was never used", errOf(l.SavedRoomOf(ctx, number)), dibs.ErrNotFound)
	places := make([]gate.SavedPlace, 600)
	for i := range places {
		places[i] = gate.SavedPlace{Number: int64(i) + 1, UserID: fmt.Sprint("u", i)}
	}
	r := gate.SavedRoom{Campaign: number, Tail: 600, Early: -1, At: start}
	f.must(l.SavePlaces(ctx, r, places[:400]))
	// The early users are counted and have a seed to be shuffled by; the room has
	// admitted up to place 1.5, in millionths.
	r.Early, r.Seed, r.AdmittedMicro, r.At = 600, strings.Repeat("ab", 32), 1_500_000, start.Add(time.Second)
	// Some again, as by a process that did not learn that they were stored.
	f.must(l.SavePlaces(ctx, r, places[300:]))
	same(t, "how far the room is", *try(l.SavedRoomOf(ctx, number)).must(t), r)
	// The user left the queue: the place is kept, with a number behind all others.
	f.must(l.DropPlace(ctx, number, 2))
	got, err := l.SavedPlaces(ctx, number, 0, 1000)
	if err != nil || len(got) != 600 || got[0] != places[0] || got[1] != places[2] || got[598] != places[599] {
		t.Fatalf("%d places, %v", len(got), err)
	}
	same(t, "a place that was given up", got[599],
		gate.SavedPlace{Number: 2 + gate.PlaceGivenUp, UserID: places[1].UserID})
	// Once more, as by a process that did not learn of it.
	f.must(l.DropPlace(ctx, number, 2))
	if page, err := l.SavedPlaces(ctx, number, 598, 1); err != nil || len(page) != 1 || page[0].Number != 599 {
		t.Fatalf("%+v, %v", page, err)
	}
	ends := campaign("", 1).EndsAt
	f.must(l.TrimRooms(ctx, ends))
	same(t, "places of a campaign that ends only now", len(try(l.SavedPlaces(ctx, number, 0, 1)).must(t)), 1)
	f.must(l.TrimRooms(ctx, ends.Add(time.Millisecond)))
	same(t, "places of a campaign that is over", len(try(l.SavedPlaces(ctx, number, 0, 1)).must(t)), 0)
}
