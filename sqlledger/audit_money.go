package sqlledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// countMoney counts the money of a red packet afresh, by its shares and by the
// entries of its transfers.
func (au *auditor) countMoney(ctx context.Context) error {
	if au.c.Packet == nil {
		return nil
	}
	p := &dibs.PacketAudit{Total: au.c.Packet.Total.Amount}
	p.Currency = au.c.Packet.Total.Currency
	au.a.Packet = p
	for _, step := range []func(context.Context, *dibs.PacketAudit) error{
		au.countShares, au.sumTransfers, au.findBadPairs, au.findBadCredits, au.findBadBalances,
	} {
		if err := step(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// badMoney notes what does not fit.
func badMoney(p *dibs.PacketAudit, format string, args ...any) {
	if len(p.Bad) < maxBad {
		p.Bad = append(p.Bad, fmt.Sprintf(format, args...))
	}
}

// countShares adds the shares up. What is given out is a share's value; what is
// credited is its amount.
func (au *auditor) countShares(ctx context.Context, p *dibs.PacketAudit) error {
	spec := au.c.Packet
	err := au.s.each(ctx, `SELECT n, value, amount FROM items WHERE campaign = ? ORDER BY n`, []any{au.c.Number}, func(rows *sql.Rows) error {
		var n uint32
		var value string
		var amount int64
		if err := rows.Scan(&n, &value, &amount); err != nil {
			return err
		}
		p.Count++
		p.Shares += amount
		if _, says, ok := dibs.ParseShare(value); !ok || says != amount {
			badMoney(p, "share %d is %q and worth %d", n, value, amount)
		}
		if amount < spec.Min || spec.Max > 0 && amount > spec.Max {
			badMoney(p, "share %d of %d is out of bounds", n, amount)
		}
		return nil
	})
	if p.Count != spec.Count {
		badMoney(p, "there are %d shares of %d", p.Count, spec.Count)
	}
	return err
}

// sumTransfers adds the entries up, and compares the row of the red packet and
// its escrow with them.
func (au *auditor) sumTransfers(ctx context.Context, p *dibs.PacketAudit) error {
	if err := au.s.each(ctx, `SELECT what, SUM(amount) FROM entries WHERE campaign = ? AND side = 1 GROUP BY what`,
		[]any{au.c.Number}, func(rows *sql.Rows) error {
			var what dibs.TransferKind
			var sum int64
			if err := rows.Scan(&what, &sum); err != nil {
				return err
			}
			switch what {
			case dibs.TransferFund:
				p.Funded = sum
			case dibs.TransferCredit:
				p.Credited = sum
			case dibs.TransferReturn:
				p.Returned = sum
			default:
				badMoney(p, "%d moved by transfers of the kind %q", sum, what)
			}
			return nil
		}); err != nil {
		return err
	}
	var funded, returned, sumCredited, sumReturned int64
	if err := au.s.row(ctx, `SELECT funded_at, returned_at, credited, returned FROM packets WHERE campaign = ?`, []any{au.c.Number},
		&funded, &returned, &sumCredited, &sumReturned); err != nil {
		return err
	}
	p.ReturnedAt = fromOptionalMS(returned)
	if err := au.s.row(ctx, `SELECT COALESCE(SUM(balance), 0) FROM accounts WHERE kind = 'escrow' AND owner = ? AND currency = ?`,
		[]any{au.c.ID, p.Currency}, &p.Escrow); err != nil {
		return err
	}
	if sumCredited != p.Credited || sumReturned != p.Returned {
		badMoney(p, "the red packet's row has %d credited and %d returned, the entries %d and %d", sumCredited, sumReturned, p.Credited, p.Returned)
	}
	if published := au.c.State != dibs.Draft; published != (funded > 0) || published && p.Funded != p.Total || !published && p.Funded != 0 {
		badMoney(p, "it is %s, and %d of %d were paid for it", au.c.State, p.Funded, p.Total)
	}
	if returned > 0 && p.Escrow != 0 {
		badMoney(p, "it is closed with %d in escrow", p.Escrow)
	}
	return nil
}

// findBadPairs finds transfers that are not two entries that sum to zero.
func (au *auditor) findBadPairs(ctx context.Context, p *dibs.PacketAudit) error {
	return au.s.each(ctx, `SELECT shard, epoch, seq, what, COUNT(*), SUM(amount) FROM entries WHERE campaign = ?
		GROUP BY shard, epoch, seq, what, ref HAVING COUNT(*) <> 2 OR SUM(amount) <> 0 LIMIT ?`, []any{au.c.Number, maxBad},
		func(rows *sql.Rows) error {
			at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
			var what string
			var n, sum int64
			if err := rows.Scan(&at.Shard, &at.Epoch, &at.Seq, &what, &n, &sum); err != nil {
				return err
			}
			badMoney(p, "the %s of %s has %d entries that sum to %d", what, at, n, sum)
			return nil
		})
}

// findBadCredits finds claims up to the credited place that were not credited
// with their shares' worth, and credits of no claim.
func (au *auditor) findBadCredits(ctx context.Context, p *dibs.PacketAudit) error {
	if err := au.s.row(ctx, `SELECT COUNT(*) FROM packets p JOIN claims c ON c.campaign = p.campaign
		AND (c.epoch, c.seq) > (p.credit_epoch, p.credit_seq) WHERE p.campaign = ?`, []any{au.c.Number}, &p.Waiting); err != nil {
		return err
	}
	bad := func(what string) func(*sql.Rows) error {
		return func(rows *sql.Rows) error {
			at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
			if err := rows.Scan(&at.Shard, &at.Epoch, &at.Seq); err != nil {
				return err
			}
			badMoney(p, what, at)
			return nil
		}
	}
	if err := au.s.each(ctx, `SELECT c.shard, c.epoch, c.seq FROM packets p JOIN claims c ON c.campaign = p.campaign
		AND (c.epoch, c.seq) <= (p.credit_epoch, p.credit_seq)
		LEFT JOIN entries e ON e.campaign = c.campaign AND e.shard = c.shard AND e.epoch = c.epoch AND e.seq = c.seq
			AND e.what = 'credit' AND e.ref = '' AND e.side = 1
		LEFT JOIN items i ON i.campaign = c.campaign AND i.shard = c.shard AND i.claim_epoch = c.epoch AND i.claim_seq = c.seq
		WHERE p.campaign = ? GROUP BY c.shard, c.epoch, c.seq, c.user_id, e.kind, e.owner, e.amount
		HAVING e.amount IS NULL OR e.kind <> 'user' OR e.owner <> c.user_id OR e.amount <> COALESCE(SUM(i.amount), 0) LIMIT ?`,
		[]any{au.c.Number, maxBad}, bad("the claim %s was not credited with what its share is worth")); err != nil {
		return err
	}
	return au.s.each(ctx, `SELECT e.shard, e.epoch, e.seq FROM entries e
		LEFT JOIN claims c ON c.campaign = e.campaign AND c.shard = e.shard AND c.epoch = e.epoch AND c.seq = e.seq
		WHERE e.campaign = ? AND e.what = 'credit' AND c.campaign IS NULL LIMIT ?`,
		[]any{au.c.Number, maxBad}, bad("there is a credit for the claim %s, which does not exist"))
}

// findBadBalances compares the accounts of the red packet's currency with their
// entries, and their sum with zero.
func (au *auditor) findBadBalances(ctx context.Context, p *dibs.PacketAudit) error {
	// One pass over the entries: an index by owner is not there for all kinds.
	if err := au.s.each(ctx, `SELECT s.kind, s.owner, COALESCE(a.balance, 0), s.entries FROM (
			SELECT kind, owner, currency, SUM(amount) AS entries FROM entries WHERE currency = ? GROUP BY kind, owner, currency) s
		LEFT JOIN accounts a ON a.kind = s.kind AND a.owner = s.owner AND a.currency = s.currency
		WHERE COALESCE(a.balance, 0) <> s.entries LIMIT ?`, []any{p.Currency, maxBad}, func(rows *sql.Rows) error {
		var kind, owner string
		var balance, entries int64
		if err := rows.Scan(&kind, &owner, &balance, &entries); err != nil {
			return err
		}
		badMoney(p, "the account %s %s has %d, its entries sum to %d", kind, owner, balance, entries)
		return nil
	}); err != nil {
		return err
	}
	var sum int64
	if err := au.s.row(ctx, `SELECT COALESCE(SUM(balance), 0) FROM accounts WHERE currency = ?`, []any{p.Currency}, &sum); err != nil {
		return err
	}
	if sum != 0 {
		badMoney(p, "all accounts in %s sum to %d", p.Currency, sum)
	}
	return nil
}
