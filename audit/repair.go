package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// Repair verifies campaigns as Verify does, puts right what can be put right
// without touching a claim, and verifies again: sums beside the rows that
// differ from the rows, commands that wait for the engine, entries in quarantine
// that settle by now, and an engine that differs from a ledger that is whole,
// which is loaded anew. For everything else there is a step that says what to do.
// Repeating it changes nothing that is right.
func (s *Audit) Repair(ctx context.Context, req RepairRequest) (*RepairReport, error) {
	if fs := req.OlderLedger.fault(); fs != nil {
		return nil, dibs.Invalid(fs...)
	}
	campaigns, err := s.toVerify(ctx, req.Campaigns)
	if err != nil {
		return nil, err
	}
	r := &RepairReport{Before: &Report{OK: true, Campaigns: []CampaignReport{}}, Steps: []RepairStep{}}
	books := make(books)
	for _, c := range campaigns {
		one := &repairer{s: s, c: c, books: books, choice: req.OlderLedger}
		before, err := one.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("dibs: repairing campaign %s: %w", c.ID, err)
		}
		r.Before.OK = r.Before.OK && before.OK
		r.Before.Campaigns = append(r.Before.Campaigns, *before)
		r.Steps = append(r.Steps, one.steps...)
	}
	if r.After, err = s.Verify(ctx, req.Campaigns...); err != nil {
		return nil, err
	}
	r.OK = r.After.OK
	return r, nil
}

// repairer repairs one campaign.
type repairer struct {
	s     *Audit
	c     *dibs.Campaign
	books books
	// choice is what to do where the ledger is older than the journal.
	choice OlderLedger
	// readmitted says that items were given out or withdrawn in the ledger which the
	// engine may take for free: a restock may have brought them there meanwhile.
	readmitted bool
	steps      []RepairStep
}

func (r *repairer) did(format string, args ...any) { r.step(true, format, args...) }

func (r *repairer) cannot(format string, args ...any) { r.step(false, format, args...) }

func (r *repairer) step(done bool, format string, args ...any) {
	st := RepairStep{CampaignID: r.c.Name(), Done: done, What: fmt.Sprintf(format, args...)}
	r.steps = append(r.steps, st)
	r.s.log.Warn("repair", "campaign", st.CampaignID, "done", done, "what", st.What)
}

// run repairs in an order in which each step can rely on the ones before: the
// sums, what waits to be settled, and the engine last, which takes all from the
// ledger.
func (r *repairer) run(ctx context.Context) (*CampaignReport, error) {
	waited, err := r.s.commandsOf(ctx, r.c)
	if err != nil {
		return nil, err
	}
	before, f, err := r.s.verifyOne(ctx, r.c, r.books)
	if err != nil {
		return nil, err
	}
	r.sent(waited, f)
	if before.OK {
		return before, nil
	}
	if len(f.lost) > 0 {
		if decided, err := r.older(ctx, f.lost); err != nil || !decided {
			return before, err
		}
		if f, err = r.s.examine(ctx, r.c); err != nil {
			return nil, err
		}
	}
	if err := r.sums(ctx, f); err != nil {
		return nil, err
	}
	if err := r.readmit(ctx); err != nil {
		return nil, err
	}
	// The examination tries again whatever halted the settling.
	if f, err = r.s.examine(ctx, r.c); err != nil {
		return nil, err
	}
	r.reportBroken(f)
	return before, r.engine(ctx, f)
}

// sent says what became of the commands that waited.
func (r *repairer) sent(waited int, f *finding) {
	if n := waited - f.waiting; n > 0 {
		r.did("changes of stock that waited for the engine were sent: %d", n)
	}
}

