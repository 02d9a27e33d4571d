package memengine

import (
	"context"
	"math"
	"sync"

	"github.com/dibs-dev/dibs"
)

// product is what the shards share of the campaigns that have a limit per product.
//
// mu is the mutex of all these shards in place of one of their own, so that a claim
// reads what its user holds of the others in the same step in which it is decided.
// counted are the shards whose claims count, by campaign: those that are open, and
// those that are being loaded again or were retired, with what they held last.
// uncounted are the campaigns that the ledger knows and that were not opened here.
// No campaign is in both.
type product struct {
	mu        sync.Mutex
	counted   map[uint32]*shard
	uncounted map[uint32]struct{}
	key       productKey
	// users counts the shards that are open or being opened; Engine.productsMu guards it.
	users int
}

// productKey names a product. Users of another shard have another one.
type productKey struct {
	id    string
	shard uint8
}

// enter returns the product of a campaign's shard, nil when it has none. A shard that
// does not open leaves it again.
func (e *Engine) enter(c *dibs.Campaign, id dibs.ShardID) *product {
	if c.LimitedProduct() == "" {
		return nil
	}
	e.productsMu.Lock()
	defer e.productsMu.Unlock()
	key := productKey{c.LimitedProduct(), id.Shard}
	p := e.products[key]
	if p == nil {
		p = &product{key: key, counted: make(map[uint32]*shard), uncounted: make(map[uint32]struct{})}
		e.products[key] = p
	}
	p.users++
	return p
}

// leave forgets a product with its last shard: the next one that is opened asks for
// all campaigns that the ledger knows.
func (e *Engine) leave(p *product) {
	if p == nil {
		return
	}
	e.productsMu.Lock()
	defer e.productsMu.Unlock()
	if p.users--; p.users == 0 {
		delete(e.products, p.key)
	}
}

// counts reports whether claims of a shard that is not open count; see dibs.Abilities.
func (e *Engine) counts(_ context.Context, id dibs.ShardID) (bool, error) {
	if _, open := e.shards.Load(id); open {
		return false, nil
	}
	e.productsMu.Lock()
	defer e.productsMu.Unlock()
	for key, p := range e.products {
		if key.shard == id.Shard && p.has(id.Campaign) {
			return true, nil
		}
	}
	return false, nil
}

func (p *product) has(campaign uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted[campaign] != nil
}

// count has a shard's claims counted in place of those that its campaign had before,
// and asks for the campaigns that share the limit.
func (p *product) count(s *shard, sharing []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted[s.id.Campaign] = s
	delete(p.uncounted, s.id.Campaign)
	for _, n := range sharing {
		if p.counted[n] == nil {
			p.uncounted[n] = struct{}{}
		}
	}
}

// keep lets go of a retired shard but for what its users hold.
func (p *product) keep(s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted[s.id.Campaign] == s {
		p.counted[s.id.Campaign] = &shard{id: s.id, h: s.h, durable: dibs.Cursor{Epoch: math.MaxUint16, Seq: math.MaxUint32}}
	}
}

// held is what a user holds of the product. The caller holds mu, as for what follows.
func (p *product) held(hash uint64, user string) (units uint64) {
	for _, s := range p.counted {
		if newest := s.h.find(hash, user); newest != 0 {
			units += uint64(s.h.at(newest - 1).held)
		}
	}
	return units
}

// pending returns the batches that make durable what a user holds of the product: a
// refusal by it must not tell of a claim that a failed commit takes back.
func (p *product) pending(hash uint64, user string) []*batch {
	var all []*batch
	for _, s := range p.counted {
		if b := s.pending(s.h.find(hash, user)); b != nil {
			all = append(all, b)
		}
	}
	return all
}

// refuseOfProduct refuses by the limit per product, or since not all of its campaigns are
// counted; false when the claim may be granted.
func (s *shard) refuseOfProduct(d *dibs.Decision, req *dibs.EngineClaim, limit, hash uint64) bool {
	switch {
	case len(s.product.uncounted) > 0:
		d.Outcome = dibs.Unavailable
	case s.product.held(hash, req.UserID)+uint64(req.Quantity) > limit:
		d.Outcome, d.OfProduct = dibs.LimitReached, true
	default:
		return false
	}
	return true
}
