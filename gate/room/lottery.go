package room

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// lottery is the lottery of one campaign on this node.
//
// row only moves to newer versions, by compare-and-swap; winners is set once. Readers
// need no lock.
type lottery struct {
	r        *Rooms
	campaign atomic.Pointer[dibs.Campaign]
	// row is the lottery as it was read last; nil before.
	row atomic.Pointer[gate.LotteryRow]
	// winners are the users who won; nil before they are known here.
	winners atomic.Pointer[map[string]struct{}]
	enters  batcher[gate.LotteryEntry, gate.LotteryEntry]
	// readMS is when the row was read last.
	readMS atomic.Int64
}

var (
	noEntry    = dibs.Fail(dibs.NotFound, dibs.Text{EN: "you are not registered", ZH: "您未登记"})
	regClosed  = dibs.Fail(dibs.Ended, dibs.Text{EN: "registration is closed", ZH: "登记已截止"})
	notClosed  = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the list is known once registration is closed", ZH: "登记截止后才公布名单"})
	notDrawn   = dibs.Text{EN: "the winners have not been drawn yet", ZH: "尚未抽签"}
	didNotWin  = dibs.Text{EN: "you are not among the winners of the draw", ZH: "您未中签"}
	unasked    = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "no public value was named beforehand for this lottery", ZH: "此抽签未事先指定公开数值"})
	otherValue = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "another public value was told before, and stays", ZH: "已公布其他数值，不能更改"})
)

// lotteryFor returns the lottery of a campaign that has one, in the newest definition
// known.
func (r *Rooms) lotteryFor(c *dibs.Campaign) *lottery {
	v, ok := r.lotteries.Load(c.Number)
	if !ok {
		l := &lottery{r: r}
		l.campaign.Store(c)
		l.enters.begin(&r.running, l.enter)
		v, _ = r.lotteries.LoadOrStore(c.Number, l)
	}
	l := v.(*lottery)
	renew(&l.campaign, c)
	return l
}

// lottery returns the lottery of a campaign, when it has one and users may know.
func (r *Rooms) lottery(c *dibs.Campaign) (*lottery, error) {
	if c.Gate == nil || c.Gate.Room == nil || c.Gate.Room.Mode != dibs.Lottery || c.State == dibs.Draft {
		return nil, gate.NoLottery
	}
	return r.lotteryFor(c), nil
}

// committed returns the lottery's row, which is made when there is none: no entry
// is ever taken before the seed is fixed.
// Two nodes may offer a seed at once: the ledger keeps the first, and both go on with
// that.
func (l *lottery) committed(ctx context.Context) (*gate.LotteryRow, error) {
	if row := l.row.Load(); row != nil {
		return row, nil
	}
	c := l.campaign.Load()
	row := gate.LotteryRow{Campaign: c.Number, Seed: newSeed().String(), Winners: c.Gate.Room.Winners, CommittedAt: l.r.cfg.Now().UTC()}
	if row.Winners == 0 {
		row.Winners = min(c.Stock.Total, dibs.MaxRoomUsers)
	}
	kept, err := l.r.cfg.Ledger.CommitLottery(ctx, row)
	if err != nil {
		return nil, unavailable(fmt.Errorf("room: fixing the seed of a lottery: %w", err))
	}
	l.row.CompareAndSwap(nil, kept)
	return l.row.Load(), nil
}

