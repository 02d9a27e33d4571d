package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/orders"
)

// OrderList lists the claims that are orders, the newest first: by time for all
// orders and those of a user, else campaign by campaign, the highest number
// first. Each way to look for orders has an index of its own, whose order is
// that of the list, so that a page costs the same however many orders there
// are:
//
//   - by payment, by code and by reference, the rows of payments, items and
//     claim_references name the claims; those of payments that are due have an
//     index for themselves;
//   - of a user, claims_by_user; of campaigns, the claims' own positions,
//     campaign by campaign; of all, claims_by_time.
func (cl *Claims) OrderList(ctx context.Context, f orders.Filter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	var none dibs.List[dibs.Claim]
	after, err := readClaimCursor(page, lastCursor(f))
	if err != nil || f.Campaigns != nil && len(f.Campaigns) == 0 {
		return none, err
	}
	search := orderSearch{f: f, after: after, most: limitOf(page) + 1}
	err = cl.db.Snapshot(ctx, "look for orders", func(s *sqldb.Session) error {
		if err := search.run(ctx, s); err != nil {
			return err
		}
		return complete(ctx, s, search.found)
	})
	if err != nil {
		return none, err
	}
	return cut(search.found, search.most-1, func(c *dibs.Claim) claimCursor { return cursorOf(c, true) })
}

// lastCursor lies behind all that a list has. Lists are read from there, newest
// first.
func lastCursor(f orders.Filter) claimCursor {
	if f.PaymentRef != "" || f.RefundDue || f.Reference != "" || f.Code != "" || f.UserID == "" && f.Campaigns != nil {
		return claimCursor{Campaign: dibs.MaxCampaignNumber + 1, Shard: math.MaxUint8, Epoch: dibs.MaxEpoch + 1}
	}
	at := int64(math.MaxInt64)
	if !f.Until.IsZero() {
		at = f.Until.UnixMilli()
	}
	return claimCursor{At: at}
}

// orderSearch finds up to most orders that lie before a cursor.
type orderSearch struct {
	f     orders.Filter
	after claimCursor
	most  int
	found []dibs.Claim
}

// run chooses the way that has the fewest rows to read: an item, some
// campaigns, a payment, a user, or all.
func (o *orderSearch) run(ctx context.Context, s *sqldb.Session) error {
	switch {
	case o.f.Code != "":
		return o.byCode(ctx, s)
	case o.f.UserID == "" && o.f.PaymentRef == "" && !o.f.RefundDue && o.f.Reference == "" && o.f.Campaigns != nil:
		return o.byCampaigns(ctx, s)
	}
	return o.read(ctx, s, ordersQuery(s.Dialect, o.f, o.after))
}

// read adds what a query finds, which lacks its limit.
func (o *orderSearch) read(ctx context.Context, s *sqldb.Session, q query) error {
	claims, err := sqldb.List(ctx, s, q.statement, append(q.args, o.most-len(o.found)), scanClaim)
	o.found = append(o.found, claims...)
	return err
}

// byCampaigns reads one campaign after the other, the highest number first.
func (o *orderSearch) byCampaigns(ctx context.Context, s *sqldb.Session) error {
	for _, number := range o.f.Campaigns {
		if number > o.after.Campaign {
			continue
		}
		begin := o.after
		if number < o.after.Campaign {
			begin = lastCursor(o.f)
		}
		if err := o.read(ctx, s, campaignOrdersQuery(s.Dialect, o.f, number, begin)); err != nil || len(o.found) == o.most {
			return err
		}
	}
	return nil
}

// itemByValue finds the claim of an item by its campaign and one form of its value.
const itemByValue = `SELECT campaign, shard, claim_epoch, claim_seq FROM items WHERE campaign = ? AND value = ? AND claim_epoch IS NOT NULL`

// byCode reads the orders that have an item of the campaigns, or of all campaigns that have codes or seats. An item
// names its claim, so that each campaign costs one look-up; many are made by one statement.
func (o *orderSearch) byCode(ctx context.Context, s *sqldb.Session) error {
	numbers := o.f.Campaigns
	if numbers == nil {
		var err error
		if numbers, err = sqldb.List(ctx, s, `SELECT number FROM campaigns WHERE stock_kind IN (?, ?) ORDER BY number DESC`,
			[]any{string(dibs.Items), string(dibs.Codes)}, sqldb.Scan1[uint32]); err != nil {
			return err
		}
	}
	var keys [][]any
	for _, number := range numbers {
		// A campaign has an item once: the campaigns before the cursor's own are those that are left.
		for _, form := range s.Codes.Forms(o.f.Code, itemPlace(number)) {
			if number < o.after.Campaign {
				keys = append(keys, []any{number, form})
			}
		}
	}
	var held []dibs.Position
	if err := s.EachByKey(ctx, itemByValue, keys, func(rows *sql.Rows) error {
		held = append(held, dibs.Position{})
		p := &held[len(held)-1]
		return rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq)
	}); err != nil {
		return err
	}
	slices.SortFunc(held, func(a, b dibs.Position) int { return cmp.Compare(b.Campaign, a.Campaign) })
	return o.readHeld(ctx, s, held)
}

