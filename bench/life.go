package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
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
	for _, l := range ledgers {
		if err := lifeOn(ctx, o, &l); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", l.name, err), servers.StopAll())
		}
	}
	return servers.StopAll()
}

// lifeOn prints the line of one ledger: the best of the rounds, not the median, since a round takes
// long and what disturbs it only makes it slower. The best expiry may be of another round than the
// best rate of confirmations; the lateness is of the latter's.
func lifeOn(ctx context.Context, o *options, l *ledgerKind) error {
	var best lifeFigures
	for range o.rounds {
		f, err := lifeRound(ctx, l)
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
	fmt.Printf("| %s | %.0f | %s | %s | %.0f | %s | %s |\n", l.name, best.confirm, best.p99.Round(100*time.Microsecond),
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
func lifeRound(ctx context.Context, l *ledgerKind) (f lifeFigures, err error) {
	cfg, drop, err := l.place()
	if err != nil {
		return f, err
	}
	var ahead atomic.Int64
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	nd, err := node.Open(ctx, cfg)
	if err != nil {
		return f, err
	}
	if err = f.lateness(ctx, nd); err == nil {
		err = f.figure(ctx, nd, &ahead)
	}
	return f, errors.Join(err, nd.Close(ctx), drop())
}

// figure sells without payment, has a fifth paid, and waits until the rest has expired.
func (f *lifeFigures) figure(ctx context.Context, nd *node.Node, ahead *atomic.Int64) error {
	ids, err := sellUnpaid(ctx, nd)
	if err != nil {
		return err
	}
	paid := ids[:lifeClaims/5]
	took := make([]time.Duration, len(paid))
	began := time.Now()
	err = inParallel(ctx, lifeCallers, len(paid), func(ctx context.Context, i int) error {
		at := time.Now()
		_, _, err := nd.Service.Orders.Confirm(ctx, paid[i], dibs.PaymentSpec{
			PaymentRef: "pay-" + strconv.Itoa(i), Amount: &dibs.Money{Amount: 500, Currency: "CNY"},
		})
		took[i] = time.Since(at)
		return err
	})
	if err != nil {
		return err
	}
	f.confirm = float64(len(paid)) / time.Since(began).Seconds()
	slices.Sort(took)
	f.p99 = took[len(took)*99/100]
	// Payments are due after 30 minutes: from here on every unpaid claim is late at once.
	ahead.Store(int64(time.Hour))
	began = time.Now()
	// The engine counts as left what it sells again: the releases have come back to it.
	err = untilStats(ctx, nd, "life", 5*time.Minute, func(st *api.StatsView) bool { return st.Remaining == int64(lifeClaims-len(paid)) })
	if err != nil {
		return err
	}
	f.expiry = time.Since(began)
	return verified(ctx, nd.Service)
}

// untilStats waits until the numbers of a campaign are as they shall be. Without a bound, a claim
// that never expires would keep the part running for ever.
func untilStats(ctx context.Context, nd *node.Node, id string, within time.Duration, met func(*api.StatsView) bool) error {
	began := time.Now()
	return until(ctx, 5*time.Millisecond, func() (bool, error) {
		st, err := nd.Service.Stats(ctx, id)
		if err == nil && time.Since(began) > within {
			err = fmt.Errorf("unpaid claims do not expire: %+v", st)
		}
		return met(&st), err
	})
}

// verified asks whether every promise holds.
func verified(ctx context.Context, s *node.Service, campaigns ...string) error {
	report, err := s.Audit.Verify(ctx, campaigns...)
	if err == nil && !report.OK {
		err = fmt.Errorf("a promise is broken: %+v", report)
	}
	return err
}

// The deadlines of lateness: so many a second, for so long.
const (
	dueRate = 2000
	dueFor  = 4 * time.Second
)

// lateness grants claims at a steady rate, lets all of them expire a second after their grant, and
// notes how long after its deadline a claim was released, by the times that the ledger has. The
// callers fall behind the rate on a slow machine; each claim's deadline follows its own grant, so
// the figure stays true, at a lower rate than the table says.
// It runs before anything else is sold, so that the expiry at once does not delay it.
func (f *lifeFigures) lateness(ctx context.Context, nd *node.Node) error {
	n := int64(dueRate * dueFor / time.Second)
	if err := publishUnpaid(ctx, nd, "due", n, time.Second); err != nil {
		return err
	}
	began := time.Now()
	err := inParallel(ctx, lifeCallers, int(n), func(ctx context.Context, i int) error {
		if !wait.Sleep(ctx, time.Until(began.Add(time.Duration(i)*time.Second/dueRate))) {
			return ctx.Err()
		}
		// A claim that was not granted would never be released, and the part would end after a minute.
		return claim(ctx, nd.Service, "due", "u"+strconv.Itoa(i), "k", dibs.Granted)
	})
	if err == nil {
		err = untilStats(ctx, nd, "due", time.Minute, func(st *api.StatsView) bool { return st.Released == n })
	}
	if err != nil {
		return err
	}
	released := dibs.Released
	var late []time.Duration
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		l, err := nd.Service.Claims.OfCampaign(ctx, "due", dibs.ClaimFilter{Status: &released}, page)
		if err != nil {
			return err
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
	f.late50, f.late99 = late[len(late)/2], late[len(late)*99/100]
	return nil
}

// publishUnpaid publishes a sale of so many units, one for each user, at 5.00 CNY, that has to be
// paid in time.
func publishUnpaid(ctx context.Context, nd *node.Node, id string, units int64, payWithin time.Duration) error {
	within := dibs.Duration(payWithin)
	_, err := published(ctx, nd.Service, dibs.CampaignSpec{
		ID: id, Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: &within,
	})
	return err
}

// sellUnpaid sells everything, settled, and returns the claims' ids.
func sellUnpaid(ctx context.Context, nd *node.Node) ([]string, error) {
	if err := publishUnpaid(ctx, nd, "life", lifeClaims, 30*time.Minute); err != nil {
		return nil, err
	}
	ids := make([]string, lifeClaims)
	err := inParallel(ctx, 1024, lifeClaims, func(ctx context.Context, i int) error {
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
