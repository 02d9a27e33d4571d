package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/funds"
)

// CreditClaims credits up to most settled claims that are not credited yet, the
// oldest of each shard first, and returns how many; fewer than most when none is
// left. Several processes may call it at once: each claim is credited once.
// Beside accounts and entries it locks only the red packet's row and positions,
// which settling never touches.
func (fu *Funds) CreditClaims(ctx context.Context, c *dibs.Campaign, at time.Time, most int) (n int, err error) {
	ctx = sqldb.Long(ctx, sqldb.LongStatement)
	return sqldb.Result(ctx, fu.db.Write, "credit the claims of "+c.ID, func(s *sqldb.Session) (int, error) {
		now, err := lockPacket(ctx, s, c.Number, s.SkipLocked)
		if isNoRows(err) {
			// Another process is crediting this red packet.
			return 0, nil
		}
		if err != nil || now.funded == 0 {
			return 0, err
		}
		behind, err := shardsBehind(ctx, s, c.Number)
		if err != nil {
			return 0, err
		}
		var claims []credit
		for i := range behind {
			if len(claims) == most {
				break
			}
			if claims, err = behind[i].pass(ctx, s, claims, most); err != nil {
				return 0, err
			}
		}
		return len(claims), creditAll(ctx, s, c, claims, at)
	})
}

// shardBehind is a shard of a red packet whose claims are settled up to a position,
// and credited up to an earlier one.
type shardBehind struct {
	dibs.ShardID
	credited, settled dibs.Cursor
}

// shardsBehind lists the shards of a red packet that have something to credit. The
// one that was credited the least comes first: under a load that lasts, each shard
// has its turn.
func shardsBehind(ctx context.Context, s *sqldb.Session, campaign uint32) ([]shardBehind, error) {
	return sqldb.List(ctx, s, `SELECT k.shard, k.epoch, k.seq, p.pos_epoch, p.pos_seq FROM packet_positions k
		JOIN positions p ON p.campaign = k.campaign AND p.shard = k.shard
		WHERE k.campaign = ? AND (k.epoch, k.seq) < (p.pos_epoch, p.pos_seq) ORDER BY k.seq, k.shard`, []any{campaign},
		func(rows *sql.Rows, b *shardBehind) error {
			b.Campaign = campaign
			return rows.Scan(&b.Shard, &b.credited.Epoch, &b.credited.Seq, &b.settled.Epoch, &b.settled.Seq)
		})
}

