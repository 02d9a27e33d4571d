package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// Funds keeps the money: accounts, the transfers between them, and red packets.
//
// A transfer is two entries that sum to zero; neither ever changes. A balance
// is the sum of its account's entries. Balances are changed in the order of
// their kinds and owners (escrow, outside, platform, users), so that no two
// transactions wait for each other. packet_positions says of each shard of a red
// packet how far its claims are credited. These positions move by compare-and-set
// in the transaction that writes the credits, under the lock of the red packet's
// row, and settling never locks either.
type Funds struct{ db *sqldb.DB }

// transfer is money that moves from one account to another.
type transfer struct {
	// at, what and ref name it. at is a claim's position, or has the campaign
	// alone; it is zero for a deposit.
	at       dibs.Position
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

// postingColumns are those of the rows that entries returns. campaign to ref
// are the transfer's key, with side, which is 0 for the account that gives and
// 1 for the one that gets; amount is negative on side 0.
const postingColumns = `campaign, shard, epoch, seq, what, ref, side, kind, owner, currency, amount, at`

// entries are the arguments of the transfer's two rows.
func (t *transfer) entries(dst []any, at time.Time) []any {
	for side, a := range []account{t.from, t.to} {
		amount := t.amount
		if side == 0 {
			amount = -amount
		}
		dst = append(dst, int64(t.at.Campaign), int64(t.at.Shard), int64(t.at.Epoch), int64(t.at.Seq), string(t.what), t.ref,
			int64(side), string(a.kind), a.owner, t.currency, amount, at.UnixMilli())
	}
	return dst
}

// ofCampaign names a transfer of a campaign that is about no claim.
func ofCampaign(c *dibs.Campaign) dibs.Position {
	return dibs.Position{ShardID: dibs.ShardID{Campaign: c.Number}}
}

// insertPostings writes entries of transfers.
func insertPostings(ctx context.Context, s *sqldb.Session, entries []any) error {
	return s.InsertRows(ctx, `INSERT INTO entries (`+postingColumns+`) VALUES `, entries, 12)
}

// addTo adds to a balance, and makes the account when there is none.
func addTo(ctx context.Context, s *sqldb.Session, a account, currency string, amount int64) error {
	return s.Do(ctx, `INSERT INTO accounts (kind, owner, currency, balance) VALUES (?,?,?,?)`+formsFor(s).addBalance,
		string(a.kind), a.owner, currency, amount)
}

// takeFrom takes from a balance. When there is less the error is tooLittle, and
// nothing is changed.
func takeFrom(ctx context.Context, s *sqldb.Session, tooLittle error, a account, currency string, amount int64) error {
	return s.DoOne(ctx, tooLittle, `UPDATE accounts SET balance = balance - ?
		WHERE kind = ? AND owner = ? AND currency = ? AND balance >= ?`, amount, string(a.kind), a.owner, currency, amount)
}

// Deposit credits a user from outside, once by its ref; replayed says that it
// was done before. ErrAlreadyExists when the ref is another deposit's; an
// *Error of InvalidRequest when all money of the currency would reach
// dibs.MaxMinor.
func (fu *Funds) Deposit(ctx context.Context, d *funds.Deposit) (replayed bool, err error) {
	t := transfer{
		what: funds.TransferDeposit, ref: d.Ref, from: account{kind: funds.OutsideAccount}, to: account{funds.UserAccount, d.UserID},
		currency: d.Amount.Currency, amount: d.Amount.Amount,
	}
	err = fu.db.Write(ctx, "deposit", func(s *sqldb.Session) error {
		// The user's entry comes first: its key, with the ref, tells a repeat.
		args := t.entries(nil, d.At)
		n, err := s.InsertNew(ctx, `INSERT INTO entries (`+postingColumns+`) VALUES (`+sqldb.Repeat("?", 12)+`)`, args[12:]...)
		if err != nil {
			return err
		}
		if replayed = n == 0; replayed {
			return sameDeposit(ctx, s, d)
		}
		if err := insertPostings(ctx, s, args[:12]); err != nil {
			return err
		}
		if err := bringIn(ctx, s, t.from.kind, t.currency, t.amount); err != nil {
			return err
		}
		return addTo(ctx, s, t.to, t.currency, t.amount)
	})
	return replayed && err == nil, err
}

// bringIn takes an amount from one of the accounts that money comes from, the
// outside's or the platform's. All money of the currency is what both have given,
// less what came back to them. As long as it stays below dibs.MaxMinor,
// no account can overflow, and no transfer that is owed to a user, a share or a
// remainder, can fail for it.
func bringIn(ctx context.Context, s *sqldb.Session, from funds.AccountKind, currency string, amount int64) error {
	all := int64(0)
	for _, kind := range []funds.AccountKind{funds.OutsideAccount, funds.PlatformAccount} {
		given := int64(0)
		if kind == from {
			given = amount
		}
		// Both rows are locked until the end, whether or not there is something
		// to add: no other transaction brings in more meanwhile.
		err := addTo(ctx, s, account{kind: kind}, currency, -given)
		if err != nil && s.Fault(err) == sqldb.FaultConstraint {
			return errTooMuchMoney
		}
		if err != nil {
			return err
		}
		balance, err := sqldb.Get[int64](ctx, s, `SELECT balance FROM accounts WHERE kind = ? AND owner = '' AND currency = ?`, string(kind), currency)
		if err != nil {
			return err
		}
		all -= balance
	}
	if all >= dibs.MaxMinor {
		return errTooMuchMoney
	}
	return nil
}

var errTooMuchMoney = dibs.Invalid(dibs.Fault{Field: "/amount/amount", Problem: dibs.Textf(
	"would bring all money of the currency to %d or beyond", "将使该币种的资金总额达到或超过 %d", dibs.MaxMinor)})

// sameDeposit returns an error when the ref is another deposit's. A repeat must
// name the same user and the same amount.
func sameDeposit(ctx context.Context, s *sqldb.Session, d *funds.Deposit) error {
	var user, currency string
	var amount int64
	err := s.Row(ctx, `SELECT owner, currency, amount FROM entries WHERE campaign = 0 AND shard = 0 AND epoch = 0 AND seq = 0
		AND what = ? AND ref = ? AND side = 1`, []any{string(funds.TransferDeposit), d.Ref}, &user, &currency, &amount)
	if err == nil && (user != d.UserID || currency != d.Amount.Currency || amount != d.Amount.Amount) {
		err = dibs.Fail(dibs.AlreadyExists, dibs.Text{
			EN: "another deposit has this ref: another user's, or of another amount", ZH: "该 ref 已用于另一笔充值（用户或金额不同）",
		})
	}
	return err
}

// Balances returns what a user has, by currency.
func (fu *Funds) Balances(ctx context.Context, user string) (balances []dibs.Money, err error) {
	return sqldb.Result(ctx, fu.db.Read, "read balances", func(s *sqldb.Session) ([]dibs.Money, error) {
		return readBalances(ctx, s, user, "")
	})
}

// readBalances reads a user's balances; the list is empty, not nil, when there
// are none. lock is ForUpdate, or empty.
func readBalances(ctx context.Context, s *sqldb.Session, user, lock string) ([]dibs.Money, error) {
	found, err := sqldb.List(ctx, s, `SELECT balance, currency FROM accounts WHERE kind = 'user' AND owner = ? ORDER BY currency`+lock,
		[]any{user}, func(rows *sql.Rows, m *dibs.Money) error { return rows.Scan(&m.Amount, &m.Currency) })
	return append([]dibs.Money{}, found...), err
}

// postingCursor is where a page of postings ended.
type postingCursor struct {
	At       int64              `json:"t"`
	Campaign uint32             `json:"c"`
	Shard    uint8              `json:"s"`
	Epoch    uint16             `json:"e"`
	Seq      uint32             `json:"q"`
	What     funds.TransferKind `json:"w"`
	Ref      string             `json:"r"`
}

// Postings lists a user's entries, the newest first.
func (fu *Funds) Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[funds.Posting], error) {
	return readPage(ctx, fu.db, "list postings", page, postingCursor{At: math.MaxInt64}, func(after postingCursor) query {
		// The order is that of the index by owner and time; what follows the time
		// makes it unique.
		where, args := fu.db.Compare([]string{"e.at", "e.campaign", "e.shard", "e.epoch", "e.seq", "e.what", "e.ref"}, "<",
			after.At, min(after.Campaign, dibs.MaxCampaignNumber+1), after.Shard, min(after.Epoch, dibs.MaxEpoch+1), after.Seq, string(after.What), after.Ref)
		return query{`SELECT e.campaign, e.shard, e.epoch, e.seq, e.what, e.ref, e.currency, e.amount, e.at, COALESCE(c.id, '')
			FROM entries e LEFT JOIN campaigns c ON c.number = e.campaign WHERE e.owner = ? AND e.kind = 'user' AND ` + where + `
			ORDER BY e.at DESC, e.campaign DESC, e.shard DESC, e.epoch DESC, e.seq DESC, e.what DESC, e.ref DESC LIMIT ?`, append([]any{user}, args...)}
	}, scanPosting, func(p *funds.Posting) postingCursor {
		return postingCursor{p.At.UnixMilli(), p.Claim.Campaign, p.Claim.Shard, p.Claim.Epoch, p.Claim.Seq, p.Kind, p.Ref}
	})
}