// readHeld reads those of some claims that the filter wants.
func (o *orderSearch) readHeld(ctx context.Context, s *sqldb.Session, held []dibs.Position) error {
	for _, p := range held {
		if len(o.found) == o.most {
			return nil
		}
		q := query{`SELECT ` + claimColumns + ` FROM claims AS c WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
			[]any{p.Campaign, p.Shard, p.Epoch, p.Seq}}
		q.filterOrders(&o.f)
		if o.f.Reference != "" {
			q.and(`EXISTS (SELECT 1 FROM claim_references AS r WHERE `+sameClaim("r")+` AND r.reference = ?)`, o.f.Reference)
		}
		if o.f.RefundDue {
			q.and(`EXISTS (SELECT 1 FROM payments AS p WHERE ` + sameClaim("p") + ` AND p.due = 1)`)
		}
		if err := o.read(ctx, s, q.then(` LIMIT ?`)); err != nil {
			return err
		}
	}
	return nil
}

// filterOrders adds what a filter asks of the claims c. None of these conditions
// leads a search: they narrow what the index finds.
func (q *query) filterOrders(f *orders.Filter) {
	if f.UserID != "" {
		q.and(`c.user_id = ?`, f.UserID)
	}
	if f.Status != nil {
		q.and(`c.status = ?`, int64(*f.Status))
	}
	if f.OrderType != 0 {
		q.and(`c.order_type = ?`, int64(f.OrderType))
	}
	if !f.Since.IsZero() {
		q.and(`c.created_at >= ?`, f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		q.and(`c.created_at < ?`, f.Until.UnixMilli())
	}
}

// campaignOrdersQuery reads a page of one campaign's orders before a cursor,
// newest first, but for its limit. Positions of a campaign follow time within a
// shard, which is as good as an order by time there.
func campaignOrdersQuery(d *sqldb.Dialect, f orders.Filter, number uint32, before claimCursor) query {
	where, args := d.Compare([]string{"c.shard", "c.epoch", "c.seq"}, "<", before.Shard, before.Epoch, before.Seq)
	q := query{`SELECT ` + claimColumns + ` FROM claims AS c WHERE ` + where, args}
	q.and(`c.campaign = ?`, number)
	q.filterOrders(&f)
	return q.then(` ORDER BY c.shard DESC, c.epoch DESC, c.seq DESC LIMIT ?`)
}

// ordersQuery reads a page of orders before a cursor, but for its limit: those
// of a payment, of payments that are due, of a reference, of a user, or all.
func ordersQuery(d *sqldb.Dialect, f orders.Filter, before claimCursor) query {
	from, of, columns := `claims AS c`, "c.", positionColumns
	position := []any{before.Campaign, before.Shard, before.Epoch, before.Seq}
	switch {
	case f.PaymentRef != "" || f.RefundDue:
		from, of = `payments AS p JOIN claims AS c ON `+sameClaim("p"), "p."
		if f.Reference != "" {
			from += ` JOIN claim_references AS r ON ` + sameClaim("r")
		}
	case f.Reference != "":
		from, of = `claim_references AS r JOIN claims AS c ON `+sameClaim("r"), "r."
	default:
		columns, position = append([]string{"created_at"}, columns...), append([]any{before.At}, position...)
	}
	order := ""
	// positionColumns is shared by all callers, and must not be renamed in
	// place.
	columns = slices.Clone(columns)
	for i := range columns {
		columns[i] = of + columns[i]
		order += ", " + columns[i] + " DESC"
	}
	where, args := d.Compare(columns, "<", position...)
	q := query{`SELECT ` + qualifiedClaimColumns + ` FROM ` + from + ` WHERE ` + where, args}
	q.filterOrders(&f)
	if f.Campaigns != nil {
		q.and("c.campaign IN ("+sqldb.Repeat("?", len(f.Campaigns))+")", anys(f.Campaigns)...)
	}
	if f.PaymentRef != "" {
		q.and(`p.ref = ?`, f.PaymentRef)
	}
	if f.RefundDue {
		// Not an argument: the index has these rows alone.
		q.and(`p.due = 1`)
	}
	if f.Reference != "" {
		q.and(`r.reference = ?`, f.Reference)
	}
	return q.then(` ORDER BY ` + order[2:] + ` LIMIT ?`)
}

// sameClaim joins the claims c to a table that names claims by their positions.
func sameClaim(t string) string {
	return `c.campaign = ` + t + `.campaign AND c.shard = ` + t + `.shard AND c.epoch = ` + t + `.epoch AND c.seq = ` + t + `.seq`
}

var qualifiedClaimColumns = "c." + strings.ReplaceAll(claimColumns, ", ", ", c.")

// Few claims have a reference or a comment, so both have tables of their own: the
// rows of claims, which settling writes by the thousand, stay as short as they are.

// mostReference is the most characters of a reference, as a request may have it.
const mostReference = 256

// appendReference adds a claim's row to the arguments of insertReferences. A text that
// no request can have given comes of a damaged journal, and is left out: the claim does
// not depend on it.
func appendReference(args []any, shard dibs.ShardID, at dibs.Cursor, text string) []any {
	if text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > mostReference {
		return args
	}
	return append(args, int64(shard.Campaign), int64(shard.Shard), int64(at.Epoch), int64(at.Seq), text)
}

// insertReferences writes what appendReference has gathered. A claim that was put into
// quarantine has its reference already when it is settled.
func insertReferences(ctx context.Context, s *sqldb.Session, args []any) error {
	return s.UpsertRows(ctx, `INSERT INTO claim_references (campaign, shard, epoch, seq, reference) VALUES `, formsFor(s).keepReference, args, 5)
}

// References returns the references of claims that are settled or in quarantine. A
// claim without one is not in the map.
func (cl *Claims) References(ctx context.Context, at []dibs.Position) (map[dibs.Position]string, error) {
	return sqldb.Result(ctx, cl.db.Read, "read references", func(s *sqldb.Session) (map[dibs.Position]string, error) {
		found := make(map[dibs.Position]string)
		return found, eachReference(ctx, s, at, func(p dibs.Position, reference string) { found[p] = reference })
	})
}

// eachReference calls do for each of some claims that has a reference.
func eachReference(ctx context.Context, s *sqldb.Session, at []dibs.Position, do func(dibs.Position, string)) error {
	return eachOf(ctx, s, at, "claim_references", "seq, reference", func(r *run, rows *sql.Rows) error {
		var seq uint32
		var reference string
		err := rows.Scan(&seq, &reference)
		do(r.position(seq), reference)
		return err
	})
}

// Comment stores what an administrator notes about a settled claim; empty takes it
// away. ErrNotFound.
func (cl *Claims) Comment(ctx context.Context, p dibs.Position, comment string, at time.Time) error {
	return cl.db.Write(ctx, "comment on a claim", func(s *sqldb.Session) error {
		position := []any{p.Campaign, p.Shard, p.Epoch, p.Seq}
		// The lock lets one call at a time replace the row.
		if _, err := sqldb.Get[int](ctx, s, `SELECT 1 FROM claims WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`+s.ForUpdate, position...); err != nil {
			return orNotFound(err, aClaim, p)
		}
		n, err := s.Exec(ctx, `UPDATE claim_comments SET comment = ?, updated_at = ? WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
			append([]any{comment, at.UnixMilli()}, position...)...)
		if err != nil || n > 0 {
			return err
		}
		return s.Do(ctx, `INSERT INTO claim_comments (campaign, shard, epoch, seq, comment, updated_at) VALUES (?,?,?,?,?,?)`,
			append(position, comment, at.UnixMilli())...)
	})
}

