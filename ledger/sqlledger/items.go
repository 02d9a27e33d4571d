package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// newItems are values that join a campaign's items. Values have to differ from
// each other and from those that the campaign has.
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

// insertItemsText begins an INSERT of items. n numbers the items of a campaign
// from 0 without gaps, in the order in which they came; an item belongs to one
// shard, and has no claim at first.
const insertItemsText = `INSERT INTO items (campaign, n, value, shard) VALUES `

// nextItem is the number that the next item of a campaign gets.
func nextItem(ctx context.Context, s *sqldb.Session, campaign uint32) (n int, err error) {
	err = s.Row(ctx, `SELECT COALESCE(MAX(n) + 1, 0) FROM items WHERE campaign = ?`, []any{campaign}, &n)
	return n, err
}

// itemPlace is the place of a campaign's items for the keys that encrypt them. It has no
// number: a value is stored alike wherever it stands, so that the campaign has it once.
func itemPlace(campaign uint32) string { return "items/" + strconv.FormatUint(uint64(campaign), 10) }

// openItem returns the value that a row of items has. Shares of red packets, and items from
// before there were keys, are plain.
func openItem(codes *keyring.Equals, campaign uint32, stored string) (string, error) {
	value, err := codes.Open(stored, itemPlace(campaign))
	if err != nil {
		err = fmt.Errorf("an item of campaign %d: %w", campaign, err)
	}
	return value, err
}

// otherForms returns which values a campaign has in another form than the one in which they
// would be stored now: plain, or under another key. The unique index does not see these.
func otherForms(ctx context.Context, s *sqldb.Session, codes *keyring.Equals, campaign uint32, values []string) (map[string]bool, error) {
	forms := make(map[string]string, len(values))
	var args []any
	for _, v := range values {
		for _, form := range codes.Forms(v, itemPlace(campaign))[1:] {
			forms[form] = v
			args = append(args, form)
		}
	}
	found := map[string]bool{}
	for len(args) > 0 {
		n := sqldb.Chunk(len(args), withdrawMost)
		stored, err := sqldb.List(ctx, s, `SELECT value FROM items WHERE campaign = ? AND value IN (`+sqldb.Repeat("?", n)+`)`,
			append([]any{campaign}, args[:n]...), sqldb.Scan1[string])
		if err != nil {
			return nil, err
		}
		for _, form := range stored {
			found[forms[form]] = true
		}
		args = args[n:]
	}
	return found, nil
}

