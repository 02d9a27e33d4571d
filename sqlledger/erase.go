package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/erasure"

	"github.com/dibs-dev/dibs/gate"
)

// eraseAtOnce is how many campaigns, merchants or rows one transaction of an
// erasure looks at.
const eraseAtOnce = 100

// eraser is one transaction of an erasure.
type eraser struct {
	l    *Ledger
	s    *session
	e    *erasure.Erasure
	held map[uint32]bool
	now  time.Time
}

// eraseSome does a part of each step: it returns how many rows it changed, and
// where in its rows the step goes on; nowhere when it is through.
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

// EraseSome implements dibs.Users.
func (l *Ledger) EraseSome(ctx context.Context, e *erasure.Erasure, held map[uint32]bool, now time.Time) error {
	step := eraseSome[e.Step]
	if step == nil || e.UserID == "" || e.Pseudonym == "" {
		return fmt.Errorf("sqlledger: the erasure %s is at %q, of which the ledger has nothing to do", e.ID, e.Step)
	}
	var next *erasure.Erasure
	err := l.write(long(ctx, longStatement), "erase a user's "+string(e.Step), func(s *session) error {
		next = e.Clone()
		// What is done by two at once is undone for one of them.
		n, cursor, err := step(&eraser{l: l, s: s, e: next, held: held, now: now}, ctx)
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

// concerned is a campaign that has something of the user.
type concerned struct {
	number uint32
	id     string
	// busy says that it must be left alone.
	busy bool
}

// concernedBy reads the campaigns of a subquery of numbers, which takes the user,
// the lowest first.
func (x *eraser) concernedBy(ctx context.Context, numbers string) ([]concerned, error) {
	var found []concerned
	err := x.s.each(ctx, `SELECT number, id, state, ends_at FROM campaigns WHERE number IN (`+numbers+`) ORDER BY number`, []any{x.e.UserID},
		func(rows *sql.Rows) error {
			var c concerned
			var state dibs.State
			var ends int64
			err := rows.Scan(&c.number, &c.id, &state, &ends)
			goesOn := (state == dibs.Published || state == dibs.PausedState) && ends > x.now.UnixMilli()
			c.busy = goesOn || x.held[c.number]
			found = append(found, c)
			return err
		})
	return found, err
}

// Where a user is, by numbers of campaigns. Claims of red packets go with their
// money.
const (
	claimedBy     = `SELECT campaign FROM claims WHERE user_id = ?`
	soldTo        = `SELECT k.campaign FROM claims k LEFT JOIN packets p ON p.campaign = k.campaign WHERE k.user_id = ? AND p.campaign IS NULL`
	registeredBy  = `SELECT y.campaign FROM lotteries y JOIN lottery_entries e ON e.campaign = y.campaign AND e.user_id = ?`
	quarantinedOf = `SELECT campaign FROM quarantine WHERE user_id = ?`
	waitedBy      = `SELECT campaign FROM room_places WHERE user_id = ?`
	sentBy        = `SELECT campaign FROM packets WHERE sender_id = ?`
)

// inEach calls do for some of the campaigns that may be touched, behind the
// cursor.
func (x *eraser) inEach(ctx context.Context, numbers string, do func(campaign uint32) (int64, error)) (n int64, next string, err error) {
	all, err := x.concernedBy(ctx, numbers)
	if err != nil {
		return 0, "", err
	}
	var after uint32
	if _, err := readCursor(dibs.Page{Cursor: x.e.Cursor}, &after); err != nil {
		return 0, "", err
	}
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

func (x *eraser) claims(ctx context.Context) (int64, string, error) {
	return x.inEach(ctx, soldTo, func(campaign uint32) (int64, error) { return x.claimsOf(ctx, campaign) })
}

// claimsOf puts the pseudonym into the user's claims of a campaign, and forgets
// where goods went.
func (x *eraser) claimsOf(ctx context.Context, campaign uint32) (int64, error) {
	if _, err := x.s.exec(ctx, `UPDATE claim_events SET facts = ? WHERE campaign = ? AND step = 'ship' AND (shard, epoch, seq) IN
		(SELECT shard, epoch, seq FROM claims WHERE user_id = ? AND campaign = ?)`, []byte{}, campaign, x.e.UserID, campaign); err != nil {
		return 0, err
	}
	return x.s.exec(ctx, `UPDATE claims SET user_id = ? WHERE user_id = ? AND campaign = ?`, x.e.Pseudonym, x.e.UserID, campaign)
}

// lotteries takes a registration's nonce, too: with it, the public list would
// tell who is behind an entry.
func (x *eraser) lotteries(ctx context.Context) (int64, string, error) {
	return x.inEach(ctx, registeredBy, func(campaign uint32) (int64, error) {
		return x.s.exec(ctx, `UPDATE lottery_entries SET user_id = ?, nonce = '' WHERE campaign = ? AND user_id = ?`, x.e.Pseudonym, campaign, x.e.UserID)
	})
}

func (x *eraser) quarantine(ctx context.Context) (int64, string, error) {
	return x.inEach(ctx, quarantinedOf, func(campaign uint32) (int64, error) {
		return x.s.exec(ctx, `UPDATE quarantine SET user_id = ? WHERE campaign = ? AND user_id = ?`, x.e.Pseudonym, campaign, x.e.UserID)
	})
}

func (x *eraser) places(ctx context.Context) (int64, string, error) {
	return x.inEach(ctx, waitedBy, func(campaign uint32) (int64, error) {
		return x.s.exec(ctx, `UPDATE room_places SET user_id = ? WHERE campaign = ? AND user_id = ?`, x.e.Pseudonym, campaign, x.e.UserID)
	})
}

// followedMerchant is a row of the user among a merchant's followers.
type followedMerchant struct {
	merchant string
	follows  bool
	since    time.Time
}

func (x *eraser) following(ctx context.Context, after string, most int) ([]followedMerchant, error) {
	var found []followedMerchant
	err := x.s.each(ctx, `SELECT m.id, f.follows, f.since FROM merchants m JOIN followers f ON f.merchant = m.id AND f.user_id = ?
		WHERE m.id > ? ORDER BY m.id LIMIT ?`, []any{x.e.UserID, after, most}, func(rows *sql.Rows) error {
		var f followedMerchant
		var since int64
		err := rows.Scan(&f.merchant, &f.follows, &since)
		f.since = fromMS(since)
		found = append(found, f)
		return err
	})
	return found, err
}

// gone says that nodes have heard by now that the user does not follow any more.
func (f *followedMerchant) gone(now time.Time) bool {
	return !f.follows && !f.since.After(now.Add(-erasure.FollowerRest))
}

// follows ends what the user follows, and takes the rows away that say so when
// everybody knows.
func (x *eraser) follows(ctx context.Context) (n int64, next string, err error) {
	found, err := x.following(ctx, x.e.Cursor, eraseAtOnce)
	if err != nil {
		return 0, "", err
	}
	for i := range found {
		f := &found[i]
		var m int64
		switch {
		case f.follows:
			m, err = changeFollowers(ctx, x.s, f.merchant, []gate.Follower{{User: x.e.UserID, Since: x.now}}, false)
		case f.gone(x.now):
			_, err = x.s.exec(ctx, `DELETE FROM followers WHERE merchant = ? AND user_id = ? AND follows = 0`, f.merchant, x.e.UserID)
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
// and red packets that they are about, all at once: audits compare them.
func (x *eraser) money(ctx context.Context) (n int64, next string, err error) {
	holds, err := x.moneyHolds(ctx)
	if err != nil || len(holds) > 0 {
		return 0, "", err
	}
	campaigns, err := x.concernedBy(ctx, claimedBy+` AND campaign IN (SELECT campaign FROM packets)`)
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
		`UPDATE accounts SET owner = ? WHERE owner = ? AND kind = 'user'`,
	} {
		m, err := x.s.exec(ctx, statement, x.e.Pseudonym, x.e.UserID)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	return n, "", nil
}

// moneyHolds names what keeps the user's money from being touched: red packets
// that are not closed, and, without leave, what is on the account.
func (x *eraser) moneyHolds(ctx context.Context) ([]string, error) {
	var holds []string
	for _, numbers := range []string{claimedBy + ` AND campaign IN (SELECT campaign FROM packets)`, sentBy} {
		packets, err := x.concernedBy(ctx, numbers)
		if err != nil {
			return nil, err
		}
		for _, c := range packets {
			now, err := lockPacket(ctx, x.s, c.number, x.s.d.forUpdate)
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
	err := x.s.each(ctx, `SELECT currency FROM accounts WHERE kind = 'user' AND owner = ? AND balance <> 0 ORDER BY currency`+x.s.d.forUpdate,
		[]any{x.e.UserID}, func(rows *sql.Rows) error {
			var currency string
			err := rows.Scan(&currency)
			holds = append(holds, "money in "+currency+" on the account")
			return err
		})
	return holds, err
}

// check names what holds the user still.
func (x *eraser) check(ctx context.Context) (int64, string, error) {
	holds, err := x.moneyHolds(ctx)
	if err != nil {
		return 0, "", err
	}
	for _, numbers := range []string{soldTo, registeredBy, quarantinedOf, waitedBy} {
		found, err := x.concernedBy(ctx, numbers)
		if err != nil {
			return 0, "", err
		}
		for _, c := range found {
			if name := "campaign " + c.id; c.busy && !slices.Contains(holds, name) {
				holds = append(holds, name)
			}
		}
	}
	found, err := x.following(ctx, "", eraseAtOnce)
	for i := range found {
		if found[i].gone(x.now) {
			// The next round takes it away.
			continue
		}
		holds = append(holds, "nodes that hear of the followers of "+found[i].merchant)
	}
	x.e.WaitsFor = holds[:min(len(holds), dibs.MaxUserRecord)]
	return 0, "", err
}
