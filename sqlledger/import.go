package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
)

const (
	// progressEvery is how many items are written between two reports.
	progressEvery = 10_000
	// commandItems and commandBytes bound the items of one command, so that none
	// is larger than what a server takes in one piece.
	commandItems = 5000
	commandBytes = 1 << 20
)

// Import implements dibs.Settlement.
func (l *Ledger) Import(ctx context.Context, in dibs.Import) (added int64, err error) {
	err = l.write(ctx, "import into "+in.Shard.String(), func(s *session) error {
		s.many(in.Count)
		added = 0
		epoch, kind, err := lockForStock(ctx, s, in.Shard)
		if err != nil {
			return err
		}
		if kind != dibs.Items || in.Ref == "" || in.Count < 1 {
			return fmt.Errorf("an import of %d items by the ref %q into a stock of %s", in.Count, in.Ref, kind)
		}
		r := dibs.Restock{Shard: in.Shard, Ref: in.Ref, Delta: in.Count, Why: in.Why}
		fresh, err := l.insertAdjustment(ctx, s, r)
		if err != nil || fresh == 0 {
			return err
		}
		im := &importing{l: l, s: s, in: &in, cmd: command{Campaign: in.Shard.Campaign, Shard: in.Shard.Shard, Epoch: epoch}}
		if err := im.run(ctx); err != nil {
			return err
		}
		added = in.Count
		if err := moveStock(ctx, s, r); err != nil {
			return err
		}
		return l.tellRestock(ctx, s, r)
	})
	return added, err
}

// importing is an import on its way through a transaction.
type importing struct {
	l  *Ledger
	s  *session
	in *dibs.Import
	// first is the number of the import's first item, next of the next one.
	first, next int
	lines       []int
	values      []string
	// repeated are the lines whose item is there already.
	repeated []int
	// cmd collects the items that the engine is told of next; Ref numbers the
	// commands.
	cmd      command
	cmdBytes int
	commands int
}

func (im *importing) run(ctx context.Context) error {
	if err := im.s.row(ctx, `SELECT COALESCE(MAX(n) + 1, 0) FROM items WHERE campaign = ?`,
		[]any{im.in.Shard.Campaign}, &im.first); err != nil {
		return err
	}
	im.next = im.first
	err := im.in.Each(func(line int, item string) error {
		im.lines, im.values = append(im.lines, line), append(im.values, item)
		if len(im.values) < im.l.d.itemRows {
			return nil
		}
		return im.flush(ctx)
	})
	if err == nil {
		err = im.flush(ctx)
	}
	switch {
	case err != nil && !errors.Is(err, errRepeated):
		return err
	case len(im.repeated) > 0:
		return im.refuse()
	case im.next-im.first != int(im.in.Count):
		return fmt.Errorf("the import has %d items instead of %d", im.next-im.first, im.in.Count)
	}
	return im.send(ctx)
}

// errRepeated ends the reading when enough is wrong.
var errRepeated = errors.New("too many lines are repeated")

// flush writes the items that were gathered.
func (im *importing) flush(ctx context.Context) error {
	for done := 0; done < len(im.values); {
		n := chunk(len(im.values)-done, im.l.d.itemRows)
		if err := im.insert(ctx, im.lines[done:done+n], im.values[done:done+n]); err != nil {
			return err
		}
		if err := im.tell(ctx, im.values[done:done+n]); err != nil {
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
	if len(im.repeated) >= maxListedFaults {
		return errRepeated
	}
	return nil
}

// insert writes items by one statement, and finds those that are there already.
func (im *importing) insert(ctx context.Context, lines []int, values []string) error {
	args := make([]any, 0, 4*len(values))
	for i, v := range values {
		args = append(args, im.in.Shard.Campaign, im.next+i, v, im.in.Shard.Shard)
	}
	d := im.l.d
	wrote, err := im.s.exec(ctx, insertItemsText+repeat("(?,?,?,?)", len(values))+d.keepExisting, args...)
	switch {
	case err != nil && (d.keepExisting != "" || d.classify(err) != faultUnique):
		return err
	case err != nil:
		// The statement wrote nothing, and the transaction goes on: one by one.
		for i := range values {
			n, err := im.s.insertNew(ctx, insertItemsText+"(?,?,?,?)", args[4*i:4*i+4]...)
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
	err = im.s.each(ctx, `SELECT n FROM items WHERE campaign = ? AND n >= ? AND n < ?`,
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

// tell adds items to the engine's command. An engine that has never opened the
// shard learns of them by its load.
func (im *importing) tell(ctx context.Context, values []string) error {
	if im.cmd.Epoch == 0 || len(im.repeated) > 0 {
		return nil
	}
	for i, v := range values {
		if len(im.cmd.Items) == 0 {
			im.cmd.FirstItem = uint32(im.next + i)
		}
		im.cmd.Items = append(im.cmd.Items, v)
		if im.cmdBytes += len(v); len(im.cmd.Items) == commandItems || im.cmdBytes >= commandBytes {
			if err := im.send(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// send writes the command to the outbox.
func (im *importing) send(ctx context.Context) error {
	if len(im.cmd.Items) == 0 {
		return nil
	}
	im.commands++
	im.cmd.Ref = fmt.Sprintf("%s/%d", im.in.Ref, im.commands)
	im.cmd.Delta = int64(len(im.cmd.Items))
	err := im.cmd.insert(ctx, im.s)
	im.cmd.Items, im.cmdBytes = im.cmd.Items[:0], 0
	return err
}

// refuse says where the items stand that are there already, in the file or in
// the campaign.
func (im *importing) refuse() error {
	if len(im.repeated) > maxListedFaults {
		im.repeated = im.repeated[:maxListedFaults]
	}
	wanted := make(map[int]string, len(im.repeated))
	for _, line := range im.repeated {
		wanted[line] = ""
	}
	// The file is read again: first for the items of these lines, and then for
	// where they stand first.
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
		problem := dibs.Text{EN: "is in the campaign already", ZH: "活动中已存在"}
		if at := first[wanted[line]]; at < line {
			problem = dibs.Textf("is the same as line %d", "与第 %d 行重复", at)
		}
		faults = append(faults, dibs.LineFault(line, problem))
	}
	return dibs.Invalid(faults...)
}