// Register implements gate.Lotteries.
func (r *Rooms) Register(ctx context.Context, c *dibs.Campaign, user string) (gate.EntryView, bool, error) {
	l, err := r.lottery(c)
	if err != nil {
		return gate.EntryView{}, false, err
	}
	row, err := l.committed(ctx)
	if err != nil {
		return gate.EntryView{}, false, err
	}
	now, spec := r.cfg.Now(), c.Gate.Room
	switch {
	case c.State == dibs.EndedState, !now.Before(spec.RegistrationClosesAt), !row.ClosedAt.IsZero():
		return l.closedFor(ctx, user)
	case now.Before(spec.RegistrationOpensAt):
		return gate.EntryView{}, false, &dibs.Error{
			Reason: dibs.NotStarted, Detail: dibs.Text{EN: "registration opens at %s", ZH: "登记将于 %s开始"}.At(spec.RegistrationOpensAt),
		}
	}
	nonce := newNonce()
	mine := gate.LotteryEntry{UserID: user, Nonce: nonce, Entry: EntryHash(c.ID, user, nonce).String(), At: now.UTC().Truncate(time.Millisecond)}
	got, err := l.enters.call(ctx, mine)
	switch {
	case errors.Is(err, dibs.ErrInvalidState):
		return gate.EntryView{}, false, regClosed
	case err != nil:
		return gate.EntryView{}, false, err
	case got.UserID == "":
		return gate.EntryView{}, false, isFull
	}
	// The entry is stored by now, and never changes.
	r.entries.Set(who{c.Number, user}, got)
	again := got.Entry != mine.Entry
	if !again {
		r.counts.registered.Add(1)
	}
	return l.view(row, &got), again, nil
}

// closedFor answers a user who registers after the closing: one who is registered is
// told so.
func (l *lottery) closedFor(ctx context.Context, user string) (gate.EntryView, bool, error) {
	e, err := l.entryOf(ctx, user)
	if errors.Is(err, noEntry) {
		err = regClosed
	}
	if err != nil {
		return gate.EntryView{}, false, err
	}
	return l.view(l.row.Load(), e), true, nil
}

// entryOf returns a user's entry. It never changes, so that a node remembers it.
func (l *lottery) entryOf(ctx context.Context, user string) (*gate.LotteryEntry, error) {
	key := who{l.campaign.Load().Number, user}
	if e, ok := l.r.entries.GetIfPresent(key); ok {
		return &e, nil
	}
	e, err := l.r.cfg.Ledger.EntryOf(ctx, key.campaign, user)
	switch {
	case errors.Is(err, dibs.ErrNotFound):
		return nil, noEntry
	case err != nil:
		return nil, unavailable(err)
	}
	l.r.entries.Set(key, *e)
	return e, nil
}

// nonceBytes is how much chance hides a user in the public list.
const nonceBytes = 16

func newNonce() string {
	var b [nonceBytes]byte
	// It never fails: it stops the program instead.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// enter stores registrations together.
func (l *lottery) enter(ctx context.Context, entries []gate.LotteryEntry) ([]gate.LotteryEntry, error) {
	c := l.campaign.Load()
	got, err := l.r.cfg.Ledger.RegisterEntries(ctx, c.Number, entries, c.Gate.Room.MaxOf())
	if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
		return nil, unavailable(err)
	}
	return got, err
}

// Entry implements gate.Lotteries.
func (r *Rooms) Entry(ctx context.Context, c *dibs.Campaign, user string) (gate.EntryView, error) {
	l, err := r.lottery(c)
	if err != nil {
		return gate.EntryView{}, err
	}
	e, err := l.entryOf(ctx, user)
	if err != nil {
		return gate.EntryView{}, err
	}
	row, err := l.current(ctx)
	if err != nil {
		return gate.EntryView{}, err
	}
	return l.view(row, e), nil
}

// current returns the lottery's row as it was a moment ago: however many ask, the
// ledger is asked once a second, and only while there is something to wait for.
func (l *lottery) current(ctx context.Context) (*gate.LotteryRow, error) {
	row, err := l.committed(ctx)
	now := l.r.cfg.Now()
	if err != nil || !row.DrawnAt.IsZero() || now.Before(l.campaign.Load().Gate.Room.RegistrationClosesAt) ||
		now.UnixMilli()-l.readMS.Load() < readEvery.Milliseconds() {
		return row, err
	}
	return l.read(ctx)
}

