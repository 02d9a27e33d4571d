package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/node"
)

// lifeClaims is how many unpaid claims a round has, and lifeCallers how many callers confirm a
// fifth of them, each one at a time, as payment services call back.
const (
	lifeClaims  = 100_000
	lifeCallers = 64
)

// life measures what happens after the grant, on each ledger: payments that come one by one from
// many callers, and unpaid claims that all expire at once, until the engine has their stock for
// sale again. All at once is the worst case, as after a sale that sold out in a second. lateness
// measures the usual case, deadlines at a steady rate. The ledgers stand beside each other; they
// sync each commit, so the figures depend on the disk. Each round ends with a full verification:
// steps that are fast and wrong fail the part.
func life(ctx context.Context, o *options) error {
	fmt.Printf("%d claims; %d callers confirm a fifth of them, the rest expires\n\n", lifeClaims, lifeCallers)
	fmt.Printf("late: how long after its deadline a claim was released, at %d deadlines a second\n\n", dueRate)
	fmt.Println("| ledger | confirm/s | p99 | expired and sold out cleared in | claims/s | late, p50 | late, p99 |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, l := range []struct {
		name string
		get  func() (*servers.Server, error)
	}{{"SQLite", nil}, {"MariaDB", servers.MariaDB}, {"PostgreSQL", servers.Postgres}} {
		if err := lifeOn(ctx, o, l.name, l.get); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", l.name, err), servers.StopAll())
		}
	}
	return servers.StopAll()
}

// lifeOn prints the line of one ledger: the best of the rounds, not the median, since a round takes
// long and what disturbs it only makes it slower. The best expiry may be of another round than the
// best rate of confirmations; the lateness is of the latter's.
func lifeOn(ctx context.Context, o *options, name string, get func() (*servers.Server, error)) error {
	var best lifeFigures
	for range o.rounds {
		f, err := lifeRound(ctx, get)
		if err != nil {
			return err
		}
		if best.confirm == 0 || f.expiry < best.expiry {
			best.expiry = f.expiry
		}
		if f.confirm > best.confirm {
			best.confirm, best.p99 = f.confirm, f.p99
			best.late50, best.late99 = f.late50, f.late99
		}
	}
	expired := float64(lifeClaims-lifeClaims/5) / best.expiry.Seconds()
	fmt.Printf("| %s | %.0f | %s | %s | %.0f | %s | %s |\n", name, best.confirm, best.p99.Round(100*time.Microsecond),
		best.expiry.Round(10*time.Millisecond), expired, best.late50.Round(time.Millisecond), best.late99.Round(time.Millisecond))
	return nil
}

// lifeFigures is one round: confirm is confirmations a second, p99 how long one took at the 99th
// percentile, and expiry the time until all unpaid claims had expired and their stock was back.
type lifeFigures struct {
	confirm     float64
	p99, expiry time.Duration
	// late50 and late99 are how late claims expire at a steady rate.
	late50, late99 time.Duration
}

// lifeRound opens a node with an empty ledger, measures lateness, sells, confirms a fifth, lets the
// rest expire and verifies. The node's clock is the system's plus ahead, so that the round can pass
// the deadline of all claims without waiting for half an hour.
func lifeRound(ctx context.Context, get func() (*servers.Server, error)) (f lifeFigures, err error) {
	cfg, drop, err := place(get)
	if err != nil {
		return f, err
	}
	var ahead atomic.Int64
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	nd, err := node.Open(ctx, cfg)
	if err != nil {
		return f, err
	}
	f.late50, f.late99, err = lateness(ctx, nd)
	if err == nil {
		var more lifeFigures
		more, err = lifeFigured(ctx, nd, &ahead)
		more.late50, more.late99 = f.late50, f.late99
		f = more
	}
	return f, errors.Join(err, nd.Close(ctx), drop())
}

// place is where a node of a round keeps its data: a folder, and with get a new database of a
// server that this process starts. drop removes both.
func place(get func() (*servers.Server, error)) (cfg node.Config, drop func() error, err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return cfg, nil, err
	}
	cfg = node.Config{Dir: dir, Migrate: true}
	if get == nil {
		return cfg, func() error { return os.RemoveAll(dir) }, nil
	}
	s, err := get()
	if err != nil {
		return cfg, nil, err
	}
	url, _, done, err := s.Database()
	cfg.Ledger = url
	return cfg, func() error { return errors.Join(done(), os.RemoveAll(dir)) }, err
}

