package testnode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// shedRest is how long a user rests whom a node on a busy machine has sent away.
const shedRest = 100 * time.Millisecond

// Rig is a node whose clock the test moves, in a folder that outlives it.
// One goroutine opens and closes it. The clock may be moved and read by any; it never
// goes back.
type Rig struct {
	*testing.T
	Dir    string     // holds the node's ledger and journal
	Node   *node.Node // nil while it is closed
	Tune   node.ServiceConfig
	offset atomic.Int64 // nanoseconds that the clock is ahead
}

// New opens a node in an empty folder, and closes it when the test ends.
func New(t *testing.T, tune node.ServiceConfig) *Rig {
	r := &Rig{T: t, Dir: freshDir(t), Tune: tune}
	r.Open()
	t.Cleanup(func() { r.Close() })
	return r
}

// freshDir is the folder of a node that has never run, with its tables.
func freshDir(t *testing.T) string {
	return fresh.Folder(t, "node", func(dir string) error {
		ctx := context.Background()
		l, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, node.LedgerFile), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		j, err := sqlledger.OpenSQLiteJournal(ctx, filepath.Join(dir, node.JournalFile), sqlledger.Options{Migrate: true})
		if err != nil {
			return errors.Join(err, l.Close())
		}
		return errors.Join(l.Close(), j.Close())
	})
}

// Now is the node's time.
func (r *Rig) Now() time.Time { return time.Now().Add(time.Duration(r.offset.Load())) }

// Pass sets the node's clock ahead.
// Timers of the node do not notice: they run by the real time, and read this clock
// when they fire.
func (r *Rig) Pass(d time.Duration) { r.offset.Add(int64(d)) }

// Open opens the node on its folder, as a start of the program does.
func (r *Rig) Open() {
	r.Helper()
	n, err := node.Open(r.Context(), node.Config{Dir: r.Dir, Migrate: true, Now: r.Now, Service: r.Tune})
	must(r, err)
	r.Node = n
}

// Close closes the node; what was granted is settled before. It does nothing when the
// node is closed.
func (r *Rig) Close() {
	r.Helper()
	if r.Node == nil {
		return
	}
	n := r.Node
	r.Node = nil
	if err := n.Close(context.Background()); err != nil {
		r.Error(err)
	}
}

// Abandon closes the node and leaves it no time to settle. False when there was
// nothing to settle any more.
// It is as near to a crash as one process can come: the journal has what the ledger
// lacks.
func (r *Rig) Abandon() bool {
	r.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	n := r.Node
	r.Node = nil
	err := n.Close(now)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Fatal(err)
	}
	return err != nil
}

// Reopen is a restart of the program.
// The ledger has everything by then; see Abandon for an end without that.
func (r *Rig) Reopen() {
	r.Helper()
	r.Close()
	r.Open()
}

// Sale is the spec of a sale that is open for an hour.
func (r *Rig) Sale(id string, units int64) dibs.CampaignSpec {
	return dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: r.Now().Add(-time.Minute), EndsAt: r.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	}
}

// Publish creates a campaign and publishes it.
func (r *Rig) Publish(spec dibs.CampaignSpec) {
	r.Helper()
	_, err := r.Node.Campaigns.Create(r.Context(), spec)
	must(r, err)
	_, err = r.Node.Campaigns.Publish(r.Context(), spec.ID)
	must(r, err)
}

// Claim makes a claim, which must not fail; a refusal is a result.
func (r *Rig) Claim(campaign, user, key string, quantity int64) dibs.Result {
	r.Helper()
	req := dibs.ClaimRequest{CampaignID: campaign, UserID: user, Key: key, Quantity: quantity}
	res, err := r.Node.Claims.Claim(r.Context(), req)
	// A node on a busy machine may shed some of a crowd, without an effect: they press again, and
	// rest before, or thousands that press without a pause leave those inside no time to be answered.
	for over := time.Now().Add(time.Minute); errors.Is(err, dibs.ErrOverloaded) && time.Now().Before(over) && wait.Sleep(r.Context(), shedRest); {
		res, err = r.Node.Claims.Claim(r.Context(), req)
	}
	if err != nil {
		r.Fatalf("claim of %s on %s: %v", user, campaign, err)
	}
	return res
}

// Wants makes a claim and checks its outcome.
// The outcome is part of the test: any other one ends it.
func (r *Rig) Wants(want dibs.Reason, campaign, user, key string) dibs.Result {
	r.Helper()
	res := r.Claim(campaign, user, key, 1)
	if res.Outcome != want {
		r.Fatalf("claim of %s on %s: %s, want %s", user, campaign, res.Outcome, want)
	}
	return res
}

// Stats returns a campaign's statistics.
func (r *Rig) Stats(campaign string) api.StatsView {
	r.Helper()
	v, err := r.Node.Stats(r.Context(), campaign)
	must(r, err)
	return v
}

// Verify fails the test when a promise is broken.
func (r *Rig) Verify() {
	r.Helper()
	report, err := r.Node.Audit.Verify(r.Context())
	must(r, err)
	if !report.OK {
		r.Fatalf("a promise is broken: %+v", report)
	}
}

// Sell grants so many units to users u0, u1, …
func (r *Rig) Sell(campaign string, n int) {
	r.Helper()
	for i := range n {
		r.Wants(dibs.Granted, campaign, fmt.Sprint("u", i), fmt.Sprint("k", i))
	}
}

// Fails checks an error's reason and returns what else it says.
func (r *Rig) Fails(err error, want dibs.Reason) dibs.Error {
	r.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != want {
		r.Fatalf("error %v, want %s", err, want)
	}
	return *e
}

// Eventually waits until a condition holds; the service works behind the test.
func (r *Rig) Eventually(what string, holds func() bool) {
	r.Helper()
	eventually(r.T, what, holds)
}

// eventually waits until a condition holds. Twenty seconds are for the slowest machine; a
// condition that holds ends it within 5 ms.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%s: not within 20s", what)
		}
	}
}

// Seats publishes a campaign of n items.
func (r *Rig) Seats(id string, n int) {
	r.Helper()
	spec := r.Sale(id, 0)
	spec.Stock = dibs.StockSpec{}
	for i := range n {
		spec.Stock.Items = append(spec.Stock.Items, fmt.Sprint("seat-", i))
	}
	r.Publish(spec)
}

// Settle waits until what was granted is settled, as far as it can be.
// Listing claims settles what was granted before; an error is that of an entry that
// cannot be settled.
func (r *Rig) Settle(campaign string) error {
	r.Helper()
	_, err := r.Node.Claims.OfCampaign(r.Context(), campaign, dibs.ClaimFilter{}, dibs.Page{})
	return err
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
