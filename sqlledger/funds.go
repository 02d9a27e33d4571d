package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// addToExcluded is addBalance in the words of SQLite and PostgreSQL.
const addToExcluded = " ON CONFLICT (kind, owner, currency) DO UPDATE SET balance = accounts.balance + excluded.balance"

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// transfer is money that moves from one account to another.
type transfer struct {
	// campaign, at and ref name it; at is a claim's place, zero for none.
	campaign uint32
	at       dibs.Cursor
	what     funds.TransferKind
	ref      string
	from, to account
	currency string
	amount   int64
}

// account names an account of some currency.
type account struct {
	kind  funds.AccountKind
	owner string
}

// entryColumns are what entries returns.
const entryColumns = `campaign, shard, epoch, seq, what, ref, side, kind, owner, currency, amount, at`

// entries are the arguments of the transfer's two rows.
func (t *transfer) entries(dst []any, at time.Time) []any {
	for side, a := range []account{t.from, t.to} {
		amount := t.amount
		if side == 0 {
			amount = -amount
		}
		dst = append(dst, int64(t.campaign), int64(0), int64(t.at.Epoch), int64(t.at.Seq), string(t.what), t.ref,
			int64(side), string(a.kind), a.owner, t.currency, amount, at.UnixMilli())
	}
	return dst
}

// write writes both entries of a single transfer.
func (t *transfer) write(ctx context.Context, s *session, at time.Time) error {
	return insertRows(ctx, s, `INSERT INTO entries (`+entryColumns+`) VALUES `, t.entries(nil, at), 12)
}

// addTo adds to a balance, and makes the account when there is none. Accounts
// are changed in the order of their kinds and owners, so that no two transactions
// wait for each other: escrow, outside, platform, users.
func addTo(ctx context.Context, s *session, a account, currency string, amount int64) error {
	_, err := s.exec(ctx, `INSERT INTO accounts (kind, owner, currency, balance) VALUES (?,?,?,?)`+s.d.addBalance,
		string(a.kind), a.owner, currency, amount)
	return err
}

// takeFrom takes from a balance; false when there is less.
func takeFrom(ctx context.Context, s *session, a account, currency string, amount int64) (bool, error) {
	n, err := s.exec(ctx, `UPDATE accounts SET balance = balance - ? WHERE kind = ? AND owner = ? AND currency = ? AND balance >= ?`,
		amount, string(a.kind), a.owner, currency, amount)
	return n == 1, err
}

// Deposit implements dibs.Funds.
func (l *Ledger) Deposit(ctx context.Context, d *funds.Deposit) (replayed bool, err error) {
	t := transfer{
		what: funds.TransferDeposit, ref: d.Ref, from: account{kind: funds.OutsideAccount}, to: account{funds.UserAccount, d.UserID},
		currency: d.Amount.Currency, amount: d.Amount.Amount,
	}
	err = l.write(ctx, "deposit", func(s *session) error {
		args := t.entries(nil, d.At)
		n, err := s.insertNew(ctx, `INSERT INTO entries (`+entryColumns+`) VALUES (`+repeat("?", 12)+`)`, args[12:]...)
		if err != nil {
			return err
		}
		if replayed = n == 0; replayed {
			return sameDeposit(ctx, s, d)
		}
		if _, err := s.exec(ctx, `INSERT INTO entries (`+entryColumns+`) VALUES (`+repeat("?", 12)+`)`, args[:12]...); err != nil {
			return err
		}
		if err := l.bringIn(ctx, s, t.from.kind, t.currency, t.amount); err != nil {
			return err
		}
		return addTo(ctx, s, t.to, t.currency, t.amount)
	})
	return replayed && err == nil, err
}

// bringIn takes an amount from where money comes from, the outside or the
// platform. What both have given, less what came back to them, is all that there
// is: as long as it stays below dibs.MaxMinor, no account can be full, and
// nothing that is owed to anybody, a share or a remainder, can fail for it.
func (l *Ledger) bringIn(ctx context.Context, s *session, from funds.AccountKind, currency string, amount int64) error {
	all := int64(0)
	for _, kind := range []funds.AccountKind{funds.OutsideAccount, funds.PlatformAccount} {
		given := int64(0)
		if kind == from {
			given = amount
		}
		// Both rows are kept until the end, whether or not there is something to
		// add: nobody brings in more meanwhile.
		err := addTo(ctx, s, account{kind: kind}, currency, -given)
		if err != nil && l.d.classify(err) == faultConstraint {
			return tooMuchMoney
		}
		var balance int64
		if err == nil {
			err = s.row(ctx, `SELECT balance FROM accounts WHERE kind = ? AND owner = '' AND currency = ?`, []any{string(kind), currency}, &balance)
		}
		if err != nil {
			return err
		}
		all -= balance
	}
	if all >= dibs.MaxMinor {
		return tooMuchMoney
	}
	return nil
}

