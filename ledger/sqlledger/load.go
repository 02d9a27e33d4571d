package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// LoadShard raises the shard's epoch and reads the shard, in one transaction.
// It drops the shard's waiting commands: what they carry is in what it reads.
// Grants in quarantine are among the holdings, and as many items as they take
// are not free. ErrElsewhere, and no change of the shard, when another server holds
// it, was seen within dibs.ServerLife, and has a later history of it than the opener's.
// It is noted then that the opener's server waits; see mayTake.
func (st *Settlement) LoadShard(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID, by live.Opener) (*dibs.ShardLoad, error) {
	load, err := sqldb.Result(ctx, st.db.Write, "load shard "+shard.String(), func(s *sqldb.Session) (*dibs.ShardLoad, error) {
		// This drops the waiting commands. The sums and rows that are read below have what
		// they carry.
		epoch, err := raiseEpoch(ctx, s, shard, by)
		if err != nil {
			return nil, err
		}
		load := &dibs.ShardLoad{Epoch: epoch}
		granted, err := readPosition(ctx, s, shard, load)
		if err != nil {
			return nil, err
		}
		// Each unit granted may be a claim, and each unit left an item.
		s.ManyRows(max(granted, load.StockLeft))
		if err := loadHoldings(ctx, s, shard, load, granted); err != nil {
			return nil, err
		}
		quarantined, err := loadQuarantine(ctx, s, shard, load)
		if err == nil && c.HasItems() {
			if err = loadItems(ctx, s, shard, load); err == nil {
				withhold(load, quarantined)
			}
		}
		if err == nil {
			err = loadMoved(ctx, s, c, shard, load)
		}
		if err == nil {
			err = loadSharing(ctx, s, c, load)
		}
		if err == nil {
			err = loadRefs(ctx, s, shard, load)
		}
		return load, err
	})
	if errors.Is(err, dibs.ErrElsewhere) {
		err = errors.Join(err, st.noteWaiting(ctx, by.Server))
	}
	return load, err
}

// readPosition reads the shard's row, and returns how many units its claims
// were granted in all.
func readPosition(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, load *dibs.ShardLoad) (granted int64, err error) {
	err = s.Row(ctx, `SELECT pos_epoch, pos_seq, stock_left, pending + confirmed + released + refunded
		FROM positions WHERE campaign = ? AND shard = ?`, []any{shard.Campaign, shard.Shard},
		&load.Position.Epoch, &load.Position.Seq, &load.StockLeft, &granted)
	return granted, err
}

