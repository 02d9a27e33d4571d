package live_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// adjusting has fail say what becomes of each change of the engine's stock, and
// lists the refs of those that came.
func adjusting(p *testnode.Parts, fail func(a dibs.Adjustment) error) (came func() []string) {
	var mu sync.Mutex
	var refs []string
	f := func(ctx context.Context, a dibs.Adjustment) error {
		mu.Lock()
		refs = append(refs, a.Ref)
		mu.Unlock()
		if err := fail(a); err != nil {
			return err
		}
		return p.Engine.Engine.Adjust(ctx, a)
	}
	p.Engine.OnAdjust.Store(&f)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(refs)
	}
}

// waiting is how many commands the engine has not carried out.
func waiting(p *testnode.Parts) int {
	p.Helper()
	commands, err := p.Ledger.Commands(p.Context(), 0, 100)
	if err != nil {
		p.Fatal(err)
	}
	return len(commands)
}

func restock(p *testnode.Parts, id string, delta int64, ref string) {
	p.Helper()
	if _, err := p.Campaigns.ChangeStock(p.Context(), id, dibs.StockChange{Delta: delta}, ref); err != nil {
		p.Fatal(err)
	}
}

// A command for a shard that is not open waits for it while the campaign sells,
// and is dropped when it is over.
func TestACommandForAShardThatIsNotOpen(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Publish("over", 10)
	notOpen := func(dibs.Adjustment) error { return dibs.ErrNotOpen }
	came := adjusting(p, notOpen)
	restock(p, "sale", 5, "kept")
	if n := waiting(p); n != 1 || !slices.Contains(came(), "kept") {
		t.Fatalf("%d commands wait, and %q came", n, came())
	}
	p.Engine.OnAdjust.Store(nil)
	if st := p.Whole("sale"); st.Remaining != 15 {
		t.Errorf("%d are left, want 15", st.Remaining)
	}

	adjusting(p, notOpen)
	restock(p, "over", 5, "dropped")
	if _, err := p.Campaigns.End(t.Context(), "over"); err != nil {
		t.Fatal(err)
	}
	p.Eventually("the command of the campaign that is over is dropped", func() bool { return waiting(p) == 0 })
}

// A command for a shard that was never opened is dropped, and no engine is asked about it: the
// first load counts it.
func TestACommandForADraft(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Draft("sale", 10)
	came := adjusting(p, func(dibs.Adjustment) error { return nil })
	restock(p, "sale", 5, "more")
	p.Eventually("the command is dropped", func() bool { return waiting(p) == 0 })
	if refs := came(); len(refs) != 0 {
		t.Errorf("%q came to the engine, which has never opened the shard", refs)
	}
	if _, err := p.Campaigns.Publish(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	if st := p.Whole("sale"); st.Remaining != 15 {
		t.Errorf("%d are left, want 15", st.Remaining)
	}
}

// While a command cannot be sent, no later one goes to its shard, and those of
// others do.
func TestCommandsKeepTheirOrder(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Publish("other", 10)
	came := adjusting(p, func(a dibs.Adjustment) error {
		if a.Ref == "first" {
			return dibs.Unavail(dibs.EffectNone, testnode.ErrInjected)
		}
		return nil
	})
	restock(p, "sale", 1, "first")
	restock(p, "sale", 2, "second")
	restock(p, "other", 3, "another")
	if refs := came(); slices.Contains(refs, "second") || !slices.Contains(refs, "another") {
		t.Errorf("while the first command fails, %q came", refs)
	}
	if n := waiting(p); n != 2 {
		t.Errorf("%d commands wait, want 2", n)
	}
	came = adjusting(p, func(dibs.Adjustment) error { return nil })
	if st := p.Whole("sale"); st.Remaining != 13 {
		t.Errorf("%d are left, want 13", st.Remaining)
	}
	if refs := came(); !slices.Equal(refs, []string{"first", "second"}) {
		t.Errorf("%q came, want the first and the second", refs)
	}
	if st := p.Whole("other"); st.Remaining != 13 {
		t.Errorf("%d are left of the other, want 13", st.Remaining)
	}
}