// insertItems adds items. A value that the campaign has already is an *Error of
// InvalidRequest that names it.
func insertItems(ctx context.Context, db *sqldb.DB, s *sqldb.Session, in newItems) error {
	most, codes := formsFor(s).itemRows, s.Codes.Snapshot()
	args := make([]any, 0, 4*most)
	for done := 0; done < len(in.values); {
		n := sqldb.Chunk(len(in.values)-done, most)
		args = args[:0]
		if in.first > 0 {
			if others, err := otherForms(ctx, s, codes, in.campaign, in.values[done:done+n]); err != nil {
				return err
			} else if len(others) > 0 {
				return in.duplicates(ctx, db, errors.New("items are stored in other forms"))
			}
		}
		for i := done; i < done+n; i++ {
			args = append(args, in.campaign, in.first+i, codes.Seal(in.values[i], itemPlace(in.campaign)), in.shardOf(i))
		}
		// A repeated value fails the whole statement, and the transaction with
		// it: which value it was is found out afterwards.
		err := s.Do(ctx, insertItemsText+sqldb.Repeat("(?,?,?,?)", n), args...)
		if err != nil && s.Fault(err) == sqldb.FaultUnique {
			return in.duplicates(ctx, db, err)
		}
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// alreadyThere is the fault of an item that the campaign has.
var alreadyThere = dibs.Text{EN: "is in the campaign already", ZH: "活动中已存在"}

// duplicates finds which values the unique constraint refused. It reads on
// another connection: a database may refuse reads in a transaction that failed.
func (in *newItems) duplicates(ctx context.Context, db *sqldb.DB, cause error) error {
	var faults []dibs.Fault
	first := make(map[string]int, len(in.values))
	for i, v := range in.values {
		if len(faults) == dibs.MaxListedFaults {
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
		if err := db.Read(ctx, "find duplicate items", func(s *sqldb.Session) error {
			which, args := itemForms(s, in.campaign, v)
			return s.Row(ctx, `SELECT COUNT(*) FROM items WHERE `+which, args, &n)
		}); err != nil {
			return err
		}
		if n > 0 {
			faults = append(faults, dibs.Fault{Field: field, Problem: alreadyThere})
		}
	}
	if len(faults) == 0 {
		return cause
	}
	return dibs.Invalid(faults...)
}

// itemForms is the condition of a value of a campaign's items, in whatever form it is stored.
func itemForms(s *sqldb.Session, campaign uint32, value string) (where string, args []any) {
	forms := s.Codes.Forms(value, itemPlace(campaign))
	args = []any{campaign}
	for _, form := range forms {
		args = append(args, form)
	}
	return `campaign = ? AND value IN (` + sqldb.Repeat("?", len(forms)) + `)`, args
}

// insertPacket adds a red packet and its shares, which belong to no claim yet, and
// are dealt out to the campaign's shards one after the other. A share is an item:
// its value names its amount, for answers, and its amount is a column, for money.
func insertPacket(ctx context.Context, s *sqldb.Session, number uint32, c *dibs.Campaign, values []string) error {
	p := c.Packet
	if err := s.Do(ctx, `INSERT INTO packets (campaign, sender_id, total_amount, total_currency, share_count, split,
		share_min, share_max, funded_at, returned_at, credited, returned) VALUES (?,?,?,?,?,?,?,?,0,0,0,0)`,
		number, c.SenderID, p.Total.Amount, p.Total.Currency, p.Count, string(p.Split), p.Min, p.Max); err != nil {
		return err
	}
	for shard := range c.Shards {
		if err := insertPacketPosition(ctx, s, dibs.ShardID{Campaign: number, Shard: uint8(shard)}); err != nil {
			return err
		}
	}
	most := formsFor(s).itemRows
	args := make([]any, 0, 5*most)
	for done := 0; done < len(values); {
		n := sqldb.Chunk(len(values)-done, most)
		args = args[:0]
		for i := done; i < done+n; i++ {
			_, amount, ok := dibs.ParseShare(values[i])
			if !ok {
				return fmt.Errorf("share %d of campaign %s is %q", i, c.ID, values[i])
			}
			args = append(args, number, i, values[i], amount, i%c.Shards)
		}
		if err := s.Do(ctx, `INSERT INTO items (campaign, n, value, amount, shard) VALUES `+sqldb.Repeat("(?,?,?,?,?)", n), args...); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// insertPacketPosition makes the row of a shard of which nothing is credited.
func insertPacketPosition(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) error {
	return s.Do(ctx, `INSERT INTO packet_positions (campaign, shard, epoch, seq) VALUES (?,?,0,0)`, shard.Campaign, shard.Shard)
}

// withdrawMost is the most items that one statement withdraws.
const withdrawMost = 512

// withdrawItems takes the items of a withdrawal out of the stock. Each has to
// be free. A withdrawn item stays in the table, so that numbers stay without
// gaps.
func withdrawItems(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, e *dibs.Entry) error {
	taken, err := changeFree(ctx, s, `withdrawn = 1`, nil, shard, e.Items)
	if err == nil && taken != int64(len(e.Items)) {
		err = fmt.Errorf("%w: of %d items that the withdrawal %q takes, %d were free", dibs.ErrCorrupt, len(e.Items), e.Ref, taken)
	}
	return err
}

// changeFree sets something of those items of a shard that are free, and returns how
// many of the named ones those were.
func changeFree(
	ctx context.Context, s *sqldb.Session, set string, values []any, shard dibs.ShardID, items []uint32,
) (changed int64, err error) {
	for len(items) > 0 {
		part := items[:sqldb.Chunk(len(items), withdrawMost)]
		items = items[len(part):]
		n, err := s.Exec(ctx, `UPDATE items SET `+set+` WHERE campaign = ? AND shard = ? AND claim_epoch IS NULL
			AND withdrawn = 0 AND n IN (`+sqldb.Repeat("?", len(part))+`)`,
			slices.Concat(values, []any{shard.Campaign, shard.Shard}, anys(part))...)
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}

// itemsOfQuery reads the items of n claims. It does not order them: MariaDB
// would rather walk through all items of the campaign in their order than sort
// the few.
func (f *forms) itemsOfQuery(n int) string {
	return `SELECT campaign, shard, claim_epoch, claim_seq, n, value FROM items` + f.byClaim + `
		WHERE ` + sqldb.AnyOf([]string{"campaign", "shard", "claim_epoch", "claim_seq"}, n)
}

// readItems fills in the items of claims that may have some, in the order of
// their numbers. Claims that have none stay as they are.
func readItems(ctx context.Context, s *sqldb.Session, claims []dibs.Claim) error {
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
	// By position: two claims of one statement may be of different campaigns.
	found := make(map[dibs.Position][]item, len(claims))
	if err := s.Each(ctx, formsFor(s).itemsOfQuery(len(claims)), args, func(rows *sql.Rows) error {
		var p dibs.Position
		var it item
		err := rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq, &it.n, &it.value)
		if err == nil {
			it.value, err = openItem(s.Codes, p.Campaign, it.value)
			found[p] = append(found[p], it)
		}
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

// readManyItems fills in the items of many claims, some claims at a time.
// Campaigns of units have none and are not asked for any.
func readManyItems(ctx context.Context, s *sqldb.Session, claims []dibs.Claim) error {
	kinds := make(stockKinds)
	for part := range slices.Chunk(claims, dibs.MaxPage) {
		some := false
		for i := range part {
			kind, err := kinds.of(ctx, s, part[i].Position.Campaign)
			if err != nil {
				return err
			}
			some = some || kind != dibs.Units
		}
		if !some {
			continue
		}
		if err := readItems(ctx, s, part); err != nil {
			return err
		}
	}
	return nil
}

// stockKinds remembers the kinds of campaigns' stocks.
type stockKinds map[uint32]dibs.StockKind

// of returns the kind of a campaign's stock.
func (k stockKinds) of(ctx context.Context, s *sqldb.Session, campaign uint32) (dibs.StockKind, error) {
	kind, ok := k[campaign]
	if ok {
		return kind, nil
	}
	err := s.Row(ctx, `SELECT stock_kind FROM campaigns WHERE number = ?`, []any{campaign}, &kind)
	k[campaign] = kind
	return kind, err
}

// CheckItemKeys returns an error of keyring.ErrNoKey when a campaign has an item under a key that is not there: users
// could not get it. The index of values finds one, so that the check does not read all items.
func (st *Stock) CheckItemKeys(ctx context.Context) error {
	return st.checkItemKeys(ctx, st.db.Codes())
}

// checkItemKeys is CheckItemKeys by other keys than those of the ledger.
func (st *Stock) checkItemKeys(ctx context.Context, codes *keyring.Equals) error {
	const first = `SELECT c.number, (SELECT MIN(i.value) FROM items i WHERE i.campaign = c.number AND i.value >= ? AND i.value < ?)
		FROM campaigns c WHERE c.stock_kind <> ?`
	return st.db.Read(sqldb.Long(ctx, sqldb.LongStatement), "check the keys of items", func(s *sqldb.Session) error {
		for _, r := range codes.Unreadable() {
			if err := s.Each(ctx, first, []any{r[0], r[1], string(dibs.Units)}, func(rows *sql.Rows) error {
				var campaign uint32
				var stored sql.NullString
				err := rows.Scan(&campaign, &stored)
				if err == nil {
					_, err = openItem(codes, campaign, stored.String)
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// reencryptMost is the most items that one transaction stores anew.
const reencryptMost = 1000

// ReencryptItems stores encrypted items under the first key, and plain ones too with Options.EncryptCodes; with plain
// it stores all of them plain. It returns how many it changed. It does the same with those in commands that wait for
// the engine. It may run beside nodes that have the old keys and the new one, and may be repeated. Shares of red
// packets stay as they are.
func (st *Stock) ReencryptItems(ctx context.Context, plain bool) (changed int64, err error) {
	renew := st.db.Codes().Renew
	if plain {
		renew = st.db.Codes().Open
	}
	numbers, err := sqldb.ReadList(ctx, st.db, "list campaigns of items", `SELECT number FROM campaigns WHERE stock_kind <> ?
		AND number NOT IN (SELECT campaign FROM packets) ORDER BY number`, []any{string(dibs.Units)}, sqldb.Scan1[uint32])
	if err != nil {
		return 0, err
	}
	for _, number := range numbers {
		for after := int64(-1); after != lastItem; {
			n, next, err := st.reencryptSome(ctx, number, after, renew)
			changed += n
			if err != nil {
				return changed, err
			}
			after = next
		}
	}
	return changed, st.renewCommands(ctx, renew)
}

// lastItem says that there is no further item.
const lastItem = int64(math.MaxInt64)

// reencryptSome stores some items of a campaign as renew returns them, those after a number, and returns the number of
// the last one.
func (st *Stock) reencryptSome(ctx context.Context, campaign uint32, after int64, renew func(stored, place string) (string, error)) (changed, last int64, err error) {
	type item struct {
		n      int64
		stored string
	}
	err = st.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "encrypt items", func(s *sqldb.Session) error {
		changed, last = 0, lastItem
		items, err := sqldb.List(ctx, s, `SELECT n, value FROM items WHERE campaign = ? AND n > ? ORDER BY n LIMIT ?`,
			[]any{campaign, after, reencryptMost}, func(rows *sql.Rows, it *item) error { return rows.Scan(&it.n, &it.stored) })
		if err != nil {
			return err
		}
		if len(items) == reencryptMost {
			last = items[len(items)-1].n
		}
		for _, it := range items {
			value, err := renew(it.stored, itemPlace(campaign))
			if err != nil {
				return fmt.Errorf("item %d of campaign %d: %w", it.n, campaign, err)
			}
			if value == it.stored {
				continue
			}
			n, err := s.Exec(ctx, `UPDATE items SET value = ? WHERE campaign = ? AND n = ? AND value = ?`, value, campaign, it.n, it.stored)
			if err != nil && s.Fault(err) == sqldb.FaultUnique {
				err = fmt.Errorf("campaign %d has its item %d twice, once in another form: withdraw one of them: %w", campaign, it.n, err)
			}
			if err != nil {
				return err
			}
			changed += n
		}
		return nil
	})
	return changed, last, err
}