// scanPosting reads an entry and the id of its campaign, empty for none.
func scanPosting(rows *sql.Rows, p *funds.Posting) error {
	return rows.Scan(&p.Claim.Campaign, &p.Claim.Shard, &p.Claim.Epoch, &p.Claim.Seq, &p.Kind, &p.Ref, &p.Currency, &p.Amount, ms(&p.At), &p.CampaignID)
}

// sender is the account that a red packet is paid from.
func sender(c *dibs.Campaign) account {
	if c.SenderID == "" {
		return account{kind: funds.PlatformAccount}
	}
	return account{funds.UserAccount, c.SenderID}
}

// escrow is the account that holds a red packet's money.
func escrow(c *dibs.Campaign) account { return account{funds.EscrowAccount, c.ID} }

// FundCampaign is UpdateCampaign for a red packet that is being published: in
// the same transaction its total moves from the sender, or the platform, into
// escrow. An *Error of InsufficientFunds, and no change, when the sender has
// less; of InvalidRequest as in Deposit.
func (fu *Funds) FundCampaign(ctx context.Context, c *dibs.Campaign) error {
	if c.Packet == nil {
		return fmt.Errorf("sqlledger: fund campaign %s: it is no red packet", c.ID)
	}
	return updateCampaign(ctx, fu.db, "fund campaign", c, func(s *sqldb.Session) error { return fund(ctx, s, c) })
}