var tooMuchMoney = dibs.Invalid(dibs.Fault{Field: "/amount/amount", Problem: dibs.Textf(
	"would bring all money of the currency to %d or beyond", "将使该币种的资金总额达到或超过 %d", dibs.MaxMinor)})

// sameDeposit returns an error when the ref is another deposit's.
func sameDeposit(ctx context.Context, s *session, d *funds.Deposit) error {
	var user, currency string
	var amount int64
	err := s.row(ctx, `SELECT owner, currency, amount FROM entries WHERE campaign = 0 AND shard = 0 AND epoch = 0 AND seq = 0
		AND what = ? AND ref = ? AND side = 1`, []any{string(funds.TransferDeposit), d.Ref}, &user, &currency, &amount)
	if err == nil && (user != d.UserID || currency != d.Amount.Currency || amount != d.Amount.Amount) {
		err = dibs.Fail(dibs.AlreadyExists, dibs.Text{
			EN: "Another deposit has this ref: another user's, or of another amount", ZH: "该 ref 已用于另一笔充值（用户或金额不同）",
		})
	}
	return err
}

// Balances implements dibs.Funds.
func (l *Ledger) Balances(ctx context.Context, user string) ([]dibs.Money, error) {
	balances := []dibs.Money{}
	err := l.read(ctx, "read balances", func(s *session) error {
		return s.each(ctx, `SELECT balance, currency FROM accounts WHERE kind = 'user' AND owner = ? ORDER BY currency`,
			[]any{user}, func(rows *sql.Rows) error {
				balances = append(balances, dibs.Money{})
				last := &balances[len(balances)-1]
				return rows.Scan(&last.Amount, &last.Currency)
			})
	})
	return balances, err
}

// postingCursor is where a page of postings ended.
type postingCursor struct {
	At       int64              `json:"t"`
	Campaign uint32             `json:"c"`
	Epoch    uint16             `json:"e"`
	Seq      uint32             `json:"q"`
	What     funds.TransferKind `json:"w"`
	Ref      string             `json:"r"`
}

// Postings implements dibs.Funds.
func (l *Ledger) Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[funds.Posting], error) {
	var none dibs.List[funds.Posting]
	after := postingCursor{At: math.MaxInt64}
	if _, err := readCursor(page, &after); err != nil {
		return none, err
	}
	limit := limitOf(page)
	where, args := l.d.compare([]string{"e.at", "e.campaign", "e.epoch", "e.seq", "e.what", "e.ref"}, "<",
		after.At, min(after.Campaign, dibs.MaxCampaignNumber+1), min(after.Epoch, dibs.MaxEpoch+1), after.Seq, string(after.What), after.Ref)
	args = append([]any{user}, append(args, limit+1)...)
	var found []funds.Posting
	err := l.read(ctx, "list postings", func(s *session) error {
		return s.each(ctx, `SELECT e.campaign, e.shard, e.epoch, e.seq, e.what, e.ref, e.currency, e.amount, e.at, COALESCE(c.id, '')
			FROM entries e LEFT JOIN campaigns c ON c.number = e.campaign WHERE e.owner = ? AND e.kind = 'user' AND `+where+`
			ORDER BY e.at DESC, e.campaign DESC, e.epoch DESC, e.seq DESC, e.what DESC, e.ref DESC LIMIT ?`, args, func(rows *sql.Rows) error {
			var p funds.Posting
			var at int64
			err := rows.Scan(&p.Claim.Campaign, &p.Claim.Shard, &p.Claim.Epoch, &p.Claim.Seq, &p.Kind, &p.Ref, &p.Currency, &p.Amount, &at, &p.CampaignID)
			p.At = fromMS(at)
			found = append(found, p)
			return err
		})
	})
	if err != nil {
		return none, err
	}
	return cut(found, limit, func(p *funds.Posting) any {
		return postingCursor{p.At.UnixMilli(), p.Claim.Campaign, p.Claim.Epoch, p.Claim.Seq, p.Kind, p.Ref}
	})
}