// pass moves the shard's position over claims that are to be credited, and adds them
// to a list that holds most claims.
func (b *shardBehind) pass(ctx context.Context, s *sqldb.Session, all []credit, most int) ([]credit, error) {
	claims, err := claimsAfter(ctx, s, b.ShardID, b.credited, b.settled, most-len(all))
	if err != nil {
		return nil, err
	}
	// A full list ends at its last claim; otherwise entries without claims up to
	// the committed position are passed, too.
	to := b.settled
	if all = append(all, claims...); len(all) == most {
		to = claims[len(claims)-1].Cursor
	}
	return all, s.DoOne(ctx, dibs.ErrPositionMoved, `UPDATE packet_positions SET epoch = ?, seq = ?
		WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, to.Epoch, to.Seq, b.Campaign, b.Shard, b.credited.Epoch, b.credited.Seq)
}

// creditAll moves money from escrow to the users of claims. A claim that was
// credited before fails it all, by the key of its entry. It writes the entries,
// takes the sum from escrow once, adds to each user once, in the order in which
// accounts are locked, and adds the sum to the red packet's row.
func creditAll(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, claims []credit, at time.Time) error {
	if len(claims) == 0 {
		return nil
	}
	sum := int64(0)
	currency := c.Packet.Total.Currency
	args := make([]any, 0, 24*len(claims))
	users := make(map[string]int64, len(claims))
	for i := range claims {
		if claims[i].amount == 0 {
			return fmt.Errorf("%w: the claim at %s of red packet %s has no share", dibs.ErrCorrupt, claims[i].Position, c.ID)
		}
		t := transfer{
			at: claims[i].Position, what: funds.TransferCredit, from: escrow(c),
			to: account{funds.UserAccount, claims[i].user}, currency: currency, amount: claims[i].amount,
		}
		args = t.entries(args, at)
		users[claims[i].user] += claims[i].amount
		sum += claims[i].amount
	}
	if err := insertPostings(ctx, s, args); err != nil {
		return err
	}
	if err := takeEscrow(ctx, s, c, sum); err != nil {
		return err
	}
	if err := addToUsers(ctx, s, users, currency); err != nil {
		return err
	}
	return s.Do(ctx, `UPDATE packets SET credited = credited + ? WHERE campaign = ?`, sum, c.Number)
}

// addToUsers adds to many balances. Accounts that do not exist are made.
func addToUsers(ctx context.Context, s *sqldb.Session, users map[string]int64, currency string) error {
	args := make([]any, 0, 4*len(users))
	// In the order of owners, in which every transaction changes accounts.
	for _, name := range slices.Sorted(maps.Keys(users)) {
		args = append(args, string(funds.UserAccount), name, currency, users[name])
	}
	return s.UpsertRows(ctx, `INSERT INTO accounts (kind, owner, currency, balance) VALUES `, formsFor(s).addBalance, args, 4)
}

// creditLate credits a claim that was settled from the quarantine, when claims
// after it are credited already: CreditClaims would not look at it any more.
func creditLate(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, at dibs.Position, when time.Time) error {
	if _, err := lockPacket(ctx, s, c.Number, s.ForUpdate); err != nil {
		return err
	}
	var credited dibs.Cursor
	if err := s.Row(ctx, `SELECT epoch, seq FROM packet_positions WHERE campaign = ? AND shard = ?`, []any{at.Campaign, at.Shard},
		&credited.Epoch, &credited.Seq); err != nil || credited.Before(at.Cursor) {
		return err
	}
	before := at.Cursor
	before.Seq--
	claims, err := claimsAfter(ctx, s, at.ShardID, before, at.Cursor, 1)
	if err != nil {
		return err
	}
	return creditAll(ctx, s, c, claims, when)
}

// credit is one claim, and what its shares are worth.
type credit struct {
	dibs.Position
	user   string
	amount int64
}

// claimsAfter reads the claims of a shard of a red packet after one position and
// up to another, and what their shares are worth. It reads one epoch at a time,
// which is a range of the index.
func claimsAfter(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, from, to dibs.Cursor, most int) ([]credit, error) {
	var found []credit
	err := eachEpoch(from, to, func(epoch uint16, after, last uint32) error {
		first := len(found)
		if first == most {
			return nil
		}
		some, err := sqldb.List(ctx, s, `SELECT seq, user_id FROM claims WHERE campaign = ? AND shard = ? AND epoch = ? AND seq > ? AND seq <= ?
			ORDER BY seq LIMIT ?`, []any{shard.Campaign, shard.Shard, epoch, after, last, most - first}, func(rows *sql.Rows, c *credit) error {
			c.ShardID, c.Epoch = shard, epoch
			return rows.Scan(&c.Seq, &c.user)
		})
		if err != nil {
			return err
		}
		found = append(found, some...)
		return addShares(ctx, s, shard, found[first:])
	})
	return found, err
}

// eachEpoch calls f for each epoch from one position to another, with the range
// of its entries that lie between: after one seq, up to another.
func eachEpoch(from, to dibs.Cursor, f func(epoch uint16, after, last uint32) error) error {
	for epoch := from.Epoch; epoch <= to.Epoch; epoch++ {
		after, last := uint32(0), to.Seq
		if epoch == from.Epoch {
			after = from.Seq
		}
		if epoch < to.Epoch {
			last = ^uint32(0)
		}
		if err := f(epoch, after, last); err != nil {
			return err
		}
	}
	return nil
}

// addShares adds up what the shares of claims of one epoch of a shard are worth.
// claims are in the order of their seqs. A claim that has no share keeps 0.
func addShares(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, claims []credit) error {
	if len(claims) == 0 {
		return nil
	}
	first, last := claims[0].Cursor, claims[len(claims)-1].Cursor
	return s.Each(ctx, `SELECT claim_seq, amount FROM items`+formsFor(s).byClaim+` WHERE campaign = ? AND shard = ? AND claim_epoch = ?
		AND claim_seq >= ? AND claim_seq <= ?`, []any{shard.Campaign, shard.Shard, first.Epoch, first.Seq, last.Seq}, func(rows *sql.Rows) error {
		var seq uint32
		var amount int64
		if err := rows.Scan(&seq, &amount); err != nil {
			return err
		}
		i, ok := slices.BinarySearchFunc(claims, seq, func(c credit, seq uint32) int { return int(int64(c.Seq) - int64(seq)) })
		if ok {
			claims[i].amount += amount
		}
		return nil
	})
}
