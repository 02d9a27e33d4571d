package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

const (
	// progressEvery is how many items are written between two reports.
	progressEvery = 10_000
	// commandItems and commandBytes bound the items of one command, so that
	// none is larger than a server takes in one packet.
	commandItems = 5000
	commandBytes = 1 << 20
)

// Import adds items to a campaign of items, as Restock does, and returns how
// many; 0 for a repeat of the ref. It reads the items from in.Each and holds
// some hundred in memory. An item that is listed twice, or that the campaign
// has, is an *Error of InvalidRequest that names its line.
func (st *Stock) Import(ctx context.Context, in campaigns.Import) (added int64, err error) {
	return sqldb.Result(ctx, st.db.Write, "import into "+in.Shard.String(), func(s *sqldb.Session) (int64, error) {
		s.ManyRows(in.Count)
		im := &importer{s: s, in: &in, codes: s.Codes.Snapshot(), most: formsFor(s).itemRows}
		fresh, err := im.begin(ctx)
		if err != nil || !fresh {
			return 0, err
		}
		// From here on items are written as they are read: an import may be
		// larger than memory.
		if err := im.run(ctx); err != nil {
			return 0, err
		}
		for i := range im.parts {
			if err := moveStock(ctx, s, im.parts[i].r); err != nil {
				return 0, err
			}
		}
		return in.Count, appendStockChange(ctx, s, campaigns.Restock{Shard: in.Shard, Ref: in.Ref, Delta: in.Count, Why: in.Why})
	})
}

// importer is an import on its way through a transaction.
type importer struct {
	s  *sqldb.Session
	in *campaigns.Import
	// codes encrypt the items, all under one key.
	codes *keyring.Equals
	// most is the most items of one INSERT.
	most int
	// first is the number of the import's first item, next of the next one.
	first, next int
	// lines and values are the items that were read and not written yet.
	lines  []int
	values []string
	// repeated are the lines whose item the campaign has already.
	repeated []int
	// parts are the shards that the items are divided over, one after the other;
	// commands counts the engine's commands that were written.
	parts    []importPart
	commands int
}

// importPart is a shard's part of an import, with the items of its engine's next
// command.
type importPart struct {
	r     campaigns.Restock
	cmd   command
	bytes int
}

// begin locks the shards and records what each will have more; false when the ref
// exists. Without Spread all items are for one shard.
func (im *importer) begin(ctx context.Context) (fresh bool, err error) {
	in := im.in
	shards := []dibs.ShardID{in.Shard}
	if in.Spread {
		all, err := shardsOf(ctx, im.s, in.Shard.Campaign)
		if err != nil {
			return false, err
		}
		shards = shards[:0]
		for _, n := range all {
			shards = append(shards, dibs.ShardID{Campaign: in.Shard.Campaign, Shard: n})
		}
	}
	for i, shard := range shards {
		epoch, kind, err := lockForStock(ctx, im.s, shard)
		if err != nil {
			return false, err
		}
		if kind != dibs.Items || in.Ref == "" || in.Count < 1 {
			return false, fmt.Errorf("an import of %d items by the ref %q into a stock of %s", in.Count, in.Ref, kind)
		}
		part := importPart{
			r:   campaigns.Restock{Shard: shard, Ref: campaigns.PartRef(in.Ref, i), Delta: partOf(in.Count, i, len(shards)), Why: in.Why},
			cmd: command{Campaign: shard.Campaign, Shard: shard.Shard, Epoch: epoch},
		}
		if part.r.Delta > 0 {
			// The first part has the ref itself: it is new, or none of them is.
			if n, err := insertAdjustment(ctx, im.s, part.r); err != nil || n == 0 {
				return false, err
			}
		}
		im.parts = append(im.parts, part)
	}
	return len(im.parts) > 0, nil
}

// partOf is the part of the item of a number.
func (im *importer) partOf(n int) *importPart { return &im.parts[(n-im.first)%len(im.parts)] }

