package room_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/gate/room"
)

// Anybody draws a lottery again from what it has published.
func ExampleDrawAgain() {
	entries := []string{
		room.EntryHash("phone-draw", "ann", "nonce of ann").String(),
		room.EntryHash("phone-draw", "bob", "nonce of bob").String(),
		room.EntryHash("phone-draw", "eve", "nonce of eve").String(),
	}
	slices.Sort(entries)
	list := strings.Join(entries, "\n") + "\n"

	// The server's answer; here the list's hash is not the list's.
	seed := room.Sum{1, 2, 3}
	published := room.Published{
		Seed: seed.String(), SeedHash: room.SeedHash(seed).String(), ListHash: strings.Repeat("0", 64), Winners: 1, Entries: 3,
	}
	drawn, err := room.DrawAgain(strings.NewReader(list), published)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(drawn.Result(room.EntryHash("phone-draw", "ann", "nonce of ann")))
	fmt.Println(drawn.Result(room.EntryHash("phone-draw", "bob", "nonce of bob")))
	fmt.Println(drawn.Result(room.EntryHash("phone-draw", "mallory", "")))
	fmt.Println(len(drawn.Problems) > 0, strings.HasPrefix(drawn.Problems[0], "the hash of the list is"))
	// Output:
	// lost
	// lost
	// absent
	// true true
}
