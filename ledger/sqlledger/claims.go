package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// Claims reads settled claims and moves them through their states.
//
// A claim's row says the same as its events and its payment do: status,
// restocked and the number of steps. All three are written in one transaction,
// together with the claim's items, the sums of its shard and campaign, the
// command to the engine and the row of the feed. The row moves by
// compare-and-set.
//
// Locks are taken in the order claims (by position), shards, campaigns, feed.
// Settling takes them in the same order.
type Claims struct{ db *sqldb.DB }

// claimColumns are the columns of a claim but for request_key, the hash of the
// request's key, which only look-ups by it need. The position (campaign, shard,
// epoch, seq) is the primary key, so that settling appends to the table. steps
// is how many events the claim has; pay_by is 0 without a deadline.
const claimColumns = `campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, pay_by, created_at, restocked, steps`

// Claim returns a claim by its position. ErrNotFound.
func (cl *Claims) Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error) {
	return cl.one(ctx, notFound(aClaim, p), `campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, p.Campaign, p.Shard, p.Epoch, p.Seq)
}

// byKey is the condition of a user's claim by the hash of its request key. The
// index by user finds the few claims of one user.
const byKey = `user_id = ? AND campaign = ? AND request_key = ? ORDER BY created_at LIMIT 1`

// ClaimByKey returns a user's claim by the hash of its request key; 0 finds
// none. ErrNotFound.
func (cl *Claims) ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*dibs.Claim, error) {
	none := dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no claim by this key", ZH: "没有使用该幂等键的领取记录"})
	if key == 0 {
		return nil, none
	}
	return cl.one(ctx, none, byKey, user, campaign, int64(key))
}

// one reads the claim of a condition, with items and events from the same state
// of the ledger.
func (cl *Claims) one(ctx context.Context, none error, where string, args ...any) (*dibs.Claim, error) {
	return sqldb.Result(ctx, cl.db.Snapshot, "read claim", func(s *sqldb.Session) (*dibs.Claim, error) {
		found := make([]dibs.Claim, 1)
		if err := sqldb.One(ctx, s, `SELECT `+claimColumns+` FROM claims WHERE `+where, args, none, &found[0], scanClaim); err != nil {
			return nil, err
		}
		return &found[0], complete(ctx, s, found)
	})
}

// complete adds to claims what is not in their rows: items, events, reference and
// comment.
func complete(ctx context.Context, s *sqldb.Session, claims []dibs.Claim) error {
	if err := readItems(ctx, s, claims); err != nil {
		return err
	}
	if err := applyEvents(ctx, s, pointers(claims)); err != nil {
		return err
	}
	return readNotes(ctx, s, pointers(claims))
}

// claimCursor is where a page of claims ended.
type claimCursor struct {
	At       int64  `json:"t,omitempty"`
	Campaign uint32 `json:"c"`
	Shard    uint8  `json:"s"`
	Epoch    uint16 `json:"e"`
	Seq      uint32 `json:"q"`
}

// cursorOf is the cursor behind a claim; byTime says that the list is ordered
// by time.
func cursorOf(c *dibs.Claim, byTime bool) claimCursor {
	p := c.Position
	k := claimCursor{Campaign: p.Campaign, Shard: p.Shard, Epoch: p.Epoch, Seq: p.Seq}
	if byTime {
		k.At = c.CreatedAt.UnixMilli()
	}
	return k
}

// readClaimCursor reads a page's cursor. A forged one may lie beyond what a
// column holds.
func readClaimCursor(page dibs.Page, begin claimCursor) (claimCursor, error) {
	_, err := readCursor(page.Cursor, &begin)
	begin.Campaign, begin.Epoch = min(begin.Campaign, dibs.MaxCampaignNumber+1), min(begin.Epoch, dibs.MaxEpoch+1)
	return begin, err
}

// ClaimList lists claims: those of a user the newest first, others in the order
// of their positions.
func (cl *Claims) ClaimList(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	begin := claimCursor{}
	if f.UserID != "" {
		begin = claimCursor{At: math.MaxInt64, Campaign: dibs.MaxCampaignNumber + 1}
	}
	after, err := readClaimCursor(page, begin)
	if err != nil {
		return dibs.List[dibs.Claim]{}, err
	}
	q := claimListQuery(cl.db.Dialect, f, after)
	limit := limitOf(page)
	found, err := sqldb.Result(ctx, cl.db.Snapshot, "list claims", func(s *sqldb.Session) ([]dibs.Claim, error) {
		found, err := sqldb.List(ctx, s, q.statement, append(q.args, limit+1), scanClaim)
		if err != nil {
			return nil, err
		}
		return found, complete(ctx, s, found)
	})
	if err != nil {
		return dibs.List[dibs.Claim]{}, err
	}
	return cut(found, limit, func(c *dibs.Claim) claimCursor { return cursorOf(c, f.UserID != "") })
}

// claimListQuery reads a page of claims, but for its limit.
func claimListQuery(d *sqldb.Dialect, f dibs.ClaimFilter, after claimCursor) (q query) {
	position := []any{after.Campaign, after.Shard, after.Epoch, after.Seq}
	order := ` ORDER BY campaign, shard, epoch, seq LIMIT ?`
	// Each case follows an index: claims_by_user, the claims of a campaign by
	// position, or all claims by position.
	switch {
	case f.UserID != "":
		q.statement, q.args = d.Compare(append([]string{"created_at"}, positionColumns...), "<", append([]any{after.At}, position...)...)
		q.and(`user_id = ?`, f.UserID)
		order = ` ORDER BY created_at DESC, campaign DESC, shard DESC, epoch DESC, seq DESC LIMIT ?`
	case f.Campaign != 0:
		q.statement, q.args = d.Compare(positionColumns[1:], ">", position[1:]...)
	default:
		q.statement, q.args = d.Compare(positionColumns, ">", position...)
	}
	if f.Campaign != 0 {
		q.and(`campaign = ?`, f.Campaign)
	}
	if f.Status != nil {
		q.and(`status = ?`, int64(*f.Status))
	}
	q.statement = `SELECT ` + claimColumns + ` FROM claims WHERE ` + q.statement + order
	return q
}

// scanClaim reads claimColumns. A claim that has events gets room for them, by
// which applyEvents knows it.
func scanClaim(rows *sql.Rows, c *dibs.Claim) error {
	var amount, payBy, created, steps int64
	var currency string
	p := &c.Position
	err := rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq, &c.UserID, &c.Quantity, &c.Status, &c.OrderType,
		&amount, &currency, &payBy, &created, &c.Restocked, &steps)
	c.Amount, c.PayBy, c.CreatedAt = joinMoney(amount, currency), fromOptionalMS(payBy), fromMS(created)
	c.UpdatedAt = c.CreatedAt
	if steps > 0 {
		c.Events = make([]dibs.ClaimEvent, 0, steps)
	}
	return err
}

// Luck implements claims.Ledger. The shares of a red packet are its items: no index has them by amount, so that each
// call reads all of them, up to dibs.MaxShares. Within a shard, claims follow time.
func (cl *Claims) Luck(ctx context.Context, campaign uint32, most int) (claims.Luck, error) {
	const opened = ` FROM items WHERE campaign = ? AND claim_epoch IS NOT NULL`
	const op = "read the shares of a red packet"
	return sqldb.Result(sqldb.Long(ctx, sqldb.LongStatement), cl.db.Snapshot, op, func(s *sqldb.Session) (l claims.Luck, err error) {
		if err := s.Row(ctx, `SELECT COUNT(*), COALESCE(SUM(amount), 0), (SELECT COALESCE(MAX(created_at), 0) FROM claims WHERE campaign = ?)`+opened,
			[]any{campaign, campaign}, &l.Opened, &l.Sum, optionalMS(&l.LastAt)); err != nil {
			return l, err
		}
		l.Greatest, err = sqldb.List(ctx, s, `SELECT c.user_id, i.amount, c.created_at FROM
			(SELECT campaign, shard, claim_epoch, claim_seq, amount`+opened+` ORDER BY amount DESC, claim_epoch, claim_seq, shard LIMIT ?) AS i
			JOIN claims AS c ON c.campaign = i.campaign AND c.shard = i.shard AND c.epoch = i.claim_epoch AND c.seq = i.claim_seq`,
			[]any{campaign, most}, func(rows *sql.Rows, share *claims.OpenedShare) error {
				return rows.Scan(&share.UserID, &share.Amount, ms(&share.At))
			})
		slices.SortStableFunc(l.Greatest, func(a, b claims.OpenedShare) int {
			return cmp.Or(cmp.Compare(b.Amount, a.Amount), a.At.Compare(b.At), cmp.Compare(a.UserID, b.UserID))
		})
		return l, err
	})
}

// positionColumns are the columns of a claim's position.
var positionColumns = []string{"campaign", "shard", "epoch", "seq"}

// comparePositions orders positions as the primary key of claims does.
func comparePositions(a, b dibs.Position) int {
	return cmp.Or(cmp.Compare(a.Campaign, b.Campaign), cmp.Compare(a.Shard, b.Shard),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
}

// run is claims of one epoch of a shard, in the order of their seqs.
type run struct {
	shard dibs.ShardID
	epoch uint16
	seqs  []any
}

// runsOf sorts positions and divides them into runs. One that is listed twice
// is taken once.
func runsOf(at []dibs.Position) []run {
	at = slices.Clone(at)
	slices.SortFunc(at, comparePositions)
	var runs []run
	for _, p := range slices.Compact(at) {
		last := len(runs) - 1
		if last < 0 || runs[last].shard != p.ShardID || runs[last].epoch != p.Epoch {
			runs, last = append(runs, run{shard: p.ShardID, epoch: p.Epoch}), last+1
		}
		runs[last].seqs = append(runs[last].seqs, int64(p.Seq))
	}
	return runs
}

// condition says that a row belongs to one of some claims, by the names of its
// table and of the columns of the claim's position. It returns the arguments,
// first ones included.
func (r *run) condition(s *sqldb.Session, table, epoch, seq string, seqs []any, first ...any) (condition string, args []any) {
	f := formsFor(s)
	// The list may name a seq more than once, which IN does not mind; an array
	// would find the row as often, and is made shorter again.
	if f.seqs == nil {
		return "campaign = ? AND shard = ? AND " + epoch + " = ? AND " + seq + " IN (" + sqldb.Repeat("?", len(seqs)) + ")", r.args(seqs, first...)
	}
	return f.seqs(table, epoch, seq), append(r.args(nil, first...), slices.Compact(columnOf[int64](seqs, 1)))
}

// lock is the statement that reads some claims and keeps others from changing
// them, and its arguments.
func (r *run) lock(s *sqldb.Session, seqs []any) (statement string, args []any) {
	f := formsFor(s)
	if f.lockSeqs == nil {
		where, args := r.condition(s, "claims", "epoch", "seq", seqs)
		return "SELECT " + claimColumns + " FROM claims WHERE " + where + s.ForUpdate, args
	}
	return f.lockSeqs(claimColumns), append(r.args(nil), slices.Compact(columnOf[int64](seqs, 1)))
}

// runLength is the most claims that one statement names. A power of two, since
// lists are filled up to one.
const runLength = 512

// each calls f with some of the run's seqs at a time. Lists are filled up to
// powers of two with their last seq, so that few texts are prepared.
func (r *run) each(f func(seqs []any) error) error {
	for part := range slices.Chunk(r.seqs, runLength) {
		n := 1
		for n < len(part) {
			n *= 2
		}
		seqs := slices.Clone(part)
		for len(seqs) < n {
			seqs = append(seqs, part[len(part)-1])
		}
		if err := f(seqs); err != nil {
			return err
		}
	}
	return nil
}

// eachRun calls f with claims at some positions, some of one run at a time.
func eachRun(at []dibs.Position, f func(r *run, seqs []any) error) error {
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error { return f(&r, seqs) }); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls scan for each row, with some columns, of a table that names claims by
// their positions: those of the claims at some positions.
func eachOf(
	ctx context.Context, s *sqldb.Session, at []dibs.Position, table, columns string, scan func(*run, *sql.Rows) error,
) error {
	return eachRun(at, func(r *run, seqs []any) error {
		where, args := r.condition(s, table, "epoch", "seq", seqs)
		return s.Each(ctx, `SELECT `+columns+` FROM `+table+` WHERE `+where, args,
			func(rows *sql.Rows) error { return scan(r, rows) })
	})
}

// args are the arguments of a statement for some of the run's seqs, after the
// first ones.
func (r *run) args(seqs []any, first ...any) []any {
	return append(append(first, int64(r.shard.Campaign), int64(r.shard.Shard), int64(r.epoch)), seqs...)
}

// position is that of one of the run's claims.
func (r *run) position(seq uint32) dibs.Position {
	return dibs.Position{ShardID: r.shard, Cursor: dibs.Cursor{Epoch: r.epoch, Seq: seq}}
}

// applyEvents reads and applies the events of claims that were scanned with
// room for some.
func applyEvents(ctx context.Context, s *sqldb.Session, claims []*dibs.Claim) error {
	byPosition := make(map[dibs.Position]*dibs.Claim)
	var at []dibs.Position
	for _, c := range claims {
		if cap(c.Events) > 0 {
			byPosition[c.Position] = c
			at = append(at, c.Position)
		}
	}
	return eachRun(at, func(r *run, seqs []any) error {
		where, args := r.condition(s, "claim_events", "epoch", "seq", seqs)
		return s.Each(ctx, `SELECT seq, n, step, status, at, facts FROM claim_events WHERE `+where+` ORDER BY seq, n`,
			args, func(rows *sql.Rows) error {
				e, seq, err := scanEvent(rows)
				if err == nil {
					byPosition[r.position(seq)].Apply(&e)
				}
				return err
			})
	})
}

// scanEvent reads seq, n, step, status, at and facts. facts is JSON, empty for
// a step without any.
func scanEvent(rows *sql.Rows) (e dibs.ClaimEvent, seq uint32, err error) {
	var facts []byte
	if err = rows.Scan(&seq, &e.N, &e.Step, &e.Status, ms(&e.At), &facts); err != nil {
		return e, seq, err
	}
	if len(facts) > 0 {
		if err = json.Unmarshal(facts, &e.EventFacts); err != nil {
			err = fmt.Errorf("%w: an event's facts: %w", dibs.ErrCorrupt, err)
		}
	}
	return e, seq, err
}

// pointers lists the addresses of claims.
func pointers(claims []dibs.Claim) []*dibs.Claim {
	list := make([]*dibs.Claim, len(claims))
	for i := range claims {
		list[i] = &claims[i]
	}
	return list
}