// loadHoldings reads the claims in the order of their positions. Claims whose
// stock came back are among them, since they count for the number of a user's
// claims.
func loadHoldings(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, load *dibs.ShardLoad, granted int64) error {
	if granted == 0 {
		return nil
	}
	n, err := sqldb.Get[int](ctx, s, `SELECT COUNT(*) FROM claims WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard)
	if err != nil {
		return err
	}
	// The exact size: growing a slice of millions would need twice the memory.
	load.Holdings = make([]dibs.Holding, 0, n)
	return s.Each(ctx, `SELECT epoch, seq, user_id, request_key, quantity, created_at, pay_by, status, restocked FROM claims
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
func loadQuarantine(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, load *dibs.ShardLoad) ([]live.Quarantined, error) {
	found, err := readQuarantine(ctx, s, ` WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard)
	for i := range found {
		e := &found[i].Entry
		switch {
		case e.Kind == dibs.EntryAdjust:
			load.Refs = append(load.Refs, e.Ref)
			if _, ok := dibs.TransferOf(e.Ref); ok {
				load.Moved -= e.Quantity
			}
		case e.Quantity >= 1 && e.Quantity <= dibs.MaxStock && e.UserID != "" && len(e.UserID) <= dibs.MaxIDLen:
			load.Holdings = append(load.Holdings, dibs.Holding{
				Cursor: e.Cursor, UserID: e.UserID, Key: e.Key, Quantity: e.Quantity, At: e.At, PayBy: e.PayBy,
			})
		}
	}
	if len(found) > 0 {
		slices.SortFunc(load.Holdings, func(a, b dibs.Holding) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
		})
	}
	return found, err
}

// withhold takes the items of entries in quarantine out of the free ones. An
// entry takes as many items as it says: for each of its items that is not free,
// another free one is kept back.
func withhold(load *dibs.ShardLoad, quarantined []live.Quarantined) {
	if len(quarantined) == 0 {
		return
	}
	taken := make(map[uint32]bool)
	for i := range quarantined {
		e := &quarantined[i].Entry
		known := slices.DeleteFunc(slices.Clone(e.Items), func(n uint32) bool { return int(n) >= len(load.Items) })
		for _, n := range known {
			taken[n] = true
		}
		if at, found := holdingAt(load, e.Cursor); found && e.Kind == dibs.EntryGrant {
			load.Holdings[at].Items = known
		}
	}
	// The sums count entries in quarantine, so that as many items as are left
	// in the stock can be free, and no more.
	load.FreeItems = slices.DeleteFunc(load.FreeItems, func(n uint32) bool { return taken[n] })
	if left := max(int(load.StockLeft), 0); len(load.FreeItems) > left {
		load.FreeItems = load.FreeItems[:left]
	}
}

// holdingAt finds the holding at a position.
func holdingAt(load *dibs.ShardLoad, at dibs.Cursor) (int, bool) {
	return slices.BinarySearchFunc(load.Holdings, at, func(h dibs.Holding, at dibs.Cursor) int {
		return cmp.Or(cmp.Compare(h.Epoch, at.Epoch), cmp.Compare(h.Seq, at.Seq))
	})
}

// loadItems reads all items of the campaign, and which of the shard's are free
// or belong to a holding. Values of other shards are read too, since an item is
// named by its number in the campaign.
func loadItems(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, load *dibs.ShardLoad) error {
	load.Items = []string{}
	return s.Each(ctx, `SELECT n, value, shard, claim_epoch, claim_seq, withdrawn FROM items WHERE campaign = ? ORDER BY n`,
		[]any{shard.Campaign}, func(rows *sql.Rows) error {
			var n uint32
			var value string
			var at uint8
			var epoch, seq sql.NullInt64
			var withdrawn bool
			if err := rows.Scan(&n, &value, &at, &epoch, &seq, &withdrawn); err != nil {
				return err
			}
			// Engines name items by their numbers, which therefore must be
			// indexes.
			if int(n) != len(load.Items) {
				return fmt.Errorf("%w: campaign %d has no item %d", dibs.ErrCorrupt, shard.Campaign, len(load.Items))
			}
			value, err := openItem(s.Codes, shard.Campaign, value)
			if err != nil {
				return err
			}
			load.Items = append(load.Items, value)
			switch {
			case at != shard.Shard || withdrawn:
				return nil
			case !epoch.Valid:
				load.FreeItems = append(load.FreeItems, n)
				return nil
			}
			return giveItem(load, dibs.Cursor{Epoch: uint16(epoch.Int64), Seq: uint32(seq.Int64)}, n)
		})
}

// giveItem adds an item to the holding at a position.
func giveItem(load *dibs.ShardLoad, at dibs.Cursor, n uint32) error {
	i, found := holdingAt(load, at)
	if !found {
		return fmt.Errorf("%w: item %d belongs to the claim at %s, which does not exist", dibs.ErrCorrupt, n, at)
	}
	load.Holdings[i].Items = append(load.Holdings[i].Items, n)
	return nil
}

// loadRefs reads the refs of the shard's withdrawals. The engine knows a
// repeated withdrawal by its ref.
func loadRefs(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, load *dibs.ShardLoad) error {
	refs, err := sqldb.List(ctx, s, `SELECT ref FROM adjustments WHERE campaign = ? AND shard = ? AND delta < 0 ORDER BY ref`,
		[]any{shard.Campaign, shard.Shard}, sqldb.Scan1[string])
	load.Refs = append(load.Refs, refs...)
	return err
}