// run reads all items and writes them. Its error is the list of repeated lines
// when there are some.
func (im *importer) run(ctx context.Context) (err error) {
	if im.first, err = nextItem(ctx, im.s, im.in.Shard.Campaign); err != nil {
		return err
	}
	im.next = im.first
	err = im.in.Each(func(line int, item string) error {
		im.lines, im.values = append(im.lines, line), append(im.values, item)
		if len(im.values) < im.most {
			return nil
		}
		return im.flush(ctx)
	})
	if err == nil {
		err = im.flush(ctx)
	}
	// The transaction is undone by any error: a wrong line leaves nothing.
	switch {
	case err != nil && !errors.Is(err, errRepeated):
		return err
	case len(im.repeated) > 0:
		return im.refuse()
	case im.next-im.first != int(im.in.Count):
		return fmt.Errorf("the import has %d items instead of %d", im.next-im.first, im.in.Count)
	}
	for i := range im.parts {
		if err := im.send(ctx, &im.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// errRepeated ends the reading when enough lines are wrong to be listed.
var errRepeated = errors.New("too many lines are repeated")

// flush writes the items that were read. It reports progress each time another
// progressEvery items are written, and ends the reading when enough repeated
// lines were found.
func (im *importer) flush(ctx context.Context) error {
	for done := 0; done < len(im.values); {
		n := sqldb.Chunk(len(im.values)-done, im.most)
		if err := im.insert(ctx, im.lines[done:done+n], im.values[done:done+n]); err != nil {
			return err
		}
		if err := im.command(ctx, im.values[done:done+n]); err != nil {
			return err
		}
		im.next += n
		done += n
	}
	before := im.next - len(im.values) - im.first
	if im.in.Done != nil && (im.next-im.first)/progressEvery != before/progressEvery {
		im.in.Done(int64(im.next - im.first))
	}
	im.lines, im.values = im.lines[:0], im.values[:0]
	if len(im.repeated) >= dibs.MaxListedFaults {
		return errRepeated
	}
	return nil
}

// insert writes items by one statement, and finds those that the campaign has
// already. Each database says in its own way which rows it left out: by an
// error, after which they are inserted one by one, or by their number, after
// which the numbers of the written ones are read.
func (im *importer) insert(ctx context.Context, lines []int, values []string) error {
	args := make([]any, 0, 4*len(values))
	var others map[string]bool
	if im.first > 0 {
		var err error
		if others, err = otherForms(ctx, im.s, im.codes, im.in.Shard.Campaign, values); err != nil {
			return err
		}
	}
	for i, v := range values {
		if others[v] {
			im.repeated = append(im.repeated, lines[i])
		}
		args = append(args, im.in.Shard.Campaign, im.next+i, im.codes.Seal(v, itemPlace(im.in.Shard.Campaign)), im.partOf(im.next+i).r.Shard.Shard)
	}
	wrote, err := im.s.Exec(ctx, insertItemsText+sqldb.Repeat("(?,?,?,?)", len(values))+im.s.KeepExisting, args...)
	switch {
	case err != nil && (im.s.KeepExisting != "" || im.s.Fault(err) != sqldb.FaultUnique):
		return err
	case err != nil:
		// The statement wrote nothing, and the transaction goes on: insert them
		// one by one.
		for i := range values {
			n, err := im.s.InsertNew(ctx, insertItemsText+"(?,?,?,?)", args[4*i:4*i+4]...)
			if err != nil {
				return err
			}
			if n == 0 {
				im.repeated = append(im.repeated, lines[i])
			}
		}
		return nil
	case wrote == int64(len(values)):
		return nil
	}
	written := make(map[int]bool, wrote)
	err = im.s.Each(ctx, `SELECT n FROM items WHERE campaign = ? AND n >= ? AND n < ?`,
		[]any{im.in.Shard.Campaign, im.next, im.next + len(values)}, func(rows *sql.Rows) error {
			var n int
			err := rows.Scan(&n)
			written[n] = true
			return err
		})
	for i := range values {
		if !written[im.next+i] {
			im.repeated = append(im.repeated, lines[i])
		}
	}
	return err
}

// command adds items to the commands of the shards' engines. An engine that has never
// opened the shard gets them when it loads it.
func (im *importer) command(ctx context.Context, values []string) error {
	if len(im.repeated) > 0 {
		return nil
	}
	for i, v := range values {
		p := im.partOf(im.next + i)
		if p.cmd.Epoch == 0 {
			continue
		}
		if len(p.cmd.Items) == 0 {
			p.cmd.FirstItem = uint32(im.next + i)
		}
		p.cmd.Items = append(p.cmd.Items, v)
		if len(im.parts) > 1 {
			p.cmd.Numbers = append(p.cmd.Numbers, uint32(im.next+i))
		}
		if p.bytes += len(v); len(p.cmd.Items) == commandItems || p.bytes >= commandBytes/len(im.parts) {
			if err := im.send(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// send writes the command to the outbox, under a ref of its own, for an engine that gets
// one twice.
func (im *importer) send(ctx context.Context, p *importPart) error {
	if len(p.cmd.Items) == 0 {
		return nil
	}
	im.commands++
	p.cmd.Ref = campaigns.CommandRef(im.in.Ref, im.commands)
	p.cmd.Delta = int64(len(p.cmd.Items))
	err := p.cmd.insert(ctx, im.s)
	p.cmd.Items, p.cmd.Numbers, p.bytes = p.cmd.Items[:0], p.cmd.Numbers[:0], 0
	return err
}

// refuse says which lines repeat an item, of another line or of the campaign.
func (im *importer) refuse() error {
	if len(im.repeated) > dibs.MaxListedFaults {
		im.repeated = im.repeated[:dibs.MaxListedFaults]
	}
	wanted := make(map[int]string, len(im.repeated))
	for _, line := range im.repeated {
		wanted[line] = ""
	}
	// The file is read twice more: for the items of these lines, and for the
	// first line of each.
	if err := im.in.Each(func(line int, item string) error {
		if _, ok := wanted[line]; ok {
			wanted[line] = item
		}
		return nil
	}); err != nil {
		return err
	}
	first := make(map[string]int, len(wanted))
	for _, item := range wanted {
		first[item] = 0
	}
	if err := im.in.Each(func(line int, item string) error {
		if at, ok := first[item]; ok && at == 0 {
			first[item] = line
		}
		return nil
	}); err != nil {
		return err
	}
	var faults []dibs.Fault
	for _, line := range im.repeated {
		problem := alreadyThere
		if at := first[wanted[line]]; at < line {
			problem = dibs.Textf("is the same as line %d", "与第 %d 行重复", at)
		}
		faults = append(faults, campaigns.LineFault(line, problem))
	}
	return dibs.Invalid(faults...)
}