// read reads the row anew.
func (l *lottery) read(ctx context.Context) (*gate.LotteryRow, error) {
	l.readMS.Store(l.r.cfg.Now().UnixMilli())
	row, err := l.r.cfg.Ledger.LotteryOf(ctx, l.campaign.Load().Number)
	if err != nil {
		return nil, unavailable(err)
	}
	l.keep(row)
	return row, nil
}

// keep notes a row that is not older than the one known: entries are counted
// without another version.
func (l *lottery) keep(row *gate.LotteryRow) {
	for {
		old := l.row.Load()
		if old != nil && old.Version > row.Version || l.row.CompareAndSwap(old, row) {
			return
		}
	}
}

// view tells a registration as its user sees it.
func (l *lottery) view(row *gate.LotteryRow, e *gate.LotteryEntry) gate.EntryView {
	c := l.campaign.Load()
	v := gate.EntryView{CampaignID: c.ID, Entry: e.Entry, Nonce: e.Nonce, RegisteredAt: e.At, Result: gate.LotteryPending}
	d, err := drawOf(row)
	if err != nil || d == nil {
		return v
	}
	entry, err := ParseSum(e.Entry)
	if err != nil {
		return v
	}
	ticket := TicketOf(d.key, entry)
	v.Ticket, v.Result = ticket.String(), gate.LotteryLost
	if !Wins(ticket, d.cutoff) {
		return v
	}
	v.Result = gate.LotteryWon
	if _, closed := c.Closed(l.r.cfg.Now()); !closed {
		v.Admission, v.AdmissionExpiresAt = l.r.admission(c, e.UserID)
	}
	return v
}

// drawn is what decides who won.
type drawn struct{ key, cutoff Sum }

// drawOf reads the draw of a row; nil before it.
func drawOf(row *gate.LotteryRow) (*drawn, error) {
	if row.DrawnAt.IsZero() {
		return nil, nil //nolint:nilnil // there is no draw, and nothing is wrong
	}
	seed, err := ParseSum(row.Seed)
	list, listErr := ParseSum(row.ListHash)
	cutoff, cutoffErr := ParseSum(row.Cutoff)
	if err := errors.Join(err, listErr, cutoffErr); err != nil {
		return nil, fmt.Errorf("%w: the lottery of campaign %d: %w", dibs.ErrCorrupt, row.Campaign, err)
	}
	return &drawn{DrawKey(seed, list, row.PublicValue), cutoff}, nil
}

// Lottery implements gate.Lotteries.
func (r *Rooms) Lottery(ctx context.Context, c *dibs.Campaign) (gate.LotteryView, error) {
	l, err := r.lottery(c)
	if err != nil {
		return gate.LotteryView{}, err
	}
	row, err := l.current(ctx)
	if err != nil {
		return gate.LotteryView{}, err
	}
	return l.public(row)
}

// public is what everybody may know of a lottery.
func (l *lottery) public(row *gate.LotteryRow) (gate.LotteryView, error) {
	c, now := l.campaign.Load(), l.r.cfg.Now()
	spec := c.Gate.Room
	seed, err := ParseSum(row.Seed)
	if err != nil {
		return gate.LotteryView{}, fmt.Errorf("%w: the lottery of campaign %s: %w", dibs.ErrCorrupt, c.ID, err)
	}
	v := gate.LotteryView{
		CampaignID: c.ID, State: gate.LotteryOpen, Rule: gate.LotteryRule, Winners: row.Winners, ClosesAt: spec.RegistrationClosesAt,
		SeedHash: SeedHash(seed).String(), CommittedAt: row.CommittedAt, PublicValueIs: spec.PublicValue, PublicValueFormat: spec.PublicValueFormat,
	}
	if opens := spec.RegistrationOpensAt; !opens.IsZero() {
		v.OpensAt = &opens
		if now.Before(opens) {
			v.State = gate.LotteryUpcoming
		}
	}
	if !now.Before(spec.RegistrationClosesAt) || !row.ClosedAt.IsZero() {
		v.State = gate.LotteryClosed
	}
	if row.ListHash != "" {
		v.ClosedAt, v.Entries, v.ListHash = &row.ClosedAt, row.Entries, row.ListHash
	}
	if spec.PublicValue != "" && row.PublicValue != "" {
		v.PublicValue = &row.PublicValue
	}
	d, err := drawOf(row)
	if err == nil && d != nil {
		v.State, v.Seed, v.Key, v.Cutoff, v.DrawnAt = gate.LotteryDrawn, row.Seed, d.key.String(), row.Cutoff, &row.DrawnAt
	}
	return v, err
}

