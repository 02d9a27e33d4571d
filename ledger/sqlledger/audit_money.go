package sqlledger

import (
	"context"
	"database/sql"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/funds"
)

// countMoney counts the money of a red packet afresh, by its shares and by the
// entries of its transfers. It is nothing for other kinds. Rows that contradict
// each other are a text in p.Bad; the error is for rows that cannot be read.
func (au *auditor) countMoney(ctx context.Context) error {
	if au.c.Packet == nil {
		return nil
	}
	p := &funds.PacketAudit{Total: au.c.Packet.Total.Amount}
	p.Currency = au.c.Packet.Total.Currency
	au.a.Packet = p
	return inTurn(ctx, au.countShares, au.sumTransfers, au.findBadPairs, au.findBadCredits)
}

// badMoney adds a contradiction to the audit.
func badMoney(p *funds.PacketAudit, format string, args ...any) { addBad(&p.Bad, format, args...) }

// countShares adds the shares up. Users are shown a share's value, and credited
// with its amount: both have to be the same. Withdrawn shares count too: they
// are what goes back to the sender in the end.
func (au *auditor) countShares(ctx context.Context) error {
	spec, p := au.c.Packet, au.a.Packet
	err := au.s.Each(ctx, `SELECT n, value, amount FROM items WHERE campaign = ? ORDER BY n`, []any{au.c.Number}, func(rows *sql.Rows) error {
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

// sumTransfers adds the entries up, and compares the red packet's row and its
// escrow with them. Of each transfer only the side that gets is added, since
// the other one has the same amount with another sign, which findBadPairs
// checks.
func (au *auditor) sumTransfers(ctx context.Context) error {
	p := au.a.Packet
	if err := au.s.Each(ctx, `SELECT what, SUM(amount) FROM entries WHERE campaign = ? AND side = 1 GROUP BY what`,
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
	var funded, sumCredited, sumReturned int64
	if err := au.s.Row(ctx, `SELECT funded_at, returned_at, credited, returned FROM packets WHERE campaign = ?`, []any{au.c.Number},
		&funded, optionalMS(&p.ReturnedAt), &sumCredited, &sumReturned); err != nil {
		return err
	}
	if err := au.s.Row(ctx, `SELECT COALESCE(SUM(balance), 0) FROM accounts WHERE kind = 'escrow' AND owner = ? AND currency = ?`,
		[]any{au.c.ID, p.Currency}, &p.Escrow); err != nil {
		return err
	}
	// The row's sums are what the console shows, and what giving back relies
	// on.
	if sumCredited != p.Credited || sumReturned != p.Returned {
		badMoney(p, "the red packet's row has %d credited and %d returned, the entries %d and %d", sumCredited, sumReturned, p.Credited, p.Returned)
	}
	// A draft has no money. Publishing moves all of it, in the same
	// transaction.
	if published := au.c.State != dibs.Draft; published != (funded > 0) || published && p.Funded != p.Total || !published && p.Funded != 0 {
		badMoney(p, "it is %s, and %d of %d were paid for it", au.c.State, p.Funded, p.Total)
	}
	if !p.ReturnedAt.IsZero() && p.Escrow != 0 {
		badMoney(p, "it is closed with %d in escrow", p.Escrow)
	}
	return nil
}

// findBadPairs finds transfers that are not two entries that sum to zero. A
// transfer is named by the same key on both sides, but for the side itself.
func (au *auditor) findBadPairs(ctx context.Context) error {
	return au.s.Each(ctx, `SELECT shard, epoch, seq, what, COUNT(*), SUM(amount) FROM entries WHERE campaign = ?
		GROUP BY shard, epoch, seq, what, ref HAVING COUNT(*) <> 2 OR SUM(amount) <> 0 LIMIT ?`, []any{au.c.Number, maxBad},
		func(rows *sql.Rows) error {
			at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
			var what string
			var n, sum int64
			if err := rows.Scan(&at.Shard, &at.Epoch, &at.Seq, &what, &n, &sum); err != nil {
				return err
			}
			badMoney(au.a.Packet, "the %s of %s has %d entries that sum to %d", what, at, n, sum)
			return nil
		})
}

// creditsChecked is how many claims are compared with their credits at a time.
const creditsChecked = 20_000

// findBadCredits finds claims up to the credited positions that were not
// credited with their shares' worth, and credits of no claim.
func (au *auditor) findBadCredits(ctx context.Context) error {
	p := au.a.Packet
	credited, err := sqldb.List(ctx, au.s, `SELECT shard, epoch, seq FROM packet_positions WHERE campaign = ? ORDER BY shard`, []any{au.c.Number},
		func(rows *sql.Rows, to *dibs.Position) error {
			to.Campaign = au.c.Number
			return rows.Scan(&to.Shard, &to.Epoch, &to.Seq)
		})
	if err != nil {
		return err
	}
	// Claims of a shard without a position would never be credited.
	if len(credited) != len(au.shards) {
		badMoney(p, "%d of its %d shards have a position up to which they are credited", len(credited), len(au.shards))
	}
	if err := au.s.Row(ctx, `SELECT COUNT(*) FROM packet_positions k JOIN claims c ON c.campaign = k.campaign AND c.shard = k.shard
		AND (c.epoch, c.seq) > (k.epoch, k.seq) WHERE k.campaign = ?`, []any{au.c.Number}, &p.Waiting); err != nil {
		return err
	}
	all, err := sqldb.Get[int64](ctx, au.s, `SELECT COUNT(*) FROM entries WHERE campaign = ? AND what = 'credit' AND side = 1`, au.c.Number)
	if err != nil {
		return err
	}
	known := int64(0)
	for _, to := range credited {
		n, err := au.compareCredits(ctx, to)
		if err != nil {
			return err
		}
		known += n
	}
	// Each credit of a claim was found beside its claim. More credits than that
	// belong to no claim.
	if known != all {
		badMoney(p, "%d credits are of claims that do not exist, or have not been credited yet", all-known)
	}
	return nil
}

// compareCredits compares the claims of a shard with their credits, up to a
// position, and returns how many credits it found. It reads ranges of positions
// and joins nothing: a planner whose statistics lack rows that have just been
// written would read all credits for each claim.
func (au *auditor) compareCredits(ctx context.Context, to dibs.Position) (known int64, err error) {
	// Both lists are of the same range of positions, so that each holds few
	// rows at a time however large the red packet is.
	for from := (dibs.Cursor{}); from.Before(to.Cursor); {
		claims, err := claimsAfter(ctx, au.s, to.ShardID, from, to.Cursor, creditsChecked)
		if err != nil {
			return 0, err
		}
		last := to.Cursor
		if len(claims) == creditsChecked {
			last = claims[len(claims)-1].Cursor
		}
		credits, err := creditsAfter(ctx, au.s, to.ShardID, from, last)
		if err != nil {
			return 0, err
		}
		for i := range claims {
			c := &claims[i]
			got := credits[c.Cursor]
			if got.user != "" {
				known++
			}
			if c.amount == 0 || got.user != c.user || got.amount != c.amount {
				badMoney(au.a.Packet, "the claim %s was not credited with what its share is worth", c.Position)
			}
		}
		from = last
	}
	return known, nil
}

// creditsAfter reads the credits of the claims of a red packet's shard after one
// position and up to another. Of each credit it reads the side of the user. The
// map has an entry for each position that has a credit.
func creditsAfter(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, from, to dibs.Cursor) (map[dibs.Cursor]credit, error) {
	found := make(map[dibs.Cursor]credit)
	err := eachEpoch(from, to, func(epoch uint16, after, last uint32) error {
		return s.Each(ctx, `SELECT seq, owner, amount FROM entries WHERE campaign = ? AND shard = ? AND epoch = ? AND seq > ? AND seq <= ?
			AND what = 'credit' AND ref = '' AND side = 1 AND kind = 'user'`, []any{shard.Campaign, shard.Shard, epoch, after, last}, func(rows *sql.Rows) error {
			c := credit{Position: dibs.Position{ShardID: shard, Cursor: dibs.Cursor{Epoch: epoch}}}
			err := rows.Scan(&c.Seq, &c.user, &c.amount)
			found[c.Cursor] = c
			return err
		})
	})
	return found, err
}

// AuditAccounts compares all accounts of a currency with their entries, and
// their sum with zero. It returns what does not fit, at most ten, in words.
func (ad *Audits) AuditAccounts(ctx context.Context, currency string) ([]string, error) {
	op := "audit the accounts in " + currency
	return sqldb.Result(sqldb.Long(ctx, sqldb.AuditStatement), ad.db.Snapshot, op, func(s *sqldb.Session) (bad []string, err error) {
		// One pass over the entries: there is no index by owner for all kinds
		// of accounts.
		if err := s.Each(ctx, `SELECT s.kind, s.owner, COALESCE(a.balance, 0), s.entries FROM (
				SELECT kind, owner, currency, SUM(amount) AS entries FROM entries WHERE currency = ? GROUP BY kind, owner, currency) s
			LEFT JOIN accounts a ON a.kind = s.kind AND a.owner = s.owner AND a.currency = s.currency
			WHERE COALESCE(a.balance, 0) <> s.entries LIMIT ?`, []any{currency, maxBad}, func(rows *sql.Rows) error {
			var kind, owner string
			var balance, entries int64
			if err := rows.Scan(&kind, &owner, &balance, &entries); err != nil {
				return err
			}
			addBad(&bad, "the account %s %s has %d, its entries sum to %d", kind, owner, balance, entries)
			return nil
		}); err != nil {
			return nil, err
		}
		// Money comes from the outside and the platform, whose balances are
		// negative by as much as all others have.
		sum, err := sqldb.Get[int64](ctx, s, `SELECT COALESCE(SUM(balance), 0) FROM accounts WHERE currency = ?`, currency)
		if sum != 0 {
			addBad(&bad, "all accounts in %s sum to %d", currency, sum)
		}
		return bad, err
	})
}
