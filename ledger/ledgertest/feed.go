package ledgertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// news reads the feed after a row to its end, some news at a time. The result
// must not depend on how many are read at once.
func (f *fixture) news(l ledger.Ledger, after int64, atOnce int) (all []events.News, last int64) {
	f.t.Helper()
	for last = after; ; {
		more, to, err := l.Events.News(f.t.Context(), last, atOnce)
		f.must(err)
		if to == last {
			if len(more) > 0 {
				f.t.Fatalf("%d news of no row", len(more))
			}
			return all, last
		}
		all, last = append(all, more...), to
	}
}

// newsText prints news, one a line. States and sums are those of the moment at
// which it happened, however late it is read; items are those that the claim
// still has.
func newsText(all []events.News) string {
	var s string
	for i := range all {
		n := &all[i]
		if c := n.Campaign; c != nil {
			s += fmt.Sprintf("%s %s %s %d/%d %+d %s\n", c.ID, c.Change, c.State, c.StockLeft, c.Stock, c.Delta, c.Why)
			continue
		}
		s += fmt.Sprintf("%s %s %d", n.Claim.UserID, n.Claim.Position.Cursor, n.N)
		if n.N > 0 {
			s += " " + string(n.Claim.Events[n.N-1].Step)
		}
		s += fmt.Sprintf(" %s %v", n.Claim.Status, n.Claim.Items)
		if n.Claim.Payment != nil {
			s += " paid " + n.Claim.Payment.Ref
		}
		s += "\n"
	}
	return s
}

// testFeed tells what happened to campaigns and claims, in order and once:
// repeats, refusals and a batch settled again tell nothing. The feed reads the
// same however many news are read at once, and its head is its last row.
// Webhooks and streams are made from this feed, so a step that is told twice,
// or out of order, is a parcel sent twice or a refund before its payment.
func testFeed(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := unpaid("c", 4)
	c.LowStock = 1
	c.State = dibs.Draft
	f.insert(c)
	same(t, "a draft's news", newsText(must1(f.news(l, 0, 10))), "")
	for _, state := range []dibs.State{dibs.Published, dibs.PausedState, dibs.Published} {
		c.State = state
		f.must(l.Campaigns.UpdateCampaign(ctx, c))
	}
	// A change of any other field is one piece of news too.
	c.Title = "another"
	f.must(l.Campaigns.UpdateCampaign(ctx, c))
	_, s := f.load(c, 0)
	p, q := s.grant("u1", 1), s.grant("u2", 2)
	f.settle(s)
	f.moves(step(c, p, dibs.StepConfirm, paid("p1", 500)))
	// The same payment again, and then a step that is refused: no news.
	f.move(step(c, p, dibs.StepConfirm, paid("p1", 500)))
	f.refused("a cancel of a paid claim", step(c, p, dibs.StepCancel, dibs.EventFacts{}), dibs.ErrInvalidState)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 2, Why: "more"}))
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 2, Why: "more"}))
	// u2 has not paid, and two units come back into stock.
	same(t, "expired", try(l.Orders.Expire(ctx, start.Add(time.Hour), 10)).must(t), 1)
	s.adjust("w", -1)
	// The last grant takes all that is left: low, then sold out, in this order.
	s.grant("u3", 4)
	f.settle(s)
	refuses(t, "a batch again", l.Live.Settle(ctx, []live.Batch{{Campaign: c, Shard: s.shard, From: p.Cursor, To: q.Cursor}}))
	want := "c published published 4/4 +0 \nc paused paused 4/4 +0 \nc resumed published 4/4 +0 \nc changed published 4/4 +0 \n" +
		"u1 1.2 0 pending []\nu2 1.3 0 pending []\nc low_stock published 1/4 +0 \n" +
		"u1 1.2 1 confirm confirmed [] paid p1\nc stock_changed published 3/6 +2 more\nu2 1.3 1 expire released []\n" +
		"u3 1.5 0 pending []\nc stock_changed published 0/5 -1 \nc low_stock published 0/5 +0 \nc sold_out published 0/5 +0 \n"
	// The numbers are a bound on news, not on rows: a row is read as a whole.
	for _, atOnce := range []int{1, 600, 10_000} {
		all, last := f.news(l, 0, atOnce)
		same(t, fmt.Sprintf("news, %d at once", atOnce), newsText(all), want)
		head, oldest, err := l.Events.FeedHead(ctx, 0)
		f.must(err)
		same(t, "the head", head, last)
		same(t, "the oldest row's time is known", oldest.IsZero(), false)
		if _, oldest, err = l.Events.FeedHead(ctx, last); err != nil || !oldest.IsZero() {
			t.Errorf("after the head, the oldest is of %v: %v", oldest, err)
		}
	}
}

