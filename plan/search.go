package plan

import (
	"context"
	"math"
	"time"
)

// search looks for the smallest deployment that keeps the target. More nodes, and
// more shards, are taken to be no slower: the numbers are found by halving.
type search struct {
	ctx  context.Context
	cal  *Calibration
	q    Question
	last *run
}

// try runs a deployment and reports whether it keeps the target.
func (s *search) try(nodes, shards int) (bool, error) {
	q := s.q
	q.Nodes, q.Shards = nodes, shards
	return s.keeps(q)
}

// keeps runs a question and reports whether the target is kept.
func (s *search) keeps(q Question) (bool, error) {
	r, err := simulate(s.ctx, s.cal, q)
	if err != nil {
		return false, err
	}
	s.last = r
	return time.Duration(r.record.all.ValueAtQuantile(99))*time.Microsecond <= q.Target, nil
}

// find returns the run of the smallest deployment that keeps the target. When none
// does, it returns that of the largest that makes sense, and false.
func (s *search) find() (*run, bool, error) {
	shards, nodes := s.q.Shards, s.q.Nodes
	if shards == FindShards {
		// With nodes enough that only the shards can be in the way.
		n, err := least(1, int(min(MaxShards, s.q.Stock)), func(shards int) (bool, error) {
			return s.try(s.plenty(nodes), shards)
		})
		if err != nil {
			return nil, false, err
		}
		shards = n
	}
	if nodes == 0 {
		n, err := least(1, s.plenty(0), func(nodes int) (bool, error) { return s.try(nodes, shards) })
		if err != nil {
			return nil, false, err
		}
		nodes = n
	}
	ok, err := s.try(nodes, shards)
	return s.last, ok, err
}

// limitSteps is by how many halvings the limit is found: the last of them tells a
// fortieth from none.
const limitSteps = 5

// limit finds the largest crowd that an answer's deployment takes, and returns the
// run of a slightly larger one; nil when it takes MostTimes the crowd.
func (s *search) limit(a *Answer) (beyond *run, err error) {
	times := func(t float64) (bool, error) {
		q := a.Question
		q.Users = max(1, int64(float64(q.Users)*t))
		q.Stock = max(int64(q.Shards), int64(float64(q.Stock)*t))
		return s.keeps(q)
	}
	low, high := 1.0, 2.0
	for ok := a.Keeps; ok && low < MostTimes; low, high = high, 2*high {
		if ok, err = times(high); err != nil {
			return nil, err
		}
		if !ok {
			beyond = s.last
			break
		}
	}
	if !a.Keeps {
		low, high, beyond = 0, 1, s.last
	}
	for range limitSteps {
		if beyond == nil {
			break
		}
		middle := (low + high) / 2
		ok, err := times(middle)
		if err != nil {
			return nil, err
		}
		if ok {
			low = middle
		} else {
			high, beyond = middle, s.last
		}
	}
	a.Limit = Limit{Requests: a.Peak * low, Times: low}
	return beyond, nil
}

// plenty is a number of nodes beyond which more change nothing: twice what all the
// requests need at the highest rate of their arrival, or within the target when they
// come at once.
func (s *search) plenty(given int) int {
	if given > 0 {
		return given
	}
	cost := (max(s.cal.Node.GrantedUS, s.cal.Node.RefusedUS) + s.cal.Node.FirstUS) * micro
	within := s.q.Target.Seconds()
	if s.q.Over > 0 {
		within = max(within, s.q.Over.Seconds()/2)
	}
	return int(min(MaxNodes, max(2, math.Ceil(2*s.q.requests()*cost/s.q.Cores/within))))
}

// least returns the smallest number from low to high that is enough, or high when
// none is.
func least(low, high int, enough func(int) (bool, error)) (int, error) {
	// Small ones first: they are the likely ones, and a run with few is short.
	top := low
	for top < high {
		ok, err := enough(top)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		low, top = top+1, min(2*top, high)
	}
	for low < top {
		middle := (low + top) / 2
		ok, err := enough(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			top = middle
		} else {
			low = middle + 1
		}
	}
	return top, nil
}
