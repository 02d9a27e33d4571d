package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
)

// OrderList implements dibs.Claims. Each way to look for orders has an index of
// its own, whose order is that of the list:
//
//   - by payment and by code, the rows of payments and items name the claims;
//   - of a user, claims_by_user; of campaigns, the claims' own places, campaign by
//     campaign; of all, claims_by_time.
func (l *Ledger) OrderList(ctx context.Context, f dibs.OrderFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	var none dibs.List[dibs.Claim]
	after := lastPlace(f)
	if _, err := readCursor(page, &after); err != nil {
		return none, err
	}
	// A cursor that somebody made up may lie beyond what a column holds.
	after.Campaign, after.Epoch = min(after.Campaign, dibs.MaxCampaignNumber+1), min(after.Epoch, dibs.MaxEpoch+1)
	limit := limitOf(page)
	if f.Campaigns != nil && len(f.Campaigns) == 0 {
		return none, nil
	}
	var found []dibs.Claim
	err := l.snapshot(ctx, "look for orders", func(s *session) error {
		found = found[:0]
		if err := l.findOrders(ctx, s, f, after, limit+1, &found); err != nil {
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
		return claimCursor{
			At: c.CreatedAt.UnixMilli(), Campaign: c.Position.Campaign, Shard: c.Position.Shard, Epoch: c.Position.Epoch, Seq: c.Position.Seq,
		}
	})
}

// lastPlace is the place behind all that a list has: it begins there.
func lastPlace(f dibs.OrderFilter) claimCursor {
	if f.PaymentRef != "" || f.UserID == "" && f.Campaigns != nil {
		return claimCursor{Campaign: dibs.MaxCampaignNumber + 1, Shard: math.MaxUint8, Epoch: dibs.MaxEpoch + 1}
	}
	at := int64(math.MaxInt64)
	if !f.Until.IsZero() {
		at = f.Until.UnixMilli()
	}
	return claimCursor{At: at}
}

// findOrders reads up to so many orders that lie before a place.
func (l *Ledger) findOrders(ctx context.Context, s *session, f dibs.OrderFilter, after claimCursor, most int, found *[]dibs.Claim) error {
	scan := func(rows *sql.Rows) error {
		*found = append(*found, dibs.Claim{})
		return scanClaim(rows, &(*found)[len(*found)-1])
	}
	switch {
	case f.Code != "":
		return l.orderByCode(ctx, s, f, scan)
	case f.UserID == "" && f.PaymentRef == "" && f.Campaigns != nil:
		for _, number := range f.Campaigns {
			if number > after.Campaign {
				continue
			}
			begin := after
			if number < after.Campaign {
				begin = lastPlace(f)
			}
			statement, args := l.d.campaignOrders(f, number, begin)
			if err := s.each(ctx, statement, append(args, most-len(*found)), scan); err != nil || len(*found) == most {
				return err
			}
		}
		return nil
	}
	statement, args := l.d.orders(f, after)
	return s.each(ctx, statement, append(args, most), scan)
}

// orderByCode reads the orders that have an item of the campaigns.
func (l *Ledger) orderByCode(ctx context.Context, s *session, f dibs.OrderFilter, scan func(*sql.Rows) error) error {
	for _, number := range f.Campaigns {
		var shard, epoch, seq sql.NullInt64
		err := s.row(ctx, itemByValue, []any{number, f.Code}, &shard, &epoch, &seq)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !epoch.Valid {
			continue
		}
		if err != nil {
			return err
		}
		where, args := alsoWanted(f, `campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, number, shard.Int64, epoch.Int64, seq.Int64)
		if err := s.each(ctx, `SELECT `+claimColumns+` FROM claims AS c WHERE `+where, args, scan); err != nil {
			return err
		}
	}
	return nil
}

const itemByValue = `SELECT shard, claim_epoch, claim_seq FROM items WHERE campaign = ? AND value = ?`

// alsoWanted adds what a filter asks of the claims c to a condition.
func alsoWanted(f dibs.OrderFilter, where string, args ...any) (string, []any) {
	and := func(condition string, values ...any) {
		where += " AND " + condition
		args = append(args, values...)
	}
	if f.UserID != "" {
		and(`c.user_id = ?`, f.UserID)
	}
	if f.Status != nil {
		and(`c.status = ?`, int64(*f.Status))
	}
	if f.OrderType != 0 {
		and(`c.order_type = ?`, int64(f.OrderType))
	}
	if !f.Since.IsZero() {
		and(`c.created_at >= ?`, f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		and(`c.created_at < ?`, f.Until.UnixMilli())
	}
	return where, args
}

// inCampaigns adds that the claims are of a filter's campaigns, where these do
// not lead the search.
func inCampaigns(f dibs.OrderFilter, where string, args []any) (string, []any) {
	if f.Campaigns == nil {
		return where, args
	}
	for _, number := range f.Campaigns {
		args = append(args, number)
	}
	return where + " AND c.campaign IN (" + repeat("?", len(f.Campaigns)) + ")", args
}

// campaignOrders is the statement for a page of one campaign's orders before a
// place, newest first, but for its limit.
func (d *dialect) campaignOrders(f dibs.OrderFilter, number uint32, before claimCursor) (statement string, args []any) {
	where, args := d.compare([]string{"c.shard", "c.epoch", "c.seq"}, "<", before.Shard, before.Epoch, before.Seq)
	where, args = alsoWanted(f, where+` AND c.campaign = ?`, append(args, number)...)
	return `SELECT ` + claimColumns + ` FROM claims AS c WHERE ` + where + ` ORDER BY c.shard DESC, c.epoch DESC, c.seq DESC LIMIT ?`, args
}

// placeColumns are the columns of a claim's place.
var placeColumns = []string{"campaign", "shard", "epoch", "seq"}

// orders is the statement for a page of orders before a place, but for its
// limit: those of a payment, of a user, or all.
func (d *dialect) orders(f dibs.OrderFilter, before claimCursor) (statement string, args []any) {
	from, of, columns := `claims AS c`, "c.", placeColumns
	place := []any{before.Campaign, before.Shard, before.Epoch, before.Seq}
	if f.PaymentRef != "" {
		from = `payments AS p JOIN claims AS c ON c.campaign = p.campaign AND c.shard = p.shard AND c.epoch = p.epoch AND c.seq = p.seq`
		of = "p."
	} else {
		columns, place = append([]string{"created_at"}, columns...), append([]any{before.At}, place...)
	}
	order := ""
	columns = slices.Clone(columns)
	for i := range columns {
		columns[i] = of + columns[i]
		order += ", " + columns[i] + " DESC"
	}
	where, args := d.compare(columns, "<", place...)
	where, args = alsoWanted(f, where, args...)
	where, args = inCampaigns(f, where, args)
	if f.PaymentRef != "" {
		where, args = where+` AND p.ref = ?`, append(args, f.PaymentRef)
	}
	return `SELECT ` + qualifiedClaimColumns + ` FROM ` + from + ` WHERE ` + where + ` ORDER BY ` + order[2:] + ` LIMIT ?`, args
}

var qualifiedClaimColumns = "c." + strings.ReplaceAll(claimColumns, ", ", ", c.")

// CampaignsOf implements dibs.Catalog. The regular orders come first, so that
// newer campaigns do not crowd them out.
func (l *Ledger) CampaignsOf(ctx context.Context, product string) ([]uint32, error) {
	numbers := []uint32{}
	err := l.read(ctx, "list a product's campaigns", func(s *session) error {
		return s.each(ctx, `SELECT number FROM campaigns WHERE product_id = ?
			ORDER BY CASE WHEN state = ? THEN 0 ELSE 1 END, number DESC LIMIT ?`,
			[]any{product, string(dibs.RegularState), dibs.MaxCampaignsListed}, func(rows *sql.Rows) error {
				var n uint32
				err := rows.Scan(&n)
				numbers = append(numbers, n)
				return err
			})
	})
	slices.SortFunc(numbers, func(a, b uint32) int { return cmp.Compare(b, a) })
	return numbers, err
}