// WriteEntries implements gate.Lotteries.
func (r *Rooms) WriteEntries(ctx context.Context, c *dibs.Campaign, w io.Writer) error {
	l, err := r.lottery(c)
	if err != nil {
		return err
	}
	row, err := l.current(ctx)
	if err != nil {
		return err
	}
	if row.ListHash == "" {
		return notClosed
	}
	return l.each(ctx, func(e *gate.LotteryEntry, _ Sum) error {
		_, err := io.WriteString(w, e.Entry+"\n")
		return err
	})
}

// entryPage is how many entries are read at once.
const entryPage = 5000

// each calls f for each entry, in the order of the public list.
// It reads the ledger page by page and must not be called on the way of a claim.
func (l *lottery) each(ctx context.Context, f func(*gate.LotteryEntry, Sum) error) error {
	number := l.campaign.Load().Number
	for after := ""; ; {
		page, err := l.r.cfg.Ledger.EntriesAfter(ctx, number, after, entryPage)
		if err != nil {
			return unavailable(fmt.Errorf("room: reading the entries of a lottery: %w", err))
		}
		for i := range page {
			sum, err := ParseSum(page[i].Entry)
			if err != nil {
				return fmt.Errorf("%w: an entry of lottery %d: %w", dibs.ErrCorrupt, number, err)
			}
			if err := f(&page[i], sum); err != nil {
				return err
			}
		}
		if len(page) < entryPage {
			return nil
		}
		after = page[len(page)-1].Entry
	}
}

// TellPublicValue implements gate.Lotteries.
func (r *Rooms) TellPublicValue(ctx context.Context, c *dibs.Campaign, value string) (gate.LotteryView, error) {
	l, err := r.lottery(c)
	if err != nil {
		return gate.LotteryView{}, err
	}
	if c.Gate.Room.PublicValue == "" {
		return gate.LotteryView{}, unasked
	}
	faults := (&dibs.PublicValueSpec{Value: value}).Faults(c.Gate.Room)
	for {
		row, err := l.read(ctx)
		if err != nil {
			return gate.LotteryView{}, err
		}
		switch {
		case row.ListHash == "":
			return gate.LotteryView{}, notClosed
		case value != "" && row.PublicValue == value:
			// An earlier version may have taken it in another spelling.
			return l.public(row)
		case faults != nil:
			return gate.LotteryView{}, dibs.Invalid(faults...)
		case row.PublicValue != "":
			return gate.LotteryView{}, otherValue
		}
		next := *row
		next.PublicValue = value
		if err := l.store(ctx, &next); !errors.Is(err, dibs.ErrConflict) {
			if err != nil {
				return gate.LotteryView{}, err
			}
			return l.public(&next)
		}
	}
}

// store stores a changed row; dibs.ErrConflict when another node was first.
func (l *lottery) store(ctx context.Context, row *gate.LotteryRow) error {
	err := l.r.cfg.Ledger.UpdateLottery(ctx, row)
	switch {
	case errors.Is(err, dibs.ErrConflict):
		return err
	case err != nil:
		return unavailable(err)
	}
	l.keep(row)
	return nil
}
