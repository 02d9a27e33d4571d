package room_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/gate/room"
)

// FuzzList: a list of a lottery that is no list is refused, and one that is drawn without a problem is the list of which
// the hash was published: whoever verifies a draw does not believe the server.
func FuzzList(f *testing.F) {
	var seed room.Sum
	list := []string{room.EntryHash("c", "ann", "1").String(), room.EntryHash("c", "bob", "2").String(), room.EntryHash("c", "eve", "3").String()}
	slices.Sort(list)
	hash := room.NewListHasher()
	var tickets []room.Sum
	for _, line := range list {
		entry, err := room.ParseSum(line)
		if err == nil {
			err = hash.Add(entry)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	key := room.DrawKey(seed, hash.Sum(), "3888.60")
	for _, line := range list {
		entry, _ := room.ParseSum(line)
		tickets = append(tickets, room.TicketOf(key, entry))
	}
	published := room.Published{
		Seed: seed.String(), SeedHash: room.SeedHash(seed).String(), ListHash: hash.Sum().String(), PublicValue: "3888.60", Key: key.String(),
		Cutoff: room.Cutoff(tickets, 2).String(), Winners: 2, Entries: 3,
	}
	whole := strings.Join(list, "\n") + "\n"
	for _, text := range []string{whole, "", list[0], whole + list[2], list[1] + "\n" + list[0], strings.ToUpper(whole), strings.ReplaceAll(whole, "\n", "\r\n"), "\n" + whole, strings.Repeat("0", 200)} {
		f.Add(text, published.Seed, published.PublicValue, int64(2))
	}
	f.Add(whole, strings.ToUpper(published.Seed), "3888.6", int64(-1))
	f.Fuzz(func(t *testing.T, text, seed, public string, winners int64) {
		p := published
		p.Seed, p.PublicValue, p.Winners = seed, public, winners
		drawn, err := room.DrawAgain(strings.NewReader(text), p)
		if err != nil {
			return
		}
		if int64(len(drawn.Winners)) > max(winners, 0) || int64(len(drawn.Winners)) > drawn.Entries {
			t.Errorf("%d of %d win, by %d", len(drawn.Winners), drawn.Entries, winners)
		}
		if len(drawn.Problems) == 0 && (!slices.Equal(strings.Fields(text), list) || seed != published.Seed || public != published.PublicValue) {
			t.Errorf("%q with the seed %q, the value %q and %d winners is the draw of another list", text, seed, public, winners)
		}
	})
}