// fund moves a red packet's total into escrow. It runs in the transaction that
// publishes the campaign. The red packet's row tells whether it was funded, so
// that a second publication fails.
func fund(ctx context.Context, s *sqldb.Session, c *dibs.Campaign) error {
	total := c.Packet.Total
	twice := fmt.Errorf("%w: the draft of red packet %s has been funded before", dibs.ErrCorrupt, c.ID)
	if err := s.DoOne(ctx, twice, `UPDATE packets SET funded_at = ? WHERE campaign = ? AND funded_at = 0`, c.UpdatedAt.UnixMilli(), c.Number); err != nil {
		return err
	}
	// Escrow comes before the platform and users, in the order of accounts.
	t := transfer{
		at: ofCampaign(c), what: funds.TransferFund, from: sender(c), to: escrow(c), currency: total.Currency, amount: total.Amount,
	}
	if err := insertPostings(ctx, s, t.entries(nil, c.UpdatedAt)); err != nil {
		return err
	}
	if err := addTo(ctx, s, t.to, t.currency, t.amount); err != nil {
		return err
	}
	if t.from.kind == funds.PlatformAccount {
		return bringIn(ctx, s, t.from.kind, t.currency, t.amount)
	}
	tooLittle := dibs.Fail(dibs.InsufficientFunds, dibs.Textf(
		"user %[1]s has less than the %[2]s %[3]s that the red packet takes: deposit the rest first",
		"用户 %[1]s 的余额不足以支付红包总额 %[2]s %[3]s，请先充值", c.SenderID, total.Digits(), total.Currency))
	return takeFrom(ctx, s, tooLittle, t.from, t.currency, t.amount)
}

// uncredited counts the shards of a red packet, a row of packets, that are settled
// further than their claims are credited.
const uncredited = `(SELECT COUNT(*) FROM packet_positions k JOIN positions p ON p.campaign = k.campaign AND p.shard = k.shard
	WHERE k.campaign = packets.campaign AND (k.epoch, k.seq) < (p.pos_epoch, p.pos_seq))`

// OpenPackets lists the red packets that are funded and not closed.
func (fu *Funds) OpenPackets(ctx context.Context) ([]*funds.OpenPacket, error) {
	return sqldb.ReadList(ctx, fu.db, "list open red packets", `SELECT `+uncredited+`, campaigns.stock_left, `+campaignColumns+`
			FROM campaigns JOIN packets ON packets.campaign = campaigns.number
			WHERE returned_at = 0 AND funded_at > 0 ORDER BY number`, nil, func(rows *sql.Rows, found **funds.OpenPacket) error {
		var behind int
		p := &funds.OpenPacket{Campaign: new(dibs.Campaign)}
		*found = p
		err := scanCampaignAfter(rows, p.Campaign, &behind, &p.Left)
		p.Behind = behind > 0
		return err
	})
}

