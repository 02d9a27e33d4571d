package ledgertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/ledger"
)

// importOf is an import of items, a line each from 1 on. Each calls take once
// for each line, as an upload does that is read from a connection.
func importOf(c *dibs.Campaign, ref string, items []string) campaigns.Import {
	return campaigns.Import{
		Shard: dibs.ShardID{Campaign: c.Number}, Ref: ref, Why: "import", Count: int64(len(items)),
		Each: func(take func(int, string) error) error {
			for i, item := range items {
				if err := take(i+1, item); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// faultsOf lists an error's faults, one a line.
func faultsOf(err error) string {
	var e *dibs.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	var lines []string
	for _, f := range e.Faults {
		lines = append(lines, f.Field+" "+f.Problem.EN)
	}
	return strings.Join(lines, "\n")
}

// testImport imports items into a draft, and into a campaign that an engine
// grants from: that one is told by commands of a bounded size, numbered behind
// the import's ref. The same ref imports once. An engine takes one command in
// one step, so a command of all 5,001 items would stop its claims for that
// long.
func testImport(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("c", 0)
	c.State = dibs.Draft
	f.insert(c, []string{}...)
	// Into a draft: the engine learns of it when it loads the shard.
	first := values("v", 700)
	in := importOf(c, "i1", first)
	var told []int64
	in.Done = func(n int64) { told = append(told, n) }
	same(t, "imported", try(l.Campaigns.Import(ctx, in)).must(t), int64(700))
	// An upload whose answer was lost is sent again with its ref.
	same(t, "imported again by the same ref", try(l.Campaigns.Import(ctx, in)).must(t), int64(0))
	same(t, "the audit's stock", f.clean(c).Stock, int64(700))
	same(t, "commands of a draft", len(f.commands()), 0)

	load, s := f.load(c, 0)
	same(t, "the items of the load", len(load.Items), 700)
	s.grant("u1", 2, 0, 699)
	f.settle(s)
	// Into one that grants: the engine is told, in commands of a bounded size.
	second := values("w", 5001)
	same(t, "imported", try(l.Campaigns.Import(ctx, importOf(c, "i2", second))).must(t), int64(5001))
	cmds := f.commands()
	var all []string
	for i, cmd := range cmds {
		a := cmd.Adjust
		same(t, "a command", dibs.Adjustment{Shard: a.Shard, Epoch: a.Epoch, Ref: a.Ref, Delta: a.Delta, FirstItem: a.FirstItem},
			dibs.Adjustment{Shard: s.shard, Epoch: load.Epoch, Ref: campaigns.CommandRef("i2", i+1), Delta: int64(len(a.Items)), FirstItem: uint32(700 + len(all))})
		all = append(all, a.Items...)
	}
	same(t, "the commands", len(cmds), 2)
	same(t, "the commands' items", strings.Join(all, " "), strings.Join(second, " "))
	// The load has everything, whether or not the engine has obeyed a command.
	load, _ = f.load(c, 0)
	same(t, "all items", len(load.Items), 5701)
	same(t, "the last item", load.Items[5700], "w-5000")
	same(t, "free items", len(load.FreeItems), 5699)
	a := f.clean(c)
	same(t, "the audit's stock", a.Stock, int64(5701))
	same(t, "what is left", a.StockLeft, int64(5699))
	same(t, "progress on the way", len(told), 0)
}

// testImportRefused imports what must be refused whole: items that are there or
// come twice, with the line of each, a file that breaks off, another count than
// was announced. Nothing is stored then, and no command is left. Half an import
// would leave the admin with a list of which they do not know what is sold
// already.
func testImportRefused(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 0), values("v", 5)...)
	f.load(c, 0)
	list := values("w", 1200)
	list[700], list[900], list[1100] = "v-3", "w-10", "w-10"
	err := errOf(l.Campaigns.Import(ctx, importOf(c, "i", list)))
	wants(t, "items that come twice", err, dibs.ErrInvalid)
	same(t, "the faults", faultsOf(err), "/lines/701 is in the campaign already\n/lines/901 is the same as line 11\n/lines/1101 is the same as line 11")
	same := func(what string) {
		t.Helper()
		made := try(l.Campaigns.StockChanges(ctx, c.Number, "i")).must(t)
		cmds := f.commands()
		if a := f.clean(c); a.Stock != 5 || len(made) > 0 || len(cmds) > 0 {
			t.Errorf("%s: stock %d, changes by the ref: %v, %d commands", what, a.Stock, made, len(cmds))
		}
	}
	same("refused")
	// Every line is at fault: the list of faults has to be bounded, here by 20.
	for i := range list {
		list[i] = "v-" + strconv.Itoa(i%5)
	}
	err = errOf(l.Campaigns.Import(ctx, importOf(c, "i", list)))
	wants(t, "nothing but what is there", err, dibs.ErrInvalid)
	if n := strings.Count(faultsOf(err), "\n") + 1; n != 20 {
		t.Errorf("%d faults are listed", n)
	}
	same("nothing but what is there")
	// The reader fails after 300 lines: those must not stay.
	broken := errors.New("the file broke off")
	in := importOf(c, "i", values("x", 300))
	each := in.Each
	in.Each = func(take func(int, string) error) error { return errors.Join(each(take), broken) }
	wants(t, "a file that breaks off", errOf(l.Campaigns.Import(ctx, in)), broken)
	same("a file that breaks off")
	in = importOf(c, "i", values("x", 300))
	// The count was announced first, and the stock is raised by it.
	in.Count++
	refuses(t, "another count", errOf(l.Campaigns.Import(ctx, in)))
	same("another count")
	units := f.insert(campaign("units", 10))
	refuses(t, "items for a stock of units", errOf(l.Campaigns.Import(ctx, importOf(units, "i", []string{"a"}))))
	wants(t, "an unknown campaign",
		errOf(l.Campaigns.Import(ctx, importOf(&dibs.Campaign{Number: c.Number + 7}, "i", []string{"a"}))), dibs.ErrNotFound)
	f.clean(units)
}

// testImportRace: the same import by several at once happens once, and two of
// the same items do not both. The items have to be unique across connections,
// not only within one list.
func testImportRace(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 0), "first")
	f.load(c, 0)
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	const each = 6
	var refusals atomic.Int64
	f.together(2*each, func(i int) error {
		ref := "same"
		if i >= each {
			ref = fmt.Sprint("other", i)
		}
		_, err := ledgers[i%2].Campaigns.Import(t.Context(), importOf(c, ref, values("v", 90)))
		if errors.Is(err, dibs.ErrInvalid) {
			refusals.Add(1)
			return nil
		}
		return err
	})
	// One of the refs was first; its repeats are no error, the others are.
	if n := refusals.Load(); n != each && n != 2*each-1 {
		t.Errorf("%d of %d were refused", n, 2*each)
	}
	same(t, "the stock", f.clean(c).Stock, int64(91))
}
