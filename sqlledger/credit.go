package sqlledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// sender is the account that a red packet is paid from.
func sender(c *dibs.Campaign) account {
	if c.SenderID == "" {
		return account{kind: funds.PlatformAccount}
	}
	return account{funds.UserAccount, c.SenderID}
}

// escrow is the account that holds a red packet's money.
func escrow(c *dibs.Campaign) account { return account{funds.EscrowAccount, c.ID} }

// FundCampaign implements dibs.Funds.
func (l *Ledger) FundCampaign(ctx context.Context, c *dibs.Campaign) error {
	if c.Packet == nil {
		return fmt.Errorf("sqlledger: fund campaign %s: it is no red packet", c.ID)
	}
	err := l.write(ctx, "fund campaign", func(s *session) error {
		return l.updateCampaign(ctx, s, c, func() error { return l.fund(ctx, s, c) })
	})
	if err == nil {
		c.Version++
	}
	return err
}

// fund moves a red packet's total into escrow.
func (l *Ledger) fund(ctx context.Context, s *session, c *dibs.Campaign) error {
	total := c.Packet.Total
	n, err := s.exec(ctx, `UPDATE packets SET funded_at = ? WHERE campaign = ? AND funded_at = 0`, c.UpdatedAt.UnixMilli(), c.Number)
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: the draft of red packet %s has been funded before", dibs.ErrCorrupt, c.ID)
	}
	if err != nil {
		return err
	}
	t := transfer{
		campaign: c.Number, what: funds.TransferFund, from: sender(c), to: escrow(c), currency: total.Currency, amount: total.Amount,
	}
	if err := t.write(ctx, s, c.UpdatedAt); err != nil {
		return err
	}
	if err := addTo(ctx, s, t.to, t.currency, t.amount); err != nil {
		return err
	}
	if t.from.kind == funds.PlatformAccount {
		return l.bringIn(ctx, s, t.from.kind, t.currency, t.amount)
	}
	paid, err := takeFrom(ctx, s, t.from, t.currency, t.amount)
	if err == nil && !paid {
		err = dibs.Fail(dibs.InsufficientFunds, dibs.Textf(
			"user %[1]s has less than the %[2]d %[3]s that the red packet takes: deposit the rest first",
			"用户 %[1]s 的余额不足以支付红包总额 %[2]d %[3]s，请先充值", c.SenderID, total.Amount, total.Currency))
	}
	return err
}

// packetNow is a red packet's row, kept from others until the transaction ends.
type packetNow struct {
	funded, returned int64
	credited         int64
	at               dibs.Cursor
}

// lockPacket reads and keeps a red packet's row; how is a dialect's lock.
func lockPacket(ctx context.Context, s *session, campaign uint32, how string) (now packetNow, err error) {
	err = s.row(ctx, `SELECT funded_at, returned_at, credited, credit_epoch, credit_seq FROM packets WHERE campaign = ?`+how,
		[]any{campaign}, &now.funded, &now.returned, &now.credited, &now.at.Epoch, &now.at.Seq)
	return now, err
}