// must1 drops a second result.
func must1[A, B any](a A, _ B) A { return a }

// testFeedItems: a claim's items are told as long as it has them, and large
// batches are told by several rows. A released code may be another user's by
// the time the feed is read.
func testFeedItems(t *testing.T, f *fixture) {
	l := f.ledger()
	c, s := f.loaded(unpaid("c", 0), values("code", 3)...)
	s.grant("u1", 1, 2)
	p := s.grant("u2", 1, 0)
	f.settle(s)
	// u2's claim loses its code before the feed is read.
	f.moves(step(c, p, dibs.StepCancel, dibs.EventFacts{}))
	all, last := f.news(l, 0, 100)
	same(t, "news of items", newsText(all), "u1 1.2 0 pending [code-2]\nu2 1.3 0 pending []\nu2 1.3 1 cancel released []\n")
	// One batch of 1,500 grants is split, so that a row stays small.
	_, s = f.loaded(campaign("many", 10_000))
	for i := range 1500 {
		s.grant(fmt.Sprintf("m%d", i), 1)
	}
	f.settle(s)
	more, end := f.news(l, last, 600)
	same(t, "rows of 1500 grants", end-last, int64(3))
	same(t, "news of 1500 grants", len(more), 1500)
	for i := range more {
		if more[i].Claim.UserID != fmt.Sprintf("m%d", i) || more[i].Claim.Status != dibs.Confirmed {
			t.Fatalf("the news %d tell of %s, %s", i, more[i].Claim.UserID, more[i].Claim.Status)
		}
	}
}

