package sqlledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/audit"
)

// maxBad bounds each list of an audit: its reader needs examples, and a lost
// table would fill the memory.
const maxBad = 10

// Audits counts the rows of campaigns and accounts afresh and compares them
// with the sums beside them, and makes sums right again.
//
// An audit reads one state of the ledger and locks nothing. Recount locks the
// campaign's rows as settling does, so that nothing of the campaign is settled
// meanwhile. Claims, events and payments are the truth here: sums follow them,
// and no method changes them.
type Audits struct{ db *sqldb.DB }

// auditor counts the rows of one campaign in one transaction. Its steps run in
// an order: later ones use what earlier ones counted.
type auditor struct {
	s *sqldb.Session
	c *dibs.Campaign
	a *audit.CampaignAudit
	// initial, total and left are the sums in the campaign's row.
	initial, total, left int64
	shards               []shardCount
}

// shardCount is what the rows of one shard add up to, in units.
type shardCount struct {
	stock, held int64
	// byStatus begins with Released.
	byStatus [4]int64
	// items counts items that are not withdrawn, free those of them that no
	// claim has.
	items, free int64
	// quarantined are the entries in quarantine, and withheld is what they
	// take.
	quarantined []quarantinedEntry
	withheld    int64
}

// left is what the rows leave over.
func (n *shardCount) left() int64 { return n.stock - n.held - n.withheld }

// total is what the sum of a status has to be.
func (n *shardCount) total(status dibs.Status) int64 {
	units := n.byStatus[status-dibs.Released]
	for i := range n.quarantined {
		if h := &n.quarantined[i]; h.kind == dibs.EntryGrant && h.status == status {
			units += h.counted
		}
	}
	return units
}

// Audit counts a campaign's rows on one state of the ledger and compares them
// with the sums beside them. StockLeft is what the rows leave over: the items
// that no claim has, or the stock less what is held. Lists of findings end
// after ten. ErrNotFound.
func (ad *Audits) Audit(ctx context.Context, c *dibs.Campaign) (*audit.CampaignAudit, error) {
	ctx, op := sqldb.Long(ctx, sqldb.AuditStatement), "audit campaign "+c.ID
	return sqldb.Result(ctx, ad.db.Snapshot, op, func(s *sqldb.Session) (*audit.CampaignAudit, error) {
		au := newAuditor(s, c)
		return au.a, inTurn(ctx,
			au.countStock, au.countClaims, au.countQuarantine, au.countItems, au.findOverLimit, au.findOverProduct, au.findBadItems, au.compareTotals,
			au.compareProduct, au.replayEvents, au.countMoney, au.countCommands)
	})
}

// newAuditor is one that has counted nothing yet.
func newAuditor(s *sqldb.Session, c *dibs.Campaign) *auditor {
	return &auditor{s: s, c: c, a: &audit.CampaignAudit{ByStatus: make(map[string]int64)}}
}

