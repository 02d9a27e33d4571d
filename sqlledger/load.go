package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

// LoadShard implements dibs.Settlement.
func (l *Ledger) LoadShard(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID, by dibs.Opener) (*dibs.ShardLoad, error) {
	load := &dibs.ShardLoad{}
	err := l.write(ctx, "load shard "+shard.String(), func(s *session) error {
		// What the waiting commands carry, which this drops, is in the sums and rows
		// read below.
		epoch, err := l.raiseEpoch(ctx, s, shard, by)
		if err != nil {
			return err
		}
		*load = dibs.ShardLoad{Epoch: epoch}
		granted, err := readPosition(ctx, s, shard, load)
		if err != nil {
			return err
		}
		s.many(max(granted, load.StockLeft))
		if err := loadHoldings(ctx, s, shard, load, granted); err != nil {
			return err
		}
		aside, err := loadQuarantine(ctx, s, shard, load)
		if err != nil {
			return err
		}
		if c.HasItems() {
			if err := loadItems(ctx, s, shard, load); err != nil {
				return err
			}
			withhold(load, aside)
		}
		return loadRefs(ctx, s, shard, load)
	})
	if err != nil {
		return nil, err
	}
	return load, nil
}

// readPosition reads the shard's row, and returns how many units its claims were
// ever granted.
func readPosition(ctx context.Context, s *session, shard dibs.ShardID, load *dibs.ShardLoad) (granted int64, err error) {
	err = s.row(ctx, `SELECT pos_epoch, pos_seq, stock_left, pending + confirmed + released + refunded
		FROM positions WHERE campaign = ? AND shard = ?`, []any{shard.Campaign, shard.Shard},
		&load.Position.Epoch, &load.Position.Seq, &load.StockLeft, &granted)
	return granted, err
}

// loadHoldings reads the claims in the order of their places.
func loadHoldings(ctx context.Context, s *session, shard dibs.ShardID, load *dibs.ShardLoad, granted int64) error {
	if granted == 0 {
		return nil
	}
	var n int
	if err := s.row(ctx, `SELECT COUNT(*) FROM claims WHERE campaign = ? AND shard = ?`,
		[]any{shard.Campaign, shard.Shard}, &n); err != nil {
		return err
	}
	// The exact size: growing a slice of millions would need twice the memory.
	load.Holdings = make([]dibs.Holding, 0, n)
	return s.each(ctx, `SELECT epoch, seq, user_id, request_key, quantity, created_at, pay_by, status, restocked FROM claims
		WHERE campaign = ? AND shard = ? ORDER BY epoch, seq`, []any{shard.Campaign, shard.Shard},
		func(rows *sql.Rows) error {
			var h dibs.Holding
			var key, status int64
			var restocked bool
			if err := rows.Scan(&h.Epoch, &h.Seq, &h.UserID, &key, &h.Quantity, &h.At, &h.PayBy, &status, &restocked); err != nil {
				return err
			}
			h.Key, h.Released = uint64(key), dibs.Status(status) == dibs.Released || restocked
			load.Holdings = append(load.Holdings, h)
			return nil
		})
}

