package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/erasure"
)

// eraseAtOnce is how many campaigns or merchants one transaction of an erasure
// looks at.
const eraseAtOnce = 100

// eraser is one transaction of an erasure. Campaigns in held are left alone:
// engines still have them in memory.
type eraser struct {
	s    *sqldb.Session
	e    *erasure.Erasure
	held map[uint32]bool
	now  time.Time
}

// eraseSome does a part of each step. It returns how many rows it changed, and
// the cursor at which the step goes on; the cursor is empty when the step is
// done.
var eraseSome = map[erasure.EraseStep]func(*eraser, context.Context) (n int64, next string, err error){
	erasure.EraseClaims:     (*eraser).claims,
	erasure.EraseLotteries:  (*eraser).lotteries,
	erasure.EraseQuarantine: (*eraser).quarantine,
	erasure.ErasePlaces:     (*eraser).places,
	erasure.EraseFollows:    (*eraser).follows,
	erasure.EraseMoney:      (*eraser).money,
	erasure.EraseRequests:   (*eraser).requests,
	erasure.EraseAnnounced:  (*eraser).announced,
	erasure.EraseDeliveries: (*eraser).deliveries,
	erasure.EraseAudit:      (*eraser).audit,
	erasure.EraseCheck:      (*eraser).check,
}

// EraseSome does a part of e's step and saves e as SaveErasure does, in one
// transaction: some rows, and when none are left, e is at the next step. It
// leaves alone the campaigns in held, those that are published or paused and
// have not ended at now, and red packets that are not closed. ErrConflict;
// then, as after every error, e is as it was.
func (er *Erasures) EraseSome(ctx context.Context, e *erasure.Erasure, held map[uint32]bool, now time.Time) error {
	step := eraseSome[e.Step]
	if step == nil || e.UserID == "" || e.Pseudonym == "" {
		return fmt.Errorf("sqlledger: the erasure %s is at the step %q, which is not the ledger's", e.ID, e.Step)
	}
	var next *erasure.Erasure
	err := er.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "erase a user's "+string(e.Step), func(s *sqldb.Session) error {
		next = e.Clone()
		n, cursor, err := step(&eraser{s: s, e: next, held: held, now: now}, ctx)
		if err != nil {
			return err
		}
		next.Note(e.Step, n)
		if next.Cursor = cursor; cursor == "" {
			next.Advance()
		}
		return saveErasure(ctx, s, next)
	})
	if err == nil {
		saved(next)
		*e = *next
	}
	return err
}

// userCampaign is a campaign that has something of the user.
type userCampaign struct {
	number uint32
	id     string
	// busy says that it must be left alone, as long as engines hold it or it
	// goes on, or one with which it shares a limit per product.
	busy bool
	// product is the one whose limit it shares; empty for none.
	product string
}

// campaigns reads the campaigns of a subquery of numbers, whose argument is the
// user; the lowest number first.
func (x *eraser) campaigns(ctx context.Context, numbers string) ([]userCampaign, error) {
	all, err := sqldb.List(ctx, x.s, selectBusy+` WHERE number IN (`+numbers+`) ORDER BY number`, []any{x.e.UserID}, x.scanCampaign)
	for i := range all {
		if c := &all[i]; c.product != "" && !c.busy && err == nil {
			// The engine counts it for as long as it holds one of these.
			var others []userCampaign
			others, err = sqldb.List(ctx, x.s, selectBusy+areSharing, []any{c.product}, x.scanCampaign)
			c.busy = slices.ContainsFunc(others, func(o userCampaign) bool { return o.busy })
		}
	}
	return all, err
}

// selectBusy reads campaigns for scanCampaign.
const selectBusy = `SELECT number, id, state, ends_at, CASE WHEN limit_per_product > 0 THEN product_id ELSE '' END FROM campaigns`

// scanCampaign reads a campaign, and whether it goes on or is held itself.
func (x *eraser) scanCampaign(rows *sql.Rows, c *userCampaign) error {
	var is dibs.Campaign
	err := rows.Scan(&c.number, &c.id, &is.State, ms(&is.EndsAt), &c.product)
	c.busy = is.Live() && is.EndsAt.UnixMilli() > x.now.UnixMilli() || x.held[c.number]
	return err
}

// The campaigns that have something of a user, as subqueries of numbers. soldTo
// leaves out red packets, whose claims are erased with their money.
const (
	claimedBy     = `SELECT campaign FROM claims WHERE user_id = ?`
	soldTo        = `SELECT k.campaign FROM claims k LEFT JOIN packets p ON p.campaign = k.campaign WHERE k.user_id = ? AND p.campaign IS NULL`
	registeredBy  = `SELECT y.campaign FROM lotteries y JOIN lottery_entries e ON e.campaign = y.campaign AND e.user_id = ?`
	quarantinedOf = `SELECT campaign FROM quarantine WHERE user_id = ?`
	waitedBy      = `SELECT campaign FROM room_places WHERE user_id = ?`
	sentBy        = `SELECT campaign FROM packets WHERE sender_id = ?`
)