// inTurn takes steps one after the other, up to the first that fails.
func inTurn(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// countStock adds the adjustments to what the campaign began with. Stock is
// what the campaign began with, dealt out to the shards that it had then, and
// every adjustment since; it does not trust stock_total.
func (au *auditor) countStock(ctx context.Context) error {
	var now dibs.Campaign
	if err := readCampaign(ctx, au.s, au.c.Number, &now); err != nil {
		return err
	}
	err := au.s.Row(ctx, `SELECT stock_initial, stock_total, stock_left FROM campaigns WHERE number = ?`,
		[]any{au.c.Number}, &au.initial, &au.total, &au.left)
	if err != nil {
		return orNotFound(err, aCampaign, au.c.ID)
	}
	au.shards = make([]shardCount, now.Shards)
	for i := range now.FirstShards() {
		au.shards[i].stock = partOf(au.initial, i, now.FirstShards())
	}
	err = au.s.Each(ctx, `SELECT shard, SUM(delta) FROM adjustments WHERE campaign = ? GROUP BY shard`,
		[]any{au.c.Number}, func(rows *sql.Rows) error {
			var shard int
			var delta int64
			if err := rows.Scan(&shard, &delta); err != nil {
				return err
			}
			return au.shard(shard, func(n *shardCount) { n.stock += delta })
		})
	for i := range au.shards {
		au.a.Stock += au.shards[i].stock
	}
	return err
}

// shard calls f with a shard's counts, or returns ErrCorrupt when the campaign
// has no such shard.
func (au *auditor) shard(i int, f func(*shardCount)) error {
	if i < 0 || i >= len(au.shards) {
		return fmt.Errorf("%w: campaign %s has rows of shard %d", dibs.ErrCorrupt, au.c.ID, i)
	}
	f(&au.shards[i])
	return nil
}

// countClaims adds the claims up by status, and finds those beyond the
// committed position.
func (au *auditor) countClaims(ctx context.Context) error {
	err := au.s.Each(ctx, `SELECT shard, status, restocked, COUNT(*), SUM(quantity) FROM claims WHERE campaign = ?
		GROUP BY shard, status, restocked`, []any{au.c.Number}, func(rows *sql.Rows) error {
		var shard int
		var status dibs.Status
		var restocked bool
		var claims, units int64
		if err := rows.Scan(&shard, &status, &restocked, &claims, &units); err != nil {
			return err
		}
		au.a.Claims += claims
		au.a.ByStatus[status.String()] += units
		return au.shard(shard, func(n *shardCount) {
			n.byStatus[status-dibs.Released] += units
			if status != dibs.Released && !restocked {
				n.held += units
				au.a.Held += units
			}
		})
	})
	if err != nil {
		return err
	}
	// By tuples on every database: this reads a campaign's claims in any case.
	return au.s.Row(ctx, `SELECT COUNT(*) FROM positions p JOIN claims c ON c.campaign = p.campaign AND c.shard = p.shard
		AND (c.epoch, c.seq) > (p.pos_epoch, p.pos_seq) WHERE p.campaign = ?`, []any{au.c.Number}, &au.a.BeyondPosition)
}

// countQuarantine counts the entries that could not be settled. An entry counts
// for the stock as far as there was some when it was put there; h.counted says
// how much that was.
func (au *auditor) countQuarantine(ctx context.Context) error {
	a := au.a
	err := au.s.Each(ctx, `SELECT shard, epoch, seq, kind, user_id, quantity, counted, status, why FROM quarantine
		WHERE campaign = ? ORDER BY shard, epoch, seq`, []any{au.c.Number}, func(rows *sql.Rows) error {
		var h quarantinedEntry
		at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
		var user, why string
		if err := rows.Scan(&at.Shard, &h.Epoch, &h.Seq, &h.kind, &user, &h.quantity, &h.counted, &h.status, &why); err != nil {
			return err
		}
		at.Cursor = h.Cursor
		a.Quarantined++
		a.Withheld += h.counted
		what := fmt.Sprintf("a withdrawal of %d", -h.quantity)
		if h.kind == dibs.EntryUnreadable {
			what = "what cannot be read"
		}
		if h.kind == dibs.EntryGrant {
			a.QuarantinedUnits += h.units()
			what = fmt.Sprintf("a grant of %d to user %s", h.quantity, user)
		}
		addBad(&a.InQuarantine, "%s, %s: %s", at, what, why)
		return au.shard(int(at.Shard), func(n *shardCount) {
			n.quarantined = append(n.quarantined, h)
			n.withheld += h.counted
		})
	})
	a.StockLeft = a.Stock - a.Held - a.Withheld
	return err
}

// countItems counts the items of campaigns that have some. The sums of a
// campaign of items have to agree with its items as well as with its claims.
func (au *auditor) countItems(ctx context.Context) error {
	if !au.c.HasItems() {
		return nil
	}
	au.a.StockLeft = -au.a.Withheld
	return au.s.Each(ctx, `SELECT shard, COUNT(*), SUM(CASE WHEN claim_epoch IS NULL THEN 1 ELSE 0 END) FROM items
		WHERE campaign = ? AND withdrawn = 0 GROUP BY shard`, []any{au.c.Number}, func(rows *sql.Rows) error {
		var shard int
		var items, free int64
		if err := rows.Scan(&shard, &items, &free); err != nil {
			return err
		}
		au.a.StockLeft += free
		return au.shard(shard, func(n *shardCount) { n.items, n.free = items, free })
	})
}

// findOverLimit finds users who hold more than the limit. A claim whose stock
// came back does not count.
func (au *auditor) findOverLimit(ctx context.Context) error {
	users, err := sqldb.List(ctx, au.s, `SELECT user_id FROM claims WHERE campaign = ? AND status <> ? AND restocked = 0
		GROUP BY user_id HAVING SUM(quantity) > ? ORDER BY user_id LIMIT ?`,
		[]any{au.c.Number, int64(dibs.Released), au.c.LimitPerUser, maxBad}, sqldb.Scan1[string])
	au.a.OverLimit = append(au.a.OverLimit, users...)
	return err
}

// findOverProduct finds users who hold more of the product than the highest limit of
// the campaigns that share one.
func (au *auditor) findOverProduct(ctx context.Context) error {
	product := au.c.LimitedProduct()
	if product == "" || len(au.a.OverLimit) >= maxBad {
		return nil
	}
	users, err := sqldb.List(ctx, au.s, `SELECT user_id FROM claims WHERE campaign IN (SELECT number FROM campaigns`+areSharing+`)
		AND status <> ? AND restocked = 0
		GROUP BY user_id HAVING SUM(quantity) > (SELECT MAX(limit_per_product) FROM campaigns`+areSharing+`) ORDER BY user_id LIMIT ?`,
		[]any{product, int64(dibs.Released), product, maxBad - len(au.a.OverLimit)}, sqldb.Scan1[string])
	for _, user := range users {
		au.a.OverLimit = append(au.a.OverLimit, user+" (product "+product+")")
	}
	return err
}

// findBadItems finds items whose claim does not exist, and claims that have not
// as many items as they should. A released claim, and one whose stock came
// back, should have none.
func (au *auditor) findBadItems(ctx context.Context) error {
	if !au.c.HasItems() {
		return nil
	}
	err := au.s.Each(ctx, `SELECT i.n, i.shard, i.claim_epoch, i.claim_seq FROM items i
		LEFT JOIN claims c ON c.campaign = i.campaign AND c.shard = i.shard AND c.epoch = i.claim_epoch AND c.seq = i.claim_seq
		WHERE i.campaign = ? AND i.claim_epoch IS NOT NULL AND c.campaign IS NULL ORDER BY i.n LIMIT ?`,
		[]any{au.c.Number, maxBad}, func(rows *sql.Rows) error {
			var n uint32
			at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
			if err := rows.Scan(&n, &at.Shard, &at.Epoch, &at.Seq); err != nil {
				return err
			}
			au.badItem("item %d belongs to the claim %s, which does not exist", n, at)
			return nil
		})
	if err != nil {
		return err
	}
	return au.s.Each(ctx, formsFor(au.s).claimsItemsQuery(),
		[]any{int64(dibs.Released), au.c.Number, int64(dibs.Released), maxBad}, func(rows *sql.Rows) error {
			var due, has int64
			at := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
			if err := rows.Scan(&at.Shard, &at.Epoch, &at.Seq, &due, &has); err != nil {
				return err
			}
			au.badItem("the claim %s should have %d items and has %d", at, due, has)
			return nil
		})
}

// claimsItemsQuery finds claims that have not as many items as they should. It
// groups all claims of a campaign with their items, by the index of items by
// claim.
func (f *forms) claimsItemsQuery() string {
	return `SELECT c.shard, c.epoch, c.seq, CASE WHEN c.status = ? OR c.restocked = 1 THEN 0 ELSE c.quantity END AS due, COUNT(i.n)
		FROM claims c LEFT JOIN items i` + f.byClaim + ` ON i.campaign = c.campaign AND i.shard = c.shard
			AND i.claim_epoch = c.epoch AND i.claim_seq = c.seq
		WHERE c.campaign = ? GROUP BY c.shard, c.epoch, c.seq, c.status, c.restocked, c.quantity
		HAVING COUNT(i.n) <> CASE WHEN c.status = ? OR c.restocked = 1 THEN 0 ELSE c.quantity END LIMIT ?`
}

// badItem adds a contradiction between items and claims to the audit.
func (au *auditor) badItem(format string, args ...any) { addBad(&au.a.BadItems, format, args...) }

// addBad adds to a list of an audit, up to maxBad.
func addBad(list *[]string, format string, args ...any) {
	if len(*list) < maxBad {
		*list = append(*list, fmt.Sprintf(format, args...))
	}
}

// compareTotals compares the sums beside the rows with the rows. It also adds
// the shards up for SumHeld and SumsAgree, by which a caller can tell a wrong
// sum from a wrong row.
func (au *auditor) compareTotals(ctx context.Context) error {
	au.compare("campaign stock_total", au.total, au.a.Stock)
	au.compare("campaign stock_left", au.left, au.a.Stock-au.a.Held-au.a.Withheld)
	seen := 0
	sums := shardSums{agree: true}
	err := au.s.Each(ctx, `SELECT shard, stock, stock_left, released, pending, confirmed, refunded FROM positions
		WHERE campaign = ? ORDER BY shard`, []any{au.c.Number}, func(rows *sql.Rows) error {
		var shard int
		var stock, left int64
		var byStatus [4]int64
		if err := rows.Scan(&shard, &stock, &left, &byStatus[0], &byStatus[1], &byStatus[2], &byStatus[3]); err != nil {
			return err
		}
		seen++
		return au.shard(shard, func(n *shardCount) {
			name := fmt.Sprintf("shard %d ", shard)
			au.compare(name+"stock", stock, n.stock)
			au.compare(name+"stock_left", left, n.left())
			for i := range byStatus {
				status := dibs.Released + dibs.Status(i)
				au.compare(name+status.String(), byStatus[i], n.total(status))
			}
			if au.c.HasItems() {
				au.compare(name+"stock of items", stock, n.items)
				au.compare(name+"stock_left of items", left, n.free-n.withheld)
			}
			sums.add(n, stock, left, byStatus)
		})
	})
	au.a.SumHeld = sums.stock - sums.left - sums.withdrawn
	au.a.SumsAgree = sums.agree && sums.stock == au.total && sums.left == au.left
	au.compare("campaign shards", int64(len(au.shards)), int64(seen))
	return err
}

// compare notes a sum that differs from its rows.
func (au *auditor) compare(name string, sum, rows int64) {
	if sum != rows {
		addBad(&au.a.BadTotals, "%s is %d, its rows add up to %d", name, sum, rows)
	}
}

// shardSums adds up what the shards' rows say, without looking at claims.
type shardSums struct {
	stock, left int64
	// withdrawn is what withdrawals in quarantine take.
	withdrawn int64
	// agree is whether the sums of each shard fit each other.
	agree bool
}

// add takes a shard's sums; those by status begin with Released.
func (b *shardSums) add(n *shardCount, stock, left int64, byStatus [4]int64) {
	withdrawn := int64(0)
	for i := range n.quarantined {
		if n.quarantined[i].kind == dibs.EntryAdjust {
			withdrawn += n.quarantined[i].counted
		}
	}
	held := stock - left - withdrawn
	least := byStatus[dibs.Pending-dibs.Released] + byStatus[dibs.Confirmed-dibs.Released]
	// Of the refunded units some may have been restocked.
	most := least + byStatus[dibs.Refunded-dibs.Released]
	b.agree = b.agree && held >= least && held <= most
	b.stock, b.left, b.withdrawn = b.stock+stock, b.left+left, b.withdrawn+withdrawn
}

// compareProduct compares the product's own counts with its orders.
func (au *auditor) compareProduct(ctx context.Context) error {
	if !au.c.Regular() {
		return nil
	}
	var stock, left int64
	if err := au.s.Row(ctx, `SELECT stock, stock_left FROM products WHERE id = ?`, []any{au.c.ProductID}, &stock, &left); err != nil {
		return err
	}
	au.compare("product stock", stock, au.a.Stock)
	au.compare("product stock_left", left, au.a.Stock-au.a.Held-au.a.Withheld)
	return nil
}

// countCommands counts the commands that the engine has not carried out.
func (au *auditor) countCommands(ctx context.Context) error {
	return au.s.Row(ctx, `SELECT COUNT(*) FROM outbox WHERE campaign = ?`, []any{au.c.Number}, &au.a.Waiting)
}
