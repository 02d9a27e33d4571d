package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// newItems are values that join a campaign's items.
type newItems struct {
	campaign uint32
	// first is the number of the first value.
	first  int
	values []string
	// shardOf says to which shard the i-th value belongs.
	shardOf func(i int) int
	// field is the JSON pointer of the list, for faults.
	field string
}

const insertItemsText = `INSERT INTO items (campaign, n, value, shard) VALUES `

// insertItems adds items. A value that is there already is an *Error of
// InvalidRequest that names it.
func (l *Ledger) insertItems(ctx context.Context, s *session, in newItems) error {
	args := make([]any, 0, 4*l.d.itemRows)
	for done := 0; done < len(in.values); {
		n := chunk(len(in.values)-done, l.d.itemRows)
		args = args[:0]
		for i := done; i < done+n; i++ {
			args = append(args, in.campaign, in.first+i, in.values[i], in.shardOf(i))
		}
		_, err := s.exec(ctx, insertItemsText+repeat("(?,?,?,?)", n), args...)
		if err != nil && l.d.classify(err) == faultUnique {
			return l.duplicates(ctx, in, err)
		}
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// chunk is how many of left rows the next statement writes: full statements
// first, then powers of two, so that few texts are prepared.
func chunk(left, most int) int {
	if left >= most {
		return most
	}
	n := 1
	for n*2 <= left {
		n *= 2
	}
	return n
}

// maxListedFaults bounds the faults reported of one list.
const maxListedFaults = 20

// duplicates finds which values the unique constraint refused. It reads on
// another connection: a database may refuse reads in a transaction that failed.
func (l *Ledger) duplicates(ctx context.Context, in newItems, cause error) error {
	var faults []dibs.Fault
	first := make(map[string]int, len(in.values))
	for i, v := range in.values {
		if len(faults) == maxListedFaults {
			break
		}
		field := in.field + "/" + strconv.Itoa(i)
		if j, twice := first[v]; twice {
			faults = append(faults, dibs.Fault{Field: field, Problem: dibs.Textf(
				"is the same as item %d", "与第 %d 项重复", j)})
			continue
		}
		first[v] = i
		var n int
		if err := l.read(ctx, "find duplicate items", func(s *session) error {
			return s.row(ctx, `SELECT COUNT(*) FROM items WHERE campaign = ? AND value = ?`, []any{in.campaign, v}, &n)
		}); err != nil {
			return err
		}
		if n > 0 {
			faults = append(faults, dibs.Fault{Field: field, Problem: dibs.Text{
				EN: "is in the campaign already", ZH: "活动中已存在",
			}})
		}
	}
	if len(faults) == 0 {
		return cause
	}
	return dibs.Invalid(faults...)
}

// itemsOfQuery reads the items of n claims. It does not order them: MariaDB would
// rather walk through all items of the campaign in their order than sort the few.
func (d *dialect) itemsOfQuery(n int) string {
	return `SELECT campaign, shard, claim_epoch, claim_seq, n, value FROM items` + d.byClaim + `
		WHERE ` + anyOf([]string{"campaign", "shard", "claim_epoch", "claim_seq"}, n)
}

// itemsOf fills in the items of claims that may have some, by their numbers.
func (l *Ledger) itemsOf(ctx context.Context, s *session, claims []dibs.Claim) error {
	if len(claims) == 0 {
		return nil
	}
	args := make([]any, 0, 4*len(claims))
	for i := range claims {
		p := claims[i].Position
		args = append(args, p.Campaign, p.Shard, p.Epoch, p.Seq)
	}
	type item struct {
		n     int64
		value string
	}
	found := make(map[dibs.Position][]item, len(claims))
	if err := s.each(ctx, l.d.itemsOfQuery(len(claims)), args, func(rows *sql.Rows) error {
		var p dibs.Position
		var it item
		err := rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq, &it.n, &it.value)
		found[p] = append(found[p], it)
		return err
	}); err != nil {
		return err
	}
	for i := range claims {
		items := found[claims[i].Position]
		slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.n, b.n) })
		for _, it := range items {
			claims[i].Items = append(claims[i].Items, it.value)
		}
	}
	return nil
}

// FreeItems implements dibs.Settlement.
func (l *Ledger) FreeItems(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[dibs.FreeItem], error) {
	var none dibs.List[dibs.FreeItem]
	after := int64(-1)
	if _, err := readCursor(page, &after); err != nil {
		return none, err
	}
	limit := limitOf(page)
	var found []dibs.FreeItem
	err := l.read(ctx, "list free items", func(s *session) error {
		return s.each(ctx, `SELECT n, value FROM items WHERE campaign = ? AND n > ? AND claim_epoch IS NULL AND withdrawn = 0 ORDER BY n LIMIT ?`,
			[]any{campaign, after, limit + 1}, func(rows *sql.Rows) error {
				var it dibs.FreeItem
				err := rows.Scan(&it.N, &it.Value)
				found = append(found, it)
				return err
			})
	})
	if err != nil {
		return none, err
	}
	return cut(found, limit, func(it *dibs.FreeItem) any { return it.N })
}
