package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dibs-dev/dibs"
)

// bookPage is how many journal entries are settled at a time.
const bookPage = 4096

// Book keeps one shard of a campaign as the ledger does, in memory, for an
// engine's own tests: of servers that are killed, say. Settling checks every
// promise that a journal can break: no gap, no oversell, no user above the
// limit, no key granted twice, no item given twice.
//
// All methods are safe for concurrent use.
//
// mu guards the ledger, and is held while the journal or the engine is asked: the book's
// position is always that of the entries that it has counted.
type Book struct {
	mu sync.Mutex
	l  *ledger
}

// NewBook begins a book with the campaign's whole stock; items are the values
// of its items, nil for units.
func NewBook(c *dibs.Campaign, shard dibs.ShardID, items []string) *Book {
	return &Book{l: newLedger(c, shard, c.Stock.Total, items)}
}

// Settle moves what the journal has, up to max entries, into the book, and
// returns how many that were. An error of the book says which promise was
// broken; those of the journal are passed on.
func (b *Book) Settle(ctx context.Context, j dibs.Journal, most int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < most {
		// Each page continues at the book's own position, so an entry is settled at most once,
		// also when an earlier call ended in an error.
		page, err := j.ReadJournal(ctx, b.l.shard, b.l.position, min(bookPage, most-n))
		if err != nil {
			return n, err
		}
		if len(page) == 0 {
			return n, nil
		}
		for i := range page {
			if err := b.l.settle(&page[i]); err != nil {
				return n, errors.Join(ErrBroken, err)
			}
		}
		n += len(page)
	}
	return n, nil
}

// ErrBroken is in every error of a Book that says that a promise was broken.
var ErrBroken = errors.New("enginetest: a promise is broken")

// Open opens the shard from the book, in a new epoch. The load raises the book's epoch
// before the engine is called, so an engine that fails to open never gets the same
// epoch again.
func (b *Book) Open(ctx context.Context, eng dibs.Engine) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := eng.Open(ctx, b.l.campaign, b.l.shard, b.l.load()); err != nil {
		return fmt.Errorf("opening shard %s in epoch %d: %w", b.l.shard, b.l.epoch, err)
	}
	return nil
}

// Position is the place up to which the book is settled.
func (b *Book) Position() dibs.Cursor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.l.position
}

// Left is what the book counts as left.
func (b *Book) Left() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.l.left
}

// Claims lists what was granted, in the order of the places. Each is a copy, but its
// Items are shared with the book: the caller only reads them. Released is what the
// book knows, since the ledger releases before the engine does.
func (b *Book) Claims() []dibs.Holding {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]dibs.Holding, len(b.l.claims))
	for i, h := range b.l.claims {
		all[i] = *h
	}
	return all
}
