package sqlledger

import (
	"context"
	"database/sql"
	"math"

	"github.com/dibs-dev/dibs"
)

const claimColumns = `campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, pay_by, created_at, restocked, steps`

// Claim implements dibs.Claims.
func (l *Ledger) Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error) {
	return l.claim(ctx, notFound(aClaim, p), `campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
		p.Campaign, p.Shard, p.Epoch, p.Seq)
}

// ClaimByKey implements dibs.Claims.
func (l *Ledger) ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*dibs.Claim, error) {
	none := dibs.Fail(dibs.NotFound, dibs.Text{EN: "There is no claim by this key", ZH: "没有使用该幂等键的订单"})
	if key == 0 {
		return nil, none
	}
	// The index by user finds the few rows of one user.
	return l.claim(ctx, none, `user_id = ? AND campaign = ? AND request_key = ? ORDER BY created_at LIMIT 1`,
		user, campaign, int64(key))
}

func (l *Ledger) claim(ctx context.Context, none error, where string, args ...any) (*dibs.Claim, error) {
	found := make([]dibs.Claim, 1)
	err := l.snapshot(ctx, "read claim", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+claimColumns+` FROM claims WHERE `+where, args...)
		if err != nil {
			return err
		}
		if err := one(rows, none, func() error { return scanClaim(rows, &found[0]) }); err != nil {
			return err
		}
		if err := l.itemsOf(ctx, s, found); err != nil {
			return err
		}
		return eventsOf(ctx, s, pointers(found))
	})
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// claimCursor is where a page of claims ended.
type claimCursor struct {
	At       int64  `json:"t,omitempty"`
	Campaign uint32 `json:"c"`
	Shard    uint8  `json:"s"`
	Epoch    uint16 `json:"e"`
	Seq      uint32 `json:"q"`
}

// ClaimList implements dibs.Claims.
func (l *Ledger) ClaimList(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	var none dibs.List[dibs.Claim]
	statement, args, err := l.d.claimListQuery(f, page)
	if err != nil {
		return none, err
	}
	limit := limitOf(page)
	var found []dibs.Claim
	err = l.snapshot(ctx, "list claims", func(s *session) error {
		if err := s.each(ctx, statement, append(args, limit+1), func(rows *sql.Rows) error {
			found = append(found, dibs.Claim{})
			return scanClaim(rows, &found[len(found)-1])
		}); err != nil {
			return err
		}
		if err := l.itemsOf(ctx, s, found); err != nil {
			return err
		}
		return eventsOf(ctx, s, pointers(found))
	})
	if err != nil {
		return none, err
	}
	return cut(found, limit, func(c *dibs.Claim) any {
		k := claimCursor{Campaign: c.Position.Campaign, Shard: c.Position.Shard, Epoch: c.Position.Epoch, Seq: c.Position.Seq}
		if f.UserID != "" {
			k.At = c.CreatedAt.UnixMilli()
		}
		return k
	})
}

// claimListQuery writes the statement of a page, but for its limit.
func (d *dialect) claimListQuery(f dibs.ClaimFilter, page dibs.Page) (statement string, args []any, err error) {
	after := claimCursor{}
	if f.UserID != "" {
		after = claimCursor{At: math.MaxInt64, Campaign: dibs.MaxCampaignNumber + 1}
	}
	if _, err := readCursor(page, &after); err != nil {
		return "", nil, err
	}
	// A cursor that somebody made up may lie beyond what a column holds.
	after.Campaign, after.Epoch = min(after.Campaign, dibs.MaxCampaignNumber+1), min(after.Epoch, dibs.MaxEpoch+1)
	columns := []string{"campaign", "shard", "epoch", "seq"}
	place := []any{after.Campaign, after.Shard, after.Epoch, after.Seq}
	order := ` ORDER BY campaign, shard, epoch, seq LIMIT ?`
	var where string
	switch {
	case f.UserID != "":
		where, args = d.compare(append([]string{"created_at"}, columns...), "<", append([]any{after.At}, place...)...)
		where += ` AND user_id = ?`
		args = append(args, f.UserID)
		order = ` ORDER BY created_at DESC, campaign DESC, shard DESC, epoch DESC, seq DESC LIMIT ?`
	case f.Campaign != 0:
		where, args = d.compare(columns[1:], ">", place[1:]...)
	default:
		where, args = d.compare(columns, ">", place...)
	}
	if f.Campaign != 0 {
		where += ` AND campaign = ?`
		args = append(args, f.Campaign)
	}
	if f.Status != nil {
		where += ` AND status = ?`
		args = append(args, int64(*f.Status))
	}
	return `SELECT ` + claimColumns + ` FROM claims WHERE ` + where + order, args, nil
}

func scanClaim(rows *sql.Rows, c *dibs.Claim) error {
	var amount, payBy, created, steps int64
	var currency string
	p := &c.Position
	err := rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq, &c.UserID, &c.Quantity, &c.Status, &c.OrderType,
		&amount, &currency, &payBy, &created, &c.Restocked, &steps)
	c.Amount, c.PayBy, c.CreatedAt = joinMoney(amount, currency), fromOptionalMS(payBy), fromMS(created)
	if steps > 0 {
		// The room says that there are events to be read.
		c.Events = make([]dibs.ClaimEvent, 0, steps)
	}
	return err
}