// sums counts the sums afresh when the rows are to be believed. There are three
// witnesses of what was granted: the rows, the sums beside them, and the engine.
// Sums that agree among themselves, or with the engine, against the rows say
// that claims have vanished or were added, and are not painted over.
func (r *repairer) sums(ctx context.Context, f *finding) error {
	a := f.audit
	if len(a.BadTotals) == 0 {
		return nil
	}
	inRows, inSums := f.held(), a.SumHeld
	asked := f.engine.live && f.exact
	switch {
	case asked && f.engine.granted == inRows:
	case asked && f.engine.granted == inSums, a.SumsAgree && inSums != inRows:
		r.cannot("the ledger's sums say that %d units are held, its claims add up to %d: claims were removed or added by hand; "+
			"bring them back from a backup, sums are not made to fit", inSums, inRows)
		return nil
	}
	changed, err := r.s.ledger.Recount(ctx, r.c)
	if errors.Is(err, dibs.ErrInvalidState) {
		r.cannot("the sums cannot be counted: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, sum := range changed {
		r.did("counted afresh: %s", sum)
	}
	if r.c.Regular() {
		// No engine has it, and no node keeps it.
		return nil
	}
	_, err = r.s.registry.Reread(ctx, r.c.ID)
	return err
}

// readmit tries to settle what is in quarantine.
func (r *repairer) readmit(ctx context.Context) error {
	found, err := r.s.quarantine.InLedger(ctx, live.QuarantineFilter{Campaign: r.c.Number})
	if err != nil {
		return err
	}
	for i := range found {
		q := &found[i]
		at := dibs.Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}
		if q.Entry.Kind == dibs.EntryUnreadable {
			r.cannot("what the journal recorded at %s cannot be read, and stays in quarantine: it was no claim that anybody holds, but may have been a change of the stock: compare what there is with what was ordered", at)
			continue
		}
		switch err := r.s.ledger.Readmit(ctx, r.c, at); {
		case err == nil:
			r.readmitted = r.readmitted || len(q.Entry.Items) > 0
			r.did("settled from the quarantine: claim %s of user %s, %d", r.s.ids.Encode(at), q.Entry.UserID, q.Entry.Quantity)
		case errors.Is(err, dibs.ErrPoison), errors.Is(err, dibs.ErrForked):
			r.cannot("claim %s of user %s, %d, items %v, stays in quarantine: make room for it (restock, or free its items) and repair again: %v",
				r.s.ids.Encode(at), q.Entry.UserID, q.Entry.Quantity, q.Items, err)
		case !errors.Is(err, dibs.ErrNotFound):
			return err
		}
	}
	r.s.quarantine.ReadQuarantine(ctx)
	r.s.funds.TryAgain(r.c.Number)
	return nil
}

// reportBroken names what no repair puts right.
func (r *repairer) reportBroken(f *finding) {
	a := f.audit
	if held := f.held(); held > a.Stock {
		r.cannot("%d units are held of %d: restock by %d if they can be had, or cancel claims with their users", held, a.Stock, held-a.Stock)
	}
	if len(a.OverLimit) > 0 {
		r.cannot("users hold more than the limit: %s; cancel claims with them, or raise the limit", strings.Join(a.OverLimit, ", "))
	}
	for _, bad := range a.BadItems {
		r.cannot("%s: bring the row back from a backup", bad)
	}
	if a.BeyondPosition > 0 {
		r.cannot("%d claims lie past the settled position: they were added by hand, or the position was; bring both back from one backup", a.BeyondPosition)
	}
	for _, lost := range f.claims.lost {
		r.cannot("%s: the ledger was changed by hand or is older than the journal; bring it back from a backup", lost.EN)
	}
	if f.halted {
		r.cannot("what was granted is not settled: the log says why; what the engine holds is kept, and nothing is loaded anew")
	}
}

// whole reports whether the ledger contradicts nothing that is known.
func (f *finding) whole() bool {
	a := f.audit
	return !f.halted && f.held() <= a.Stock && a.StockLeft >= 0 && a.Stock == a.StockLeft+a.Held+a.Withheld &&
		len(a.BadTotals)+len(a.BadItems)+len(f.claims.lost) == 0 && a.BeyondPosition == 0
}

// engine loads shards anew that differ from a ledger that is whole.
func (r *repairer) engine(ctx context.Context, f *finding) error {
	e, a := &f.engine, f.audit
	counts := e.live && f.exact && (e.granted != f.held() || e.remaining != a.StockLeft)
	if !counts && len(f.claims.strange) == 0 && f.waiting == 0 && !r.readmitted {
		return nil
	}
	if !f.whole() {
		r.cannot("engine and ledger differ; the engine is not loaded from a ledger that is not whole: put that right first")
		return nil
	}
	l, err := r.s.loader.EnsureLive(ctx, r.c)
	if err != nil || l == nil {
		return err
	}
	for _, t := range l.Shards {
		if err := r.s.loader.Load(ctx, t); err != nil {
			r.cannot("shard %s could not be loaded anew: %v", t.ID, err)
			continue
		}
		r.did("loaded anew from the ledger: shard %s", t.ID)
	}
	return nil
}