// inEach calls do for some of the campaigns that are not busy, those after the
// cursor. It returns how many rows were changed, and the cursor to go on from,
// empty at the end.
func (x *eraser) inEach(ctx context.Context, numbers string, do func(campaign uint32) (int64, error)) (n int64, next string, err error) {
	all, err := x.campaigns(ctx, numbers)
	if err != nil {
		return 0, "", err
	}
	var after uint32
	if _, err := readCursor(x.e.Cursor, &after); err != nil {
		return 0, "", err
	}
	// A campaign that is busy is passed over: the step comes back for it in a
	// later round, when check still finds it.
	done := 0
	for _, c := range all {
		if c.number <= after || c.busy {
			continue
		}
		if done == eraseAtOnce {
			next, err = cursorText(after)
			return n, next, err
		}
		m, err := do(c.number)
		if err != nil {
			return 0, "", err
		}
		n, after, done = n+m, c.number, done+1
	}
	return n, "", nil
}

// claims erases the claims of campaigns that are no red packets.
func (x *eraser) claims(ctx context.Context) (int64, string, error) {
	return x.inEach(ctx, soldTo, func(campaign uint32) (int64, error) { return x.claimsOf(ctx, campaign) })
}

// claimsOf puts the pseudonym into the user's claims of a campaign, and removes
// where goods were sent, references and comments. Of a claim's events, only those that ship say where
// goods were sent.
func (x *eraser) claimsOf(ctx context.Context, campaign uint32) (int64, error) {
	if err := x.s.Do(ctx, `UPDATE claim_events SET facts = ? WHERE campaign = ? AND step = 'ship' AND (shard, epoch, seq) IN
		(SELECT shard, epoch, seq FROM claims WHERE user_id = ? AND campaign = ?)`, []byte{}, campaign, x.e.UserID, campaign); err != nil {
		return 0, err
	}
	// A reference is the user's own text, and a comment is about the user.
	for _, table := range []string{"claim_references", "claim_comments"} {
		if err := x.s.Do(ctx, `DELETE FROM `+table+` WHERE campaign = ? AND (shard, epoch, seq) IN
			(SELECT shard, epoch, seq FROM claims WHERE user_id = ? AND campaign = ?)`, campaign, x.e.UserID, campaign); err != nil {
			return 0, err
		}
	}
	return x.s.Exec(ctx, `UPDATE claims SET user_id = ? WHERE user_id = ? AND campaign = ?`, x.e.Pseudonym, x.e.UserID, campaign)
}

// lotteries also removes a registration's nonce: with it, the public list would
// tell the user of an entry.
func (x *eraser) lotteries(ctx context.Context) (int64, string, error) {
	return x.renameIn(ctx, registeredBy, `UPDATE lottery_entries SET user_id = ?, nonce = ''`)
}

// renameIn changes the user's rows of campaigns by the beginning of a statement, which
// takes the pseudonym.
func (x *eraser) renameIn(ctx context.Context, numbers, update string) (int64, string, error) {
	return x.inEach(ctx, numbers, func(campaign uint32) (int64, error) {
		return x.s.Exec(ctx, update+` WHERE campaign = ? AND user_id = ?`, x.e.Pseudonym, campaign, x.e.UserID)
	})
}

// quarantine erases the user in entries in quarantine, which count on under the
// pseudonym.
func (x *eraser) quarantine(ctx context.Context) (int64, string, error) {
	return x.renameIn(ctx, quarantinedOf, `UPDATE quarantine SET user_id = ?`)
}

// places erases the places in waiting rooms.
func (x *eraser) places(ctx context.Context) (int64, string, error) {
	return x.renameIn(ctx, waitedBy, `UPDATE room_places SET user_id = ?`)
}

// followedMerchant is a row of the user among a merchant's followers.
type followedMerchant struct {
	merchant string
	follows  bool
	since    time.Time
}

// following reads the user's rows after a merchant.
func (x *eraser) following(ctx context.Context, after string) ([]followedMerchant, error) {
	return sqldb.List(ctx, x.s, `SELECT m.id, f.follows, f.since FROM merchants m JOIN followers f ON f.merchant = m.id AND f.user_id = ?
		WHERE m.id > ? ORDER BY m.id LIMIT ?`, []any{x.e.UserID, after, eraseAtOnce}, func(rows *sql.Rows, f *followedMerchant) error {
		return rows.Scan(&f.merchant, &f.follows, ms(&f.since))
	})
}

// known reports whether all nodes have read by now that the user follows no
// longer.
func (f *followedMerchant) known(now time.Time) bool {
	return !f.follows && !f.since.After(now.Add(-erasure.FollowerRest))
}

