package plan

import "math"

// stock is what is left, by shards, and how many users hold a unit of it.
//
// The granted and the remaining units always add up to the question's stock.
type stock struct {
	left []float64
	// users is how many there are; each may hold one unit. requests is how many they
	// send in all, presses how many each, and decided how many were decided.
	users, requests, presses, decided float64
	holders                           float64
	// carried is what was granted in advance of users who are there in part only:
	// shares of users are not whole numbers, grants are.
	carried float64
	// soldOut is when the last unit was granted; negative while some are left.
	soldOut float64
}

func newStock(q *Question) *stock {
	s := &stock{left: make([]float64, q.Shards), users: float64(q.Users), requests: q.requests(), presses: q.Presses, soldOut: -1}
	each := q.Stock / int64(q.Shards)
	for i := range s.left {
		s.left[i] = float64(each)
	}
	s.left[0] += float64(q.Stock - each*int64(q.Shards))
	return s
}

// decide grants what can be granted of a parcel. The presses of each user are spread
// over all requests at random, so a request is its user's first one with the
// probability that none of the user's others was among those before.
func (s *stock) decide(shard int, p *parcel, now float64) {
	first := math.Pow(max(0, 1-s.decided/s.requests), s.presses-1)
	s.decided += p.requests
	wanted := p.requests*first - s.carried
	fresh := min(max(0, math.Ceil(wanted-1e-6)), p.requests)
	s.carried = max(0, fresh-wanted)
	p.granted = min(fresh, s.left[shard], s.users-s.holders)
	p.refused = p.requests - p.granted
	s.left[shard] -= p.granted
	s.holders += p.granted
	if s.soldOut < 0 && s.total() <= 0 {
		s.soldOut = now
	}
}

// refuse counts a parcel that its node refused.
func (s *stock) refuse(p *parcel) {
	s.decided += p.requests
	p.refused = p.requests
}

// gone reports whether a shard has nothing left.
func (s *stock) gone(shard int) bool { return s.left[shard] <= 0 }

// total is what is left in all shards.
func (s *stock) total() float64 {
	sum := 0.0
	for _, left := range s.left {
		sum += left
	}
	return sum
}