// testFeedRace: a reader sees every row while others write, each after the one
// before it. A row that becomes visible after one with a higher number would be
// passed over by every reader. So rows get their numbers in the order of their
// commits.
func testFeedRace(t *testing.T, f *fixture) {
	const writers, rounds = 4, 12
	ctx, reader := t.Context(), f.ledger()
	var all sync.WaitGroup
	done := make(chan struct{})
	// Each writer has a campaign and a connection of its own.
	for w := range writers {
		l := f.open()
		c, s := f.loaded(unpaid(fmt.Sprintf("c%d", w), 10_000))
		all.Go(func() {
			for r := range rounds {
				p := s.grant(fmt.Sprintf("u%d", r), 1)
				if err := l.Live.Settle(ctx, []live.Batch{s.batch()}); err != nil {
					t.Errorf("settle: %v", err)
				}
				if _, err := l.Orders.Move(ctx, [][]dibs.Move{{step(c, p, dibs.StepConfirm, paid("p", 500))}}); err != nil {
					t.Errorf("move: %v", err)
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(done)
	}()
	seen, last := 0, int64(0)
	next := make(map[dibs.Position]int)
	for over := false; ; {
		news, to, err := reader.Events.News(ctx, last, 1)
		f.must(err)
		if to == last {
			// The writers had ended before this last reading found nothing.
			if over {
				break
			}
			select {
			case <-done:
				over = true
			default:
			}
			continue
		}
		if to != last+1 {
			t.Fatalf("the row after %d is %d", last, to)
		}
		last = to
		for i := range news {
			p := news[i].Claim.Position
			// A claim's grant is told before its payment.
			same(t, "the next step of "+p.String(), news[i].N, next[p])
			next[p]++
			seen++
		}
	}
	same(t, "news", seen, writers*rounds*2)
}

// leaseOver is a lease that ends while another process waits for it.
const leaseOver = time.Millisecond

// testSinks gives a sink to one process at a time by a lease of the ledger's
// clock. Taking moves by compare-and-set: a process that was late takes
// nothing. Rows go once every sink has taken them, and sinks that were not seen
// for long do not keep rows. Two processes that publish one sink's events at
// once would publish some twice; the clocks of processes may be wrong, so the
// lease goes by the ledger's.
func testSinks(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	_, s := f.loaded(campaign("c", 100))
	s.grant("u1", 1)
	f.settle(s)
	hold := func(name, owner string, lease time.Duration) events.SinkState {
		t.Helper()
		st := try(l.Events.HoldSink(ctx, name, owner, lease)).must(t)
		return st
	}
	// The ledger's clock decides, which a test cannot set.
	await := func(name, owner string) {
		t.Helper()
		for hold(name, owner, time.Hour).Owner != owner {
			f.must(ctx.Err())
		}
	}
	st := hold("kafka", "a", time.Hour)
	same(t, "a new sink begins at the end", st.Taken, int64(1))
	same(t, "its owner", st.Owner, "a")
	same(t, "its lease lasts an hour", st.LeaseUntil.Sub(st.SeenAt), time.Hour)
	same(t, "another process", hold("kafka", "b", time.Hour).Owner, "a")
	s.grant("u2", 1)
	f.settle(s)
	taking := events.Taking{Name: "kafka", Owner: "a", From: 1, To: 2, Events: 1, Lease: time.Hour}
	f.must(l.Events.SinkFailed(ctx, "kafka", "a", "no\x00answer"))
	hold("kafka", "a", leaseOver)
	f.must(l.Events.TakeNews(ctx, taking))
	wants(t, "taken twice", l.Events.TakeNews(ctx, taking), events.ErrSinkTaken)
	same(t, "the lease lasts longer", hold("kafka", "b", time.Hour).Owner, "a")
	f.must(l.Events.SinkFailed(ctx, "kafka", "b", "not mine"))
	hold("kafka", "a", leaseOver)
	await("kafka", "b")
	taking.From, taking.To = 2, 3
	wants(t, "taken by a process that was late", l.Events.TakeNews(ctx, taking), events.ErrSinkTaken)
	f.must(l.Events.SinkFailed(ctx, "kafka", "b", "no answer"))
	f.must(l.Events.LetSinkGo(ctx, "kafka", "a"))
	same(t, "another process lets it go", hold("kafka", "c", time.Hour).Owner, "b")
	hold("amqp", "a", time.Hour)
	all := try(l.Events.Sinks(ctx)).must(t)
	same(t, "the sinks", fmt.Sprintf("%s %d %s; %s %d %s %d %q", all[0].Name, all[0].Taken, all[0].Owner,
		all[1].Name, all[1].Taken, all[1].Owner, all[1].Failures, all[1].Problem), `amqp 2 a; kafka 2 b 1 "no answer"`)
	f.must(l.Events.LetSinkGo(ctx, "kafka", "b"))
	same(t, "it was released", hold("kafka", "c", time.Hour).Owner, "c")
	for range 3 {
		s.grant("u", 1)
		f.settle(s)
	}
	// Nothing is older than what was seen in a minute's time.
	long, forgetAll := start.Add(24*time.Hour), -time.Minute
	trim := func(what string, before time.Time, forget time.Duration, want int64) {
		t.Helper()
		same(t, what, try(l.Events.TrimFeed(ctx, before, forget)).must(t), want)
	}
	trim("rows that are young", start.Add(-time.Hour), time.Hour, 0)
	trim("rows that all have taken", long, time.Hour, 2)
	trim("rows that all have taken, again", long, time.Hour, 0)
	_, last := f.news(l, 2, 100)
	same(t, "the rest is there", last, int64(5))
	trim("rows when the sinks are forgotten", long, forgetAll, 3)
	same(t, "sinks that are left", len(try(l.Events.Sinks(ctx)).must(t)), 0)
}
