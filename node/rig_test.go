package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a node whose clock the test moves, in a folder that outlives it.
type rig struct {
	*testing.T
	dir    string
	node   *node.Node
	offset atomic.Int64 // nanoseconds that the clock is ahead
	tune   node.ServiceConfig
}

func newRig(t *testing.T, tune node.ServiceConfig) *rig {
	r := &rig{T: t, dir: freshDir(t), tune: tune}
	r.open()
	t.Cleanup(func() { r.close() })
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

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.offset.Load())) }

func (r *rig) pass(d time.Duration) { r.offset.Add(int64(d)) }

func (r *rig) open() {
	r.Helper()
	n, err := node.Open(r.Context(), node.Config{Dir: r.dir, Migrate: true, Now: r.now, Service: r.tune})
	if err != nil {
		r.Fatal(err)
	}
	r.node = n
}

func (r *rig) close() {
	r.Helper()
	if r.node == nil {
		return
	}
	n := r.node
	r.node = nil
	if err := n.Close(context.Background()); err != nil {
		r.Error(err)
	}
}

// abandon closes the node and leaves it no time to settle. False when there was
// nothing to settle any more.
func (r *rig) abandon() bool {
	r.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	n := r.node
	r.node = nil
	err := n.Close(now)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Fatal(err)
	}
	return err != nil
}

func (r *rig) reopen() {
	r.Helper()
	r.close()
	r.open()
}

// sale is the spec of a sale that is open for an hour.
func (r *rig) sale(id string, units int64) dibs.CampaignSpec {
	return dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: r.now().Add(-time.Minute), EndsAt: r.now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	}
}

func (r *rig) publish(spec dibs.CampaignSpec) {
	r.Helper()
	if _, err := r.node.Service.Campaigns.Create(r.Context(), spec); err != nil {
		r.Fatal(err)
	}
	if _, err := r.node.Service.Campaigns.Publish(r.Context(), spec.ID); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) claim(campaign, user, key string, quantity int64) dibs.Result {
	r.Helper()
	res, err := r.node.Service.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: user, Key: key, Quantity: quantity})
	if err != nil {
		r.Fatalf("claim of %s on %s: %v", user, campaign, err)
	}
	return res
}

// wants makes a claim and checks its outcome.
func (r *rig) wants(want dibs.Reason, campaign, user, key string) dibs.Result {
	r.Helper()
	res := r.claim(campaign, user, key, 1)
	if res.Outcome != want {
		r.Fatalf("claim of %s on %s: %s, want %s", user, campaign, res.Outcome, want)
	}
	return res
}

func (r *rig) stats(campaign string) api.StatsView {
	r.Helper()
	v, err := r.node.Service.Stats(r.Context(), campaign)
	if err != nil {
		r.Fatal(err)
	}
	return v
}

// verify fails the test when a promise is broken.
func (r *rig) verify() {
	r.Helper()
	report, err := r.node.Service.Audit.Verify(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	if !report.OK {
		r.Fatalf("a promise is broken: %+v", report)
	}
}

// sell grants so many units to users u0, u1, …
func (r *rig) sell(campaign string, n int) {
	r.Helper()
	for i := range n {
		r.wants(dibs.Granted, campaign, fmt.Sprint("u", i), fmt.Sprint("k", i))
	}
}

// fails checks an error's reason and returns what else it says.
func (r *rig) fails(err error, want dibs.Reason) dibs.Error {
	r.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != want {
		r.Fatalf("error %v, want %s", err, want)
	}
	return *e
}
