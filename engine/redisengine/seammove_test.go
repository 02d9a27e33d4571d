package redisengine_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// wideShards is how many shards the campaign of a crossed transfer has.
const wideShards = 2

// TestTransfersCrossed crosses what loses history of Redis with a transfer between two shards,
// held at each of its steps. The node that is held goes on after the loss, or dies there and another
// one takes over; when the server forks, another one joins at the promoted server, and one of the
// two gives way. The campaign sells to exactly zero: nothing is stranded, nothing sold twice.
// Of going on and dying each step meets one, in turn, or with SOAK both.
func TestTransfersCrossed(t *testing.T) {
	var all sync.WaitGroup
	free := make(chan struct{}, crossingsAtOnce)
	for i, l := range losses {
		if !l.alone && !l.fork {
			continue
		}
		for j, at := range []step{withdraw, withdrawn, settleAhead, settledAhead, settleMove, settledMove, bring, brought, dropCommand} {
			for _, dies := range []bool{false, true} {
				turn := os.Getenv("SOAK") != "" || dies == ((i+j)%2 == 1)
				if l.fork {
					// If it dies, the fork is a failover.
					turn = !dies
				}
				if !turn {
					continue
				}
				free <- struct{}{}
				all.Go(func() {
					defer func() { <-free }()
					t.Run(fmt.Sprintf("%s/%s/dies %t", l.name, at, dies), func(t *testing.T) { crossTransfer(t, &l, at, dies) })
				})
			}
		}
	}
	all.Wait()
}

func crossTransfer(t *testing.T, l *loss, at step, dies bool) {
	x := newCrossing(t, false)
	defer x.closeAll()
	x.publishWide()
	x.granted(x.first, "early", false)
	x.settledWide(x.first)
	l.mark(x)
	x.h.holdAt(at)
	x.buyFirstShard()
	x.inFlight()
	l.happen(x)
	survivor := x.first
	switch {
	case dies:
		x.dies()
		x.second = x.joinBehind(x.late)
		survivor = x.second
	case l.fork:
		// The other node settles nothing before the held call has reached the ledger: else
		// the position alone would refuse that.
		x.late.failAt(settle)
		x.second = x.joinBehind(x.late)
		x.granted(x.second, "meanwhile", true)
		x.h.free(false)
		<-x.h.over
		x.late.free(false)
		survivor = x.oneGivesWay()
	default:
		x.h.free(false)
		<-x.h.over
	}
	for i, over := 0, false; !over; i++ {
		if i > crossStock {
			t.Fatal("more is granted than there is")
		}
		x.await("an answer", func() bool {
			res, err := x.ask(survivor, fmt.Sprint("rest-", i), true)
			over = err == nil && res.Outcome == dibs.SoldOut
			return over || err == nil && res.Outcome == dibs.Granted
		})
	}
	x.presses.Wait()
	x.settledWide(survivor)
	var left, granted, stock int64
	for i := range wideShards {
		id := dibs.ShardID{Campaign: theShard.Campaign, Shard: uint8(i)}
		st := x.stats(survivor, id)
		totals, err := survivor.ledger.Totals(x.ctx, id)
		must(t, err)
		if st.Remaining != totals.StockLeft {
			t.Errorf("shard %d has %d left, and the ledger says %d", i, st.Remaining, totals.StockLeft)
		}
		left, granted, stock = left+st.Remaining, granted+totals.Pending+totals.Confirmed, stock+totals.Stock
	}
	if left != 0 || granted != crossStock || stock != crossStock {
		t.Errorf("%d are left and %d granted of %d", left, granted, stock)
	}
	report, err := survivor.Audit.Verify(x.ctx)
	must(t, err)
	if !report.OK {
		t.Errorf("a promise is broken: %+v", report)
	}
}

// publishWide publishes a campaign of two shards.
func (x *crossing) publishWide() {
	x.Helper()
	now, payWithin := time.Now(), dibs.Duration(3*time.Hour)
	_, err := x.first.Campaigns.Create(x.ctx, dibs.CampaignSpec{
		ID: theCampaign, Kind: dibs.Sale, Title: theCampaign, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour), Shards: new(wideShards),
		Stock: dibs.StockSpec{Units: new(int64(crossStock))}, Price: &dibs.Money{Amount: 100, Currency: "CNY"}, PayWithin: &payWithin,
	})
	must(x.T, err)
	_, err = x.first.Campaigns.Publish(x.ctx, theCampaign)
	must(x.T, err)
}

// buyFirstShard has users of the first shard ask for more than it has, so that units of the
// other one are fetched. Their answers may be lost, or come late.
func (x *crossing) buyFirstShard() {
	c := dibs.Campaign{Number: theShard.Campaign, Shards: wideShards}
	first, asked := x.first, 0
	for i := 0; asked < crossStock*3/4; i++ {
		user := fmt.Sprint("mid-", i)
		if c.ShardOf(user) == theShard {
			asked++
			x.presses.Go(func() { _, _ = x.ask(first, user, false) })
		}
	}
}

// settledWide waits until the ledger has all that the shards have decided, and nothing is on
// its way.
func (x *crossing) settledWide(n *member) {
	x.Helper()
	x.await("shards and ledger to have the same", func() bool {
		for i := range wideShards {
			id := dibs.ShardID{Campaign: theShard.Campaign, Shard: uint8(i)}
			st, err := n.engine.Stats(x.ctx, id)
			if err != nil {
				return false
			}
			totals, err := n.ledger.Totals(x.ctx, id)
			must(x.T, err)
			if totals.Position != st.Head || st.Settled != st.Head {
				return false
			}
		}
		waiting, err := n.ledger.Commands(x.ctx, 0, 1)
		must(x.T, err)
		return len(waiting) == 0
	})
}