// loadQuarantine adds the entries in quarantine to the load: grants are
// holdings, and the refs of withdrawals are used.
func loadQuarantine(ctx context.Context, s *session, shard dibs.ShardID, load *dibs.ShardLoad) ([]dibs.Quarantined, error) {
	aside, err := readQuarantine(ctx, s, ` WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard)
	for i := range aside {
		e := &aside[i].Entry
		switch {
		case e.Kind == dibs.EntryAdjust:
			load.Refs = append(load.Refs, e.Ref)
		case e.Quantity >= 1 && e.Quantity <= dibs.MaxStock && e.UserID != "" && len(e.UserID) <= dibs.MaxIDLen:
			load.Holdings = append(load.Holdings, dibs.Holding{
				Cursor: e.Cursor, UserID: e.UserID, Key: e.Key, Quantity: e.Quantity, At: e.At, PayBy: e.PayBy,
			})
		}
	}
	if len(aside) > 0 {
		slices.SortFunc(load.Holdings, func(a, b dibs.Holding) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
		})
	}
	return aside, err
}

// withhold takes the items of entries in quarantine out of the free ones. For
// each that was not free, or never was, another free one is kept back: an entry
// takes as many as it says.
func withhold(load *dibs.ShardLoad, aside []dibs.Quarantined) {
	if len(aside) == 0 {
		return
	}
	taken := make(map[uint32]bool)
	for i := range aside {
		e := &aside[i].Entry
		known := slices.DeleteFunc(slices.Clone(e.Items), func(n uint32) bool { return int(n) >= len(load.Items) })
		for _, n := range known {
			taken[n] = true
		}
		if at, found := placeOf(load, e.Cursor); found && e.Kind == dibs.EntryGrant {
			load.Holdings[at].Items = known
		}
	}
	load.FreeItems = slices.DeleteFunc(load.FreeItems, func(n uint32) bool { return taken[n] })
	if left := max(int(load.StockLeft), 0); len(load.FreeItems) > left {
		load.FreeItems = load.FreeItems[:left]
	}
}

// placeOf finds the holding at a place.
func placeOf(load *dibs.ShardLoad, at dibs.Cursor) (int, bool) {
	return slices.BinarySearchFunc(load.Holdings, at, func(h dibs.Holding, at dibs.Cursor) int {
		return cmp.Or(cmp.Compare(h.Epoch, at.Epoch), cmp.Compare(h.Seq, at.Seq))
	})
}

// loadItems reads all items of the campaign, and says which of the shard's are
// free and which belong to a holding.
func loadItems(ctx context.Context, s *session, shard dibs.ShardID, load *dibs.ShardLoad) error {
	load.Items = []string{}
	return s.each(ctx, `SELECT n, value, shard, claim_epoch, claim_seq, withdrawn FROM items WHERE campaign = ? ORDER BY n`,
		[]any{shard.Campaign}, func(rows *sql.Rows) error {
			var n uint32
			var value string
			var owner uint8
			var epoch, seq sql.NullInt64
			var withdrawn bool
			if err := rows.Scan(&n, &value, &owner, &epoch, &seq, &withdrawn); err != nil {
				return err
			}
			if int(n) != len(load.Items) {
				return fmt.Errorf("%w: campaign %d has no item %d", dibs.ErrCorrupt, shard.Campaign, len(load.Items))
			}
			load.Items = append(load.Items, value)
			switch {
			case owner != shard.Shard || withdrawn:
				return nil
			case !epoch.Valid:
				load.FreeItems = append(load.FreeItems, n)
				return nil
			}
			return giveItem(load, dibs.Cursor{Epoch: uint16(epoch.Int64), Seq: uint32(seq.Int64)}, n)
		})
}

// giveItem adds an item to the holding at a place.
func giveItem(load *dibs.ShardLoad, at dibs.Cursor, n uint32) error {
	i, found := placeOf(load, at)
	if !found {
		return fmt.Errorf("%w: item %d belongs to the claim at %s, which does not exist", dibs.ErrCorrupt, n, at)
	}
	load.Holdings[i].Items = append(load.Holdings[i].Items, n)
	return nil
}

// loadRefs reads the refs of the shard's withdrawals.
func loadRefs(ctx context.Context, s *session, shard dibs.ShardID, load *dibs.ShardLoad) error {
	return s.each(ctx, `SELECT ref FROM adjustments WHERE campaign = ? AND shard = ? AND delta < 0 ORDER BY ref`,
		[]any{shard.Campaign, shard.Shard}, func(rows *sql.Rows) error {
			var ref string
			load.Refs = append(load.Refs, ref)
			return rows.Scan(&load.Refs[len(load.Refs)-1])
		})
}

// Totals implements dibs.Settlement. Every shard of a campaign has totals from
// the start; Epoch is 0 until it is loaded for the first time.
func (l *Ledger) Totals(ctx context.Context, shard dibs.ShardID) (dibs.ShardTotals, error) {
	var t dibs.ShardTotals
	err := l.read(ctx, "read totals", func(s *session) (err error) {
		t, err = readTotals(ctx, s, shard)
		return err
	})
	return t, err
}

func readTotals(ctx context.Context, s *session, shard dibs.ShardID) (t dibs.ShardTotals, err error) {
	err = s.row(ctx, `SELECT epoch, pos_epoch, pos_seq, stock, stock_left, pending, confirmed, released, refunded
		FROM positions WHERE campaign = ? AND shard = ?`, []any{shard.Campaign, shard.Shard},
		&t.Epoch, &t.Position.Epoch, &t.Position.Seq, &t.Stock, &t.StockLeft,
		&t.Pending, &t.Confirmed, &t.Released, &t.Refunded)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(aShard, shard)
	}
	return t, err
}