// lifeFigured measures the payments and the expiry of one round on an open node.
func lifeFigured(ctx context.Context, nd *node.Node, ahead *atomic.Int64) (f lifeFigures, err error) {
	ids, err := sellUnpaid(ctx, nd)
	if err != nil {
		return f, err
	}
	paid := ids[:lifeClaims/5]
	took := make([]time.Duration, len(paid))
	began := time.Now()
	err = inParallel(lifeCallers, len(paid), func(i int) error {
		at := time.Now()
		_, _, err := nd.Service.Orders.Confirm(ctx, paid[i], dibs.PaymentSpec{
			PaymentRef: "pay-" + strconv.Itoa(i), Amount: &dibs.Money{Amount: 500, Currency: "CNY"},
		})
		took[i] = time.Since(at)
		return err
	})
	if err != nil {
		return f, err
	}
	f.confirm = float64(len(paid)) / time.Since(began).Seconds()
	slices.Sort(took)
	f.p99 = took[len(took)*99/100]

	// Payments are due after 30 minutes: from here on every unpaid claim is late at once.
	ahead.Store(int64(time.Hour))
	began = time.Now()
	for {
		st, err := nd.Service.Stats(ctx, "life")
		if err != nil {
			return f, err
		}
		// The engine counts as left what it sells again: the releases have come back to it.
		if st.Remaining == int64(lifeClaims-len(paid)) {
			break
		}
		// Without a bound, a claim that never expires would keep the part running for ever.
		if time.Since(began) > 5*time.Minute {
			return f, fmt.Errorf("unpaid claims do not expire: %+v", st)
		}
		if !wait.Sleep(ctx, 5*time.Millisecond) {
			return f, ctx.Err()
		}
	}
	f.expiry = time.Since(began)
	report, err := nd.Service.Audit.Verify(ctx)
	if err == nil && !report.OK {
		err = fmt.Errorf("a promise is broken: %+v", report)
	}
	return f, err
}

// The deadlines of lateness: so many a second, for so long.
const (
	dueRate = 2000
	dueFor  = 4 * time.Second
)

// lateness grants claims at a steady rate, lets all of them expire a second after their grant, and
// returns how long after its deadline a claim was released, by the times that the ledger has. The
// callers fall behind the rate on a slow machine; each claim's deadline follows its own grant, so
// the figure stays true, at a lower rate than the table says.
// It runs before anything else is sold, so that the expiry at once does not delay it.
func lateness(ctx context.Context, nd *node.Node) (p50, p99 time.Duration, err error) {
	n := int64(dueRate * dueFor / time.Second)
	if err := publishUnpaid(ctx, nd, "due", n, time.Second); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	err = inParallel(lifeCallers, int(n), func(i int) error {
		if !wait.Sleep(ctx, time.Until(began.Add(time.Duration(i)*time.Second/dueRate))) {
			return ctx.Err()
		}
		_, err := nd.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "due", UserID: "u" + strconv.Itoa(i), Key: "k"})
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	released := dibs.Released
	for {
		st, err := nd.Service.Stats(ctx, "due")
		if err != nil {
			return 0, 0, err
		}
		// A claim that was not granted would never be released, and the part would end after a minute.
		if st.Released == n {
			break
		}
		if time.Since(began) > time.Minute {
			return 0, 0, fmt.Errorf("unpaid claims do not expire: %+v", st)
		}
		if !wait.Sleep(ctx, 5*time.Millisecond) {
			return 0, 0, ctx.Err()
		}
	}
	var late []time.Duration
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		l, err := nd.Service.Claims.OfCampaign(ctx, "due", dibs.ClaimFilter{Status: &released}, page)
		if err != nil {
			return 0, 0, err
		}
		for i := range l.Items {
			// The only event of a released claim here is its expiry.
			late = append(late, l.Items[i].Events[0].At.Sub(l.Items[i].PayBy))
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			break
		}
	}
	slices.Sort(late)
	return late[len(late)/2], late[len(late)*99/100], nil
}

// publishUnpaid publishes a sale of so many units, one for each user, at 5.00 CNY, that has to be
// paid in time.
func publishUnpaid(ctx context.Context, nd *node.Node, id string, units int64, payWithin time.Duration) error {
	now, within := time.Now(), dibs.Duration(payWithin)
	if _, err := nd.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: &within,
	}); err != nil {
		return err
	}
	_, err := nd.Service.Campaigns.Publish(ctx, id)
	return err
}

// sellUnpaid sells everything, settled, and returns the claims' ids.
func sellUnpaid(ctx context.Context, nd *node.Node) ([]string, error) {
	if err := publishUnpaid(ctx, nd, "life", lifeClaims, 30*time.Minute); err != nil {
		return nil, err
	}
	ids := make([]string, lifeClaims)
	err := inParallel(1024, lifeClaims, func(i int) error {
		res, err := nd.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "life", UserID: "u" + strconv.Itoa(i), Key: "k"})
		if err == nil && res.Outcome != dibs.Granted {
			err = fmt.Errorf("claim %d: %s", i, res.Outcome)
		}
		if err == nil {
			ids[i] = res.Claim.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// A list waits until what was granted is settled: the payments would otherwise wait for it.
	_, err = nd.Service.Claims.OfCampaign(ctx, "life", dibs.ClaimFilter{}, dibs.Page{})
	return ids, err
}

// inParallel calls f for each number below n, in order of their start, by so many callers at a
// time, and returns one of the errors. A caller stops at its first error, the others go on. errs
// has room for one error of each caller, so none waits to report it.
func inParallel(callers, n int, f func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, callers)
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}
