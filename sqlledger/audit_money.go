package sqlledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// countMoney counts the money of a red packet afresh, by its shares and by the
// entries of its transfers.
func (au *auditor) countMoney(ctx context.Context) error {
	if au.c.Packet == nil {
		return nil
	}
	p := &funds.PacketAudit{Total: au.c.Packet.Total.Amount}
	p.Currency = au.c.Packet.Total.Currency
	au.a.Packet = p
	for _, step := range []func(context.Context, *funds.PacketAudit) error{
		au.countShares, au.sumTransfers, au.findBadPairs, au.findBadCredits,
	} {
		if err := step(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// badMoney notes what does not fit.
func badMoney(p *funds.PacketAudit, format string, args ...any) {
	if len(p.Bad) < maxBad {
		p.Bad = append(p.Bad, fmt.Sprintf(format, args...))
	}
}

// countShares adds the shares up. What is given out is a share's value; what is
// credited is its amount.
func (au *auditor) countShares(ctx context.Context, p *funds.PacketAudit) error {
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
func (au *auditor) sumTransfers(ctx context.Context, p *funds.PacketAudit) error {
	if err := au.s.each(ctx, `SELECT what, SUM(amount) FROM entries WHERE campaign = ? AND side = 1 GROUP BY what`,
		[]any{au.c.Number}, func(rows *sql.Rows) error {
			var what funds.TransferKind
			var sum int64
			if err := rows.Scan(&what, &sum); err != nil {
				return err
			}
			switch what {
			case funds.TransferFund:
				p.Funded = sum
			case funds.TransferCredit:
				p.Credited = sum
			case funds.TransferReturn:
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
func (au *auditor) findBadPairs(ctx context.Context, p *funds.PacketAudit) error {
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

// creditsChecked is how many claims are compared with their credits at a time.
const creditsChecked = 20_000

// findBadCredits finds claims up to the credited place that were not credited
// with their shares' worth, and credits of no claim. It goes by ranges of places
// and joins nothing: rows that have just been written are unknown to a planner,
// which then reads all credits for each claim.
func (au *auditor) findBadCredits(ctx context.Context, p *funds.PacketAudit) error {
	var to dibs.Cursor
	if err := au.s.row(ctx, `SELECT credit_epoch, credit_seq FROM packets WHERE campaign = ?`, []any{au.c.Number}, &to.Epoch, &to.Seq); err != nil {
		return err
	}
	if err := au.s.row(ctx, `SELECT COUNT(*) FROM packets p JOIN claims c ON c.campaign = p.campaign
		AND (c.epoch, c.seq) > (p.credit_epoch, p.credit_seq) WHERE p.campaign = ?`, []any{au.c.Number}, &p.Waiting); err != nil {
		return err
	}
	var all, known int64
	if err := au.s.row(ctx, `SELECT COUNT(*) FROM entries WHERE campaign = ? AND what = 'credit' AND side = 1`, []any{au.c.Number}, &all); err != nil {
		return err
	}
	for from := (dibs.Cursor{}); from.Before(to); {
		claims, err := claimsAfter(ctx, au.s, au.c.Number, from, to, creditsChecked)
		if err != nil {
			return err
		}
		last := to
		if len(claims) == creditsChecked {
			last = claims[len(claims)-1].Cursor
		}
		credits, err := creditsAfter(ctx, au.s, au.c.Number, from, last)
		if err != nil {
			return err
		}
		for i := range claims {
			c := &claims[i]
			got := credits[c.Cursor]
			if got.user != "" {
				known++
			}
			if c.amount == 0 || got.user != c.user || got.amount != c.amount {
				badMoney(p, "the claim %s was not credited with what its share is worth",
					dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}, Cursor: c.Cursor})
			}
		}
		from = last
	}
	if known != all {
		badMoney(p, "%d credits are of claims that do not exist, or have not been credited yet", all-known)
	}
	return nil
}

// creditsAfter are the credits of a red packet's claims after a place, up to
// another.
func creditsAfter(ctx context.Context, s *session, campaign uint32, from, to dibs.Cursor) (map[dibs.Cursor]credit, error) {
	found := make(map[dibs.Cursor]credit)
	err := eachEpoch(from, to, func(epoch uint16, after, last uint32) error {
		return s.each(ctx, `SELECT seq, owner, amount FROM entries WHERE campaign = ? AND shard = 0 AND epoch = ? AND seq > ? AND seq <= ?
			AND what = 'credit' AND ref = '' AND side = 1 AND kind = 'user'`, []any{campaign, epoch, after, last}, func(rows *sql.Rows) error {
			c := credit{Cursor: dibs.Cursor{Epoch: epoch}}
			err := rows.Scan(&c.Seq, &c.user, &c.amount)
			found[c.Cursor] = c
			return err
		})
	})
	return found, err
}

// AuditAccounts implements dibs.Funds.
func (l *Ledger) AuditAccounts(ctx context.Context, currency string) (bad []string, err error) {
	err = l.snapshot(long(ctx, auditStatement), "audit the accounts in "+currency, func(s *session) error {
		bad = nil
		// One pass over the entries: an index by owner is not there for all kinds.
		if err := s.each(ctx, `SELECT s.kind, s.owner, COALESCE(a.balance, 0), s.entries FROM (
				SELECT kind, owner, currency, SUM(amount) AS entries FROM entries WHERE currency = ? GROUP BY kind, owner, currency) s
			LEFT JOIN accounts a ON a.kind = s.kind AND a.owner = s.owner AND a.currency = s.currency
			WHERE COALESCE(a.balance, 0) <> s.entries LIMIT ?`, []any{currency, maxBad}, func(rows *sql.Rows) error {
			var kind, owner string
			var balance, entries int64
			if err := rows.Scan(&kind, &owner, &balance, &entries); err != nil {
				return err
			}
			bad = append(bad, fmt.Sprintf("the account %s %s has %d, its entries sum to %d", kind, owner, balance, entries))
			return nil
		}); err != nil {
			return err
		}
		var sum int64
		if err := s.row(ctx, `SELECT COALESCE(SUM(balance), 0) FROM accounts WHERE currency = ?`, []any{currency}, &sum); err != nil {
			return err
		}
		if sum != 0 && len(bad) < maxBad {
			bad = append(bad, fmt.Sprintf("all accounts in %s sum to %d", currency, sum))
		}
		return nil
	})
	return bad, err
}
