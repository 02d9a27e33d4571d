package enginetest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

var crowdChecks = []Check{
	{"crowd/the whole stock is granted, and no more", checkCrowdStock},
	{"crowd/one user gets the limit, and no more", checkCrowdUser},
	{"crowd/one key is granted once", checkCrowdKey},
	{"crowd/each item finds one holder", checkCrowdItems},
	{"crowd/releases conserve the stock", checkCrowdReleases},
	{"crowd/restocks and withdrawals conserve the stock", checkCrowdStockChanges},
	{"crowd/it does not stop selling", checkCrowdSellsOn},
}

// checkCrowdStock sends the load that articles about flash sales describe: 2,000
// users, 5,000 requests, 200 units. Engines that read the stock and write it in two
// steps oversell here; those that lose an update undersell. Users come twice or more,
// so that limit refusals are mixed in. Each client holds on to its claim until it has
// a decision.
func checkCrowdStock(r *rig) {
	const users, requests, clients, stock = 2_000, 5_000, 2_500, 200
	o := r.offer(stock, nil)
	var granted atomic.Int64
	r.together(clients, func(i int) {
		for n := i; n < requests; n += clients {
			user := userName(n % users)
			o.of(user).counted(&granted, user, uint64(n)+1, dibs.SoldOut, dibs.LimitReached)
		}
	})
	equal(r, "grants", granted.Load(), int64(stock*len(o.shards())))
	for _, s := range o.shards() {
		s.counts(0, stock)
		// The ledger checks stock, limit, keys and gaps of every entry.
		// A grant that has no entry, or an entry without a grant, shows as a difference here.
		s.settle(math.MaxInt)
		equal(r, "claims in the ledger", len(s.ledger.claims), stock)
	}
}

// counted claims a unit, counts it when it is granted, and expects one of the refusals when
// it is not.
func (o *offer) counted(granted *atomic.Int64, user string, key uint64, refusals ...dibs.Reason) {
	if d := o.persist(user, key, 1); d.Outcome == dibs.Granted {
		granted.Add(1)
	} else {
		o.that(slices.Contains(refusals, d.Outcome), "a claim is %v", d.Outcome)
	}
}

// checkCrowdUser sends the other load of those articles: one user, 10,000 requests.
// Every request carries a key of its own, so none is a repeat: only the limit stops
// them. An engine that checks the limit before others are let in grants more than 3
// units.
func checkCrowdUser(r *rig) {
	const requests, clients, most = 10_000, 2_500, 3
	o := r.offer(requests, limit(most))
	var units atomic.Int64
	r.together(clients, func(i int) {
		for n := i; n < requests; n += clients {
			// Requests of one and of two units, with keys of their own.
			q := int64(1 + n%2)
			if d := o.persist("ann", uint64(n)+1, q); d.Outcome == dibs.Granted {
				units.Add(q)
			} else {
				o.that(d.Outcome == dibs.LimitReached, "a claim is %v", d.Outcome)
			}
		}
	})
	equal(r, "units of one user", units.Load(), most)
	o.counts(requests-most, most)
	o.settle(math.MaxInt)
}

// checkCrowdKey sends one key from 64 clients at the same moment, as a user does who
// presses a button again and again behind a slow network. One call grants; the others
// return the same place as its repeats. A wrong implementation looks a key up before
// the grant of the same batch has recorded it, and grants twice.
func checkCrowdKey(r *rig) {
	o := r.offer(1_000, limit(100))
	for round := range 20 {
		const clients = 64
		var first atomic.Int64
		var places [clients]dibs.Position
		key := uint64(round) + 1
		r.together(clients, func(i int) {
			d := o.persist("ann", key, 2)
			o.that(d.Outcome == dibs.Granted, "a claim is %v", d.Outcome)
			if !d.Replayed {
				first.Add(1)
			}
			places[i] = d.Grant.Position
		})
		equal(r, "first results of one key", first.Load(), 1)
		for _, p := range places {
			equal(r, "position of one key", p, places[0])
		}
	}
	o.counts(1_000-40, 40)
	o.settle(math.MaxInt)
}

// checkCrowdItems lets 200 clients claim 300 items: each item finds exactly one
// holder, and none is left over. An engine that picks an item and removes it in two
// steps gives one seat to two users.
func checkCrowdItems(r *rig) {
	const stock, clients = 300, 200
	o := r.offerItems(seats(stock), limit(2))
	var mu sync.Mutex
	taken := map[string]int{}
	r.together(clients, func(i int) {
		for n := range uint64(2) {
			// Refused claims have no items, and so they add nothing.
			d := o.persist(userName(i), n+1, 1)
			mu.Lock()
			for _, item := range d.Grant.Items {
				taken[item]++
			}
			mu.Unlock()
		}
	})
	equal(r, "items that found a holder", len(taken), stock)
	for item, n := range taken {
		equal(r, "holders of item "+item, n, 1)
	}
	o.settle(math.MaxInt)
}

