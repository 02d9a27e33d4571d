package room

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// The draw is made of SHA-256 over texts alone, so that anybody can repeat it
// with sha256sum: hashes are 64 lower-case hexadecimal digits wherever they are
// part of a text. docs/LOTTERY.md has the rule with a script.

// Sum is a SHA-256 hash.
type Sum [sha256.Size]byte

// String returns the hash as it is in texts.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// ParseSum reads what String wrote.
// Upper case is refused: the texts that are hashed must have one spelling.
func ParseSum(text string) (Sum, error) {
	var s Sum
	if len(text) != 2*len(s) || strings.ToLower(text) != text {
		return s, fmt.Errorf("room: %q is not 64 lower-case hexadecimal digits", text)
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return s, fmt.Errorf("room: %q is not 64 lower-case hexadecimal digits: %w", text, err)
	}
	return s, nil
}

func sumOf(text string) Sum { return sha256.Sum256([]byte(text)) }

// SeedHash is what is published of a seed before registration opens.
func SeedHash(seed Sum) Sum { return sumOf(seed.String()) }

// EntryHash is what the public list has of a registration. The nonce is known to
// its user alone: nobody learns from the list who has registered.
func EntryHash(campaign, user, nonce string) Sum {
	return sumOf(campaign + "\n" + user + "\n" + nonce + "\n")
}

// ListHasher hashes the closed list: the entries in ascending order, a line each.
// It is one goroutine's.
type ListHasher struct {
	hash hash.Hash
	last Sum
	n    int64
}

// NewListHasher returns the hasher of an empty list.
func NewListHasher() *ListHasher { return &ListHasher{hash: sha256.New()} }

// Add adds the next entry. One that is not above the one before is an error: then
// the list is not in order, or an entry is in it twice.
func (l *ListHasher) Add(entry Sum) error {
	if l.n > 0 && bytes.Compare(l.last[:], entry[:]) >= 0 {
		return fmt.Errorf("room: entry %s follows %s: the list must ascend, without repeats", entry, l.last)
	}
	l.last = entry
	l.n++
	// A hash takes everything.
	_, _ = l.hash.Write([]byte(entry.String() + "\n"))
	return nil
}

// Len is how many entries were added.
func (l *ListHasher) Len() int64 { return l.n }

// Sum is the hash of the list so far.
func (l *ListHasher) Sum() Sum { return Sum(l.hash.Sum(nil)) }

// DrawKey mixes what each side brought: the seed, that was fixed before anybody
// registered; the closed list, that was fixed by all who registered; and the
// public value, that neither could know, empty when none was named.
func DrawKey(seed, list Sum, public string) Sum {
	return sumOf(seed.String() + "\n" + list.String() + "\n" + public + "\n")
}

// TicketOf is an entry's ticket under a draw's key: the lowest ones win.
func TicketOf(key, entry Sum) Sum {
	var text [4 * sha256.Size]byte
	hex.Encode(text[:], key[:])
	hex.Encode(text[2*sha256.Size:], entry[:])
	return sha256.Sum256(text[:])
}

// lastTicket is the highest there is: under it as cutoff, everybody wins.
var lastTicket = Sum(bytes.Repeat([]byte{0xff}, sha256.Size))

// Cutoff is the highest ticket that wins when winners are drawn of all tickets,
// which are put in order by it. When there are no more than winners, it is the
// highest there can be; when nobody is to win, it is zero.
// It sorts the tickets in place.
func Cutoff(tickets []Sum, winners int64) Sum {
	if int64(len(tickets)) <= winners {
		return lastTicket
	}
	if winners <= 0 {
		return Sum{}
	}
	slices.SortFunc(tickets, func(a, b Sum) int { return bytes.Compare(a[:], b[:]) })
	return tickets[winners-1]
}

// Wins reports whether a ticket is among those up to the cutoff.
func Wins(ticket, cutoff Sum) bool { return bytes.Compare(ticket[:], cutoff[:]) <= 0 }