// follows ends what the user follows, and deletes the rows that say so once all
// nodes have read them.
func (x *eraser) follows(ctx context.Context) (n int64, next string, err error) {
	found, err := x.following(ctx, x.e.Cursor)
	if err != nil {
		return 0, "", err
	}
	for i := range found {
		f := &found[i]
		var m int64
		switch {
		case f.follows:
			m, err = changeFollowers(ctx, x.s, f.merchant, []gate.Follower{{User: x.e.UserID, Since: x.now}}, false)
		case f.known(x.now):
			err = x.s.Do(ctx, `DELETE FROM followers WHERE merchant = ? AND user_id = ? AND follows = 0`, f.merchant, x.e.UserID)
		}
		if err != nil {
			return 0, "", err
		}
		n, next = n+m, f.merchant
	}
	if len(found) < eraseAtOnce {
		next = ""
	}
	return n, next, nil
}

// money puts the pseudonym into the user's account, its entries, and the claims
// and red packets that they are about, in one transaction: audits compare them.
func (x *eraser) money(ctx context.Context) (n int64, next string, err error) {
	holds, err := x.moneyHolds(ctx)
	if err != nil || len(holds) > 0 {
		return 0, "", err
	}
	campaigns, err := x.campaigns(ctx, claimedBy+` AND campaign IN (SELECT campaign FROM packets)`)
	if err != nil {
		return 0, "", err
	}
	for _, c := range campaigns {
		m, err := x.claimsOf(ctx, c.number)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	for _, statement := range []string{
		`UPDATE packets SET sender_id = ? WHERE sender_id = ?`,
		`UPDATE entries SET owner = ? WHERE owner = ? AND kind = 'user'`,
	} {
		m, err := x.s.Exec(ctx, statement, x.e.Pseudonym, x.e.UserID)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	m, err := x.balances(ctx)
	return n + m, "", err
}

// balances adds what is on the user's accounts to those of the pseudonym, which has some already when money came in after
// an earlier round.
func (x *eraser) balances(ctx context.Context) (n int64, err error) {
	all, err := readBalances(ctx, x.s, x.e.UserID, x.s.ForUpdate)
	if err != nil {
		return 0, err
	}
	for _, b := range all {
		if err := addTo(ctx, x.s, account{funds.UserAccount, x.e.Pseudonym}, b.Currency, b.Amount); err != nil {
			return 0, err
		}
		// One by one: an account in another currency that is made meanwhile stays for the next round.
		m, err := x.s.Exec(ctx, `DELETE FROM accounts WHERE kind = 'user' AND owner = ? AND currency = ?`, x.e.UserID, b.Currency)
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}

// moneyHolds names what keeps the user's money from being touched: red packets
// that are not closed and, unless the balance may be left, what is on the
// account. It locks what it looks at, so that none of it changes before the
// pseudonym is written.
func (x *eraser) moneyHolds(ctx context.Context) ([]string, error) {
	var holds []string
	for _, numbers := range []string{claimedBy + ` AND campaign IN (SELECT campaign FROM packets)`, sentBy} {
		packets, err := x.campaigns(ctx, numbers)
		if err != nil {
			return nil, err
		}
		for _, c := range packets {
			now, err := lockPacket(ctx, x.s, c.number, x.s.ForUpdate)
			if err != nil {
				return nil, err
			}
			if name := "red packet " + c.id; (c.busy || now.funded > 0 && now.returned == 0) && !slices.Contains(holds, name) {
				holds = append(holds, name)
			}
		}
	}
	if x.e.LeaveBalance {
		return holds, nil
	}
	currencies, err := sqldb.List(ctx, x.s, `SELECT currency FROM accounts WHERE kind = 'user' AND owner = ? AND balance <> 0 ORDER BY currency`+x.s.ForUpdate,
		[]any{x.e.UserID}, sqldb.Scan1[string])
	for _, currency := range currencies {
		holds = append(holds, "money in "+currency+" on the account")
	}
	return holds, err
}

// check names what still holds the user. It changes nothing. The reasons are
// shown in WaitsFor, in words, and another round follows.
func (x *eraser) check(ctx context.Context) (int64, string, error) {
	holds, err := x.moneyHolds(ctx)
	if err != nil {
		return 0, "", err
	}
	for _, numbers := range []string{soldTo, registeredBy, quarantinedOf, waitedBy} {
		found, err := x.campaigns(ctx, numbers)
		if err != nil {
			return 0, "", err
		}
		for _, c := range found {
			if name := "campaign " + c.id; c.busy && !slices.Contains(holds, name) {
				holds = append(holds, name)
			}
		}
	}
	found, err := x.following(ctx, "")
	for i := range found {
		// The next round deletes the changes that all nodes have read.
		if !found[i].known(x.now) {
			holds = append(holds, "nodes that have not read the change of the followers of "+found[i].merchant)
		}
	}
	x.e.WaitsFor = holds[:min(len(holds), erasure.MaxUserRecord)]
	return 0, "", err
}