// lockedRelease is release for goroutines that share the ledger. mu guards the ledger
// alone: the engine's calls run beside each other.
func (o *offer) lockedRelease(mu *sync.Mutex, g dibs.Grant) {
	func() {
		mu.Lock()
		// A failure ends the goroutine, and must not leave the others waiting.
		defer mu.Unlock()
		o.settle(math.MaxInt)
		o.no(o.ledger.release(g.Cursor), "release %v", g.Position)
	}()
	cmd := o.releaseOf(g)
	o.no(o.eng.Release(o.ctx, cmd), "release %v", g.Position)
	o.no(o.eng.Release(o.ctx, cmd), "repeat the release of %v", g.Position)
}

// checkCrowdReleases claims and cancels at once, two clients for each user. Whenever
// Stats is read, what remains and what is granted must add up to the stock: an engine
// that changes one number before the other, or that gives stock back at each repeat of
// a release, shows other sums.
func checkCrowdReleases(r *rig) {
	const stock, clients, rounds = 20, 32, 15
	o := r.offer(stock, limit(2))
	var mu sync.Mutex
	var granted, released atomic.Int64
	r.together(clients, func(i int) {
		for n := range rounds {
			d := o.persist(userName(i%16), uint64(i*rounds+n)+1, 1)
			if d.Outcome == dibs.Granted {
				granted.Add(1)
				// A third of the rounds keep their grant, so that the stock runs out and comes back.
				if n%3 != 0 {
					o.lockedRelease(&mu, d.Grant)
					released.Add(1)
				}
			}
			s := o.stats()
			o.that(s.Remaining >= 0 && s.Remaining+s.Granted == stock, "%d remaining and %d granted are not the stock of %d", s.Remaining, s.Granted, stock)
		}
	})
	held := granted.Load() - released.Load()
	o.counts(stock-held, held)
	o.settle(math.MaxInt)
	equal(r, "left in the ledger", o.ledger.left, stock-held)
}

// checkCrowdStockChanges restocks, withdraws and claims at once, from a stock of 0. A
// quarter of the clients restock, a quarter withdraw, the others claim. Every restock
// is sent twice, as a command is whose answer got lost: an engine that does not know
// its ref counts it twice.
func checkCrowdStockChanges(r *rig) {
	const clients, rounds = 24, 15
	o := r.offer(0, limit(rounds))
	var mu sync.Mutex
	var granted, total atomic.Int64
	r.together(clients, func(i int) {
		for n := range rounds {
			ref := fmt.Sprintf("%d-%d", i, n)
			switch i % 4 {
			case 0:
				// The ledger counts the restock before the engine knows of it.
				mu.Lock()
				cmd := o.ledger.restock(ref, 2, nil)
				mu.Unlock()
				total.Add(2)
				o.no(o.eng.Adjust(o.ctx, cmd), "restock")
				o.no(o.eng.Adjust(o.ctx, cmd), "repeat a restock")
			case 1:
				if err := o.eng.Adjust(o.ctx, o.withdrawal(ref, 1)); err == nil {
					total.Add(-1)
				} else {
					o.is(err, "a withdrawal", dibs.ErrInvalidState)
				}
			default:
				if o.persist(userName(i), uint64(n)+1, 1).Outcome == dibs.Granted {
					granted.Add(1)
				}
			}
		}
	})
	o.counts(total.Load()-granted.Load(), granted.Load())
	o.settle(math.MaxInt)
	equal(r, "left in the ledger", o.ledger.left, total.Load()-granted.Load())
}

// checkCrowdSellsOn sells 13,000 units, one to each user. Engines that lose a
// connection, a goroutine or a lock with each sale stop somewhere before that.
func checkCrowdSellsOn(r *rig) {
	const stock, clients = 13_000, 500
	o := r.offer(stock, nil)
	r.together(clients, func(i int) {
		for n := i; n < stock; n += clients {
			d := o.persist(userName(n), 1, 1)
			o.that(d.Outcome == dibs.Granted, "claim %d is %v", n, d.Outcome)
		}
	})
	o.refuse("late", 1, 1, dibs.SoldOut)
	o.counts(0, stock)
	o.settle(math.MaxInt)
}