// CreditClaims implements dibs.Funds. Beside accounts and entries it locks the
// red packet's row alone, which settling never touches.
func (l *Ledger) CreditClaims(ctx context.Context, c *dibs.Campaign, at time.Time, most int) (n int, err error) {
	err = l.write(long(ctx, longStatement), "credit the claims of "+c.ID, func(s *session) error {
		n = 0
		now, err := lockPacket(ctx, s, c.Number, s.d.skipLocked)
		if isNoRows(err) {
			// Somebody else is at it.
			return nil
		}
		if err != nil || now.funded == 0 {
			return err
		}
		var to dibs.Cursor
		if err := s.row(ctx, `SELECT pos_epoch, pos_seq FROM positions WHERE campaign = ? AND shard = 0`, []any{c.Number}, &to.Epoch, &to.Seq); err != nil {
			return err
		}
		if !now.at.Before(to) {
			return nil
		}
		claims, err := claimsAfter(ctx, s, c.Number, now.at, to, most)
		if err != nil {
			return err
		}
		if n = len(claims); n == most {
			to = claims[n-1].Cursor
		}
		sum, err := creditAll(ctx, s, c, claims, at)
		if err != nil {
			return err
		}
		moved, err := s.exec(ctx, `UPDATE packets SET credit_epoch = ?, credit_seq = ?, credited = credited + ?
			WHERE campaign = ? AND credit_epoch = ? AND credit_seq = ?`, to.Epoch, to.Seq, sum, c.Number, now.at.Epoch, now.at.Seq)
		if err == nil && moved != 1 {
			err = dibs.ErrPositionMoved
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// creditAll moves money from escrow to the users of claims and returns how much.
// A claim that was credited before fails it all: its entry is there.
func creditAll(ctx context.Context, s *session, c *dibs.Campaign, claims []credit, at time.Time) (sum int64, err error) {
	if len(claims) == 0 {
		return 0, nil
	}
	currency := c.Packet.Total.Currency
	args := make([]any, 0, 24*len(claims))
	users := make(map[string]int64, len(claims))
	for i := range claims {
		if claims[i].amount == 0 {
			return 0, fmt.Errorf("%w: the claim at %s of red packet %s has no share", dibs.ErrCorrupt, claims[i].Cursor, c.ID)
		}
		t := transfer{
			campaign: c.Number, at: claims[i].Cursor, what: funds.TransferCredit, from: escrow(c),
			to: account{funds.UserAccount, claims[i].user}, currency: currency, amount: claims[i].amount,
		}
		args = t.entries(args, at)
		users[claims[i].user] += claims[i].amount
		sum += claims[i].amount
	}
	if err := insertRows(ctx, s, `INSERT INTO entries (`+entryColumns+`) VALUES `, args, 12); err != nil {
		return 0, err
	}
	if err := takeEscrow(ctx, s, c, sum); err != nil {
		return 0, err
	}
	return sum, addToUsers(ctx, s, users, currency)
}

func takeEscrow(ctx context.Context, s *session, c *dibs.Campaign, amount int64) error {
	ok, err := takeFrom(ctx, s, escrow(c), c.Packet.Total.Currency, amount)
	if err == nil && !ok {
		err = fmt.Errorf("%w: there is less than %d in escrow for red packet %s", dibs.ErrCorrupt, amount, c.ID)
	}
	return err
}

// addToUsers adds to many balances.
func addToUsers(ctx context.Context, s *session, users map[string]int64, currency string) error {
	names := make([]string, 0, len(users))
	for name := range users {
		names = append(names, name)
	}
	slices.Sort(names)
	for len(names) > 0 {
		n := chunk(len(names), eventRows)
		args := make([]any, 0, 4*n)
		for _, name := range names[:n] {
			args = append(args, string(funds.UserAccount), name, currency, users[name])
		}
		if _, err := s.exec(ctx, `INSERT INTO accounts (kind, owner, currency, balance) VALUES `+repeat("(?,?,?,?)", n)+s.d.addBalance, args...); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// creditLate credits a claim that was settled after those that came after it:
// the ones behind it are credited, and nobody would look for it.
func creditLate(ctx context.Context, s *session, c *dibs.Campaign, at dibs.Cursor, when time.Time) error {
	now, err := lockPacket(ctx, s, c.Number, s.d.forUpdate)
	if err != nil || now.at.Before(at) {
		return err
	}
	before := at
	before.Seq--
	claims, err := claimsAfter(ctx, s, c.Number, before, at, 1)
	if err != nil {
		return err
	}
	sum, err := creditAll(ctx, s, c, claims, when)
	if err == nil {
		_, err = s.exec(ctx, `UPDATE packets SET credited = credited + ? WHERE campaign = ?`, sum, c.Number)
	}
	return err
}

// ReturnRemainder implements dibs.Funds.
func (l *Ledger) ReturnRemainder(ctx context.Context, c *dibs.Campaign, at time.Time) (home bool, err error) {
	err = l.write(long(ctx, longStatement), "return what is left of "+c.ID, func(s *session) error {
		home = false
		now, err := lockPacket(ctx, s, c.Number, s.d.forUpdate)
		if err != nil || now.funded == 0 || now.returned > 0 {
			return err
		}
		var settled dibs.Cursor
		var state dibs.State
		var aside int64
		if err := s.row(ctx, `SELECT state, pos_epoch, pos_seq, (SELECT COUNT(*) FROM quarantine WHERE quarantine.campaign = number)
			FROM campaigns JOIN positions ON campaign = number AND shard = 0
			WHERE number = ?`, []any{c.Number}, &state, &settled.Epoch, &settled.Seq, &aside); err != nil {
			return err
		}
		if state != dibs.EndedState || aside > 0 {
			// What is in quarantine may yet be somebody's.
			return nil
		}
		var free, withdrawn int64
		if err := s.row(ctx, `SELECT COALESCE(SUM(CASE WHEN claim_epoch IS NULL AND withdrawn = 0 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN withdrawn = 1 THEN amount ELSE 0 END), 0) FROM items WHERE campaign = ?`, []any{c.Number}, &free, &withdrawn); err != nil {
			return err
		}
		if now.at.Before(settled) || free > 0 {
			return nil
		}
		home = true
		return sendHome(ctx, s, c, now.credited, withdrawn, at)
	})
	return home && err == nil, err
}

// sendHome moves what is in escrow back, which has to be what the withdrawn
// shares are worth.
func sendHome(ctx context.Context, s *session, c *dibs.Campaign, credited, withdrawn int64, at time.Time) error {
	left := c.Packet.Total.Amount - credited
	if left != withdrawn {
		return fmt.Errorf("%w: of red packet %s %d are left, and shares of %d were withdrawn", dibs.ErrCorrupt, c.ID, left, withdrawn)
	}
	if left > 0 {
		t := transfer{
			campaign: c.Number, what: funds.TransferReturn, from: escrow(c), to: sender(c), currency: c.Packet.Total.Currency, amount: left,
		}
		if err := t.write(ctx, s, at); err != nil {
			return err
		}
		if err := takeEscrow(ctx, s, c, left); err != nil {
			return err
		}
		if err := addTo(ctx, s, t.to, t.currency, left); err != nil {
			return err
		}
	}
	n, err := s.exec(ctx, `UPDATE packets SET returned = ?, returned_at = ? WHERE campaign = ? AND returned_at = 0`, left, at.UnixMilli(), c.Number)
	if err == nil && n != 1 {
		err = dibs.ErrConflict
	}
	return err
}