// PacketFunds returns where a red packet's money is. ErrNotFound.
func (fu *Funds) PacketFunds(ctx context.Context, campaign uint32) (funds.PacketFunds, error) {
	var f funds.PacketFunds
	err := fu.db.ReadRow(ctx, "read a red packet's funds", `SELECT
		CASE WHEN funded_at > 0 THEN total_amount ELSE 0 END, total_currency, returned_at, credited, returned, COALESCE((
			SELECT balance FROM accounts WHERE accounts.kind = 'escrow' AND owner = campaigns.id AND currency = total_currency), 0)
		FROM packets JOIN campaigns ON number = campaign WHERE campaign = ?`, []any{campaign},
		&f.Funded, &f.Currency, optionalMS(&f.ReturnedAt), &f.Credited, &f.Returned, &f.Escrow)
	return f, orNotFound(err, aCampaign, campaign)
}

// packetNow is a red packet's row, locked until the transaction ends. funded
// and returned are times, 0 for not yet; credited is a sum.
type packetNow struct {
	funded, returned int64
	credited         int64
}

// lockPacket reads and locks a red packet's row; how is ForUpdate or
// SkipLocked. With SkipLocked the error is sql.ErrNoRows while another process
// credits the red packet.
func lockPacket(ctx context.Context, s *sqldb.Session, campaign uint32, how string) (now packetNow, err error) {
	err = s.Row(ctx, `SELECT funded_at, returned_at, credited FROM packets WHERE campaign = ?`+how,
		[]any{campaign}, &now.funded, &now.returned, &now.credited)
	return now, err
}

// ReturnRemainder moves what is in escrow back to the sender, once, when the
// campaign has ended, every share is claimed or withdrawn, and every claim is
// credited; true when it did. False, and no change, when it is too early or was
// done before. ErrCorrupt when escrow is not what the withdrawn shares sum to.
func (fu *Funds) ReturnRemainder(ctx context.Context, c *dibs.Campaign, at time.Time) (returned bool, err error) {
	err = fu.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "return what is left of "+c.ID, func(s *sqldb.Session) error {
		returned = false
		now, err := lockPacket(ctx, s, c.Number, s.ForUpdate)
		if err != nil || now.funded == 0 || now.returned > 0 {
			return err
		}
		var state dibs.State
		var behind, quarantined int64
		if err := s.Row(ctx, `SELECT state, `+uncredited+`, (SELECT COUNT(*) FROM quarantine WHERE quarantine.campaign = number)
			FROM campaigns JOIN packets ON packets.campaign = number WHERE number = ?`, []any{c.Number}, &state, &behind, &quarantined); err != nil {
			return err
		}
		if state != dibs.EndedState || quarantined > 0 {
			// An entry in quarantine may yet be settled and credited to its
			// user.
			return nil
		}
		// A share that is free here may be granted in the journal already: the
		// rest is known only when each share is claimed or withdrawn.
		var free, withdrawn int64
		if err := s.Row(ctx, `SELECT COALESCE(SUM(CASE WHEN claim_epoch IS NULL AND withdrawn = 0 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN withdrawn = 1 THEN amount ELSE 0 END), 0) FROM items WHERE campaign = ?`, []any{c.Number}, &free, &withdrawn); err != nil {
			return err
		}
		if behind > 0 || free > 0 {
			return nil
		}
		returned = true
		return giveBack(ctx, s, c, now.credited, withdrawn, at)
	})
	return returned && err == nil, err
}

// giveBack moves what is in escrow to the sender. It has to be what the
// withdrawn shares are worth. Escrow is the total less the credits; that the
// withdrawn shares are worth the same is checked, since all other shares are
// claimed and every claim is credited.
func giveBack(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, credited, withdrawn int64, at time.Time) error {
	left := c.Packet.Total.Amount - credited
	if left != withdrawn {
		return fmt.Errorf("%w: of red packet %s %d are left, and shares of %d were withdrawn", dibs.ErrCorrupt, c.ID, left, withdrawn)
	}
	if left > 0 {
		t := transfer{
			at: ofCampaign(c), what: funds.TransferReturn, from: escrow(c), to: sender(c), currency: c.Packet.Total.Currency, amount: left,
		}
		if err := insertPostings(ctx, s, t.entries(nil, at)); err != nil {
			return err
		}
		if err := takeEscrow(ctx, s, c, left); err != nil {
			return err
		}
		if err := addTo(ctx, s, t.to, t.currency, left); err != nil {
			return err
		}
	}
	return s.DoOne(ctx, dibs.ErrConflict, `UPDATE packets SET returned = ?, returned_at = ? WHERE campaign = ? AND returned_at = 0`,
		left, at.UnixMilli(), c.Number)
}

// takeEscrow takes from a red packet's escrow, which has to have as much.
func takeEscrow(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, amount int64) error {
	tooLittle := fmt.Errorf("%w: there is less than %d in escrow for red packet %s", dibs.ErrCorrupt, amount, c.ID)
	return takeFrom(ctx, s, tooLittle, escrow(c), c.Packet.Total.Currency, amount)
}
