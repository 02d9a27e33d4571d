package room

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Published is what a lottery has told everybody, as it is in texts.
type Published struct {
	Seed, SeedHash, ListHash, PublicValue, Key, Cutoff string
	Winners, Entries                                   int64
}

// Redrawn is what a second draw of a published list gives.
type Redrawn struct {
	Entries int64
	// Winners are the entries that win, in the order of their tickets.
	Winners []Sum
	// Problems is what differs from what was published, in words; nil when nothing
	// does.
	Problems []string

	list []Sum
}

// The results of an entry in a second draw.
const (
	Won    = "won"
	Lost   = "lost"
	Absent = "absent"
)

// Result tells what became of an entry.
func (d *Redrawn) Result(entry Sum) string {
	switch {
	case slices.Contains(d.Winners, entry):
		return Won
	case slices.Contains(d.list, entry):
		return Lost
	}
	return Absent
}

// maxEntryLine bounds a line of a list: an entry has 64 characters.
const maxEntryLine = 128

// DrawAgain reads a closed list, an entry a line, draws its winners by the rule,
// and compares with what was published. An error means that the list cannot be
// read.
// Problems are differences that anybody may check by hand; they are no error, since
// finding them is the purpose.
func DrawAgain(list io.Reader, p Published) (*Redrawn, error) {
	d := &Redrawn{}
	differ := func(what, published, found string) {
		if published != found {
			d.Problems = append(d.Problems, fmt.Sprintf("the %s is %s, published was %s", what, found, published))
		}
	}
	hash := NewListHasher()
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, maxEntryLine)
	for n := 1; lines.Scan(); n++ {
		entry, err := ParseSum(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d of the list: %w", n, err)
		}
		if err := hash.Add(entry); err != nil {
			return nil, fmt.Errorf("line %d of the list: %w", n, err)
		}
		d.list = append(d.list, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	d.Entries = hash.Len()
	seed, err := ParseSum(p.Seed)
	if err != nil {
		d.Problems = append(d.Problems, "the seed cannot be read: "+err.Error())
		return d, nil //nolint:nilerr // what was published is at fault, which is what was asked
	}
	differ("hash of the seed", p.SeedHash, SeedHash(seed).String())
	differ("hash of the list", p.ListHash, hash.Sum().String())
	differ("number of entries", fmt.Sprint(p.Entries), fmt.Sprint(d.Entries))
	key := DrawKey(seed, hash.Sum(), p.PublicValue)
	differ("key", p.Key, key.String())
	if p.Winners < 1 {
		d.Problems = append(d.Problems, fmt.Sprintf("the number of winners was published as %d, at least 1 must win", p.Winners))
	}
	d.draw(key, p.Winners)
	tickets := make([]Sum, len(d.list))
	for i, entry := range d.list {
		tickets[i] = TicketOf(key, entry)
	}
	differ("cutoff", p.Cutoff, Cutoff(tickets, p.Winners).String())
	return d, nil
}

// draw puts the entries in the order of their tickets, and takes the winners.
func (d *Redrawn) draw(key Sum, winners int64) {
	type drawn struct{ ticket, entry Sum }
	all := make([]drawn, len(d.list))
	for i, entry := range d.list {
		all[i] = drawn{TicketOf(key, entry), entry}
	}
	slices.SortFunc(all, func(a, b drawn) int { return bytes.Compare(a.ticket[:], b.ticket[:]) })
	for _, one := range all[:min(max(winners, 0), int64(len(all)))] {
		d.Winners = append(d.Winners, one.entry)
	}
}