// readNotes fills in the references and the comments of claims.
func readNotes(ctx context.Context, s *sqldb.Session, claims []*dibs.Claim) error {
	byPosition := make(map[dibs.Position]*dibs.Claim, len(claims))
	at := make([]dibs.Position, len(claims))
	for i, c := range claims {
		byPosition[c.Position], at[i] = c, c.Position
	}
	if err := eachReference(ctx, s, at, func(p dibs.Position, reference string) { byPosition[p].Reference = reference }); err != nil {
		return err
	}
	return eachOf(ctx, s, at, "claim_comments", "seq, comment, updated_at", func(r *run, rows *sql.Rows) error {
		var seq uint32
		var comment string
		var updated time.Time
		if err := rows.Scan(&seq, &comment, ms(&updated)); err != nil {
			return err
		}
		c := byPosition[r.position(seq)]
		if c.Comment = comment; c.UpdatedAt.Before(updated) {
			c.UpdatedAt = updated
		}
		return nil
	})
}

// readReferences fills in the references of the claims that a statement's range of
// positions finds, in a shard.
func readReferences(ctx context.Context, s *sqldb.Session, claims []dibs.Claim, where string, args []any) error {
	if len(claims) == 0 {
		return nil
	}
	found := make(map[dibs.Cursor]string)
	if err := s.Each(ctx, `SELECT epoch, seq, reference FROM claim_references WHERE campaign = ? AND shard = ? AND `+where, args, func(rows *sql.Rows) error {
		var c dibs.Cursor
		var reference string
		err := rows.Scan(&c.Epoch, &c.Seq, &reference)
		found[c] = reference
		return err
	}); err != nil || len(found) == 0 {
		return err
	}
	for i := range claims {
		claims[i].Reference = found[claims[i].Position.Cursor]
	}
	return nil
}
