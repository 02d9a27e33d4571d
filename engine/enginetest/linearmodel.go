package enginetest

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"
	"github.com/dibs-dev/dibs"
)

// linearGrant is a grant in a linearState.
type linearGrant struct {
	user     string
	key      uint64
	quantity int64
	seq      uint32
	released bool
}

// linearState is a shard between two operations: the seq of the last entry, what is
// left, and all grants in order. It is never changed in place, since the search keeps
// states of branches that it comes back to.
type linearState struct {
	seq    uint32
	left   int64
	grants []linearGrant
}

var linearSeed = maphash.MakeSeed()

// linearModel says which answers an engine may give in which state. The order
// of the journal is the order of the decisions, so that a grant's seq is the
// next one. An unknown answer is ordered somewhere after its call; ordered at
// the very end it stands for an operation that never happened.
var linearModel = porcupine.Model{
	Init: func() any { return linearState{seq: 1, left: linearStock} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		switch in.kind {
		case "claim":
			return s.claim(in, out)
		case "release":
			return s.release(in, out)
		case "withdraw":
			return s.withdraw(in, out)
		}
		granted := int64(0)
		for _, g := range s.grants {
			if !g.released {
				granted += g.quantity
			}
		}
		return out.unknown || out.stats.Remaining == s.left && out.stats.Granted == granted, s
	},
	Equal: func(a, b any) bool {
		x, y := a.(linearState), b.(linearState)
		return x.seq == y.seq && x.left == y.left && slices.Equal(x.grants, y.grants)
	},
	Hash: func(state any) uint64 {
		s := state.(linearState)
		return maphash.Comparable(linearSeed, [2]int64{int64(s.seq), s.left})
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(linearInput), output.(linearOutput)
		what := fmt.Sprintf("%s user=%s key=%d quantity=%d target=%d: ", in.kind, in.user, in.key, in.quantity, in.target)
		switch {
		case out.unknown:
			return what + "unknown"
		case in.kind == "claim":
			d := out.decision
			return what + fmt.Sprintf("%v replayed=%v seq=%d remaining=%d", d.Outcome, d.Replayed, d.Grant.Seq, d.Remaining)
		case in.kind == "stats":
			return what + fmt.Sprintf("remaining=%d granted=%d", out.stats.Remaining, out.stats.Granted)
		}
		return what + fmt.Sprintf("refused=%v", out.refused)
	},
}

// claim answers a claim in the order of the contract: repeat, stock, limit, grant. An
// unknown answer fits each refusal, which changes nothing; it also fits a grant, whose
// place is then not compared.
func (s linearState) claim(in linearInput, out linearOutput) (bool, any) {
	d, held := out.decision, int64(0)
	for _, g := range s.grants {
		if g.user != in.user {
			continue
		}
		if in.key != 0 && g.key == in.key {
			if g.quantity != in.quantity {
				return out.unknown || d.Outcome == dibs.KeyReused, s
			}
			return out.unknown || d.Outcome == dibs.Granted && d.Replayed && d.Grant.Seq == g.seq, s
		}
		if !g.released {
			held += g.quantity
		}
	}
	switch {
	case s.left < in.quantity:
		return out.unknown || d.Outcome == dibs.SoldOut && d.Remaining == s.left, s
	case held+in.quantity > linearLimit:
		return out.unknown || d.Outcome == dibs.LimitReached, s
	}
	if !out.unknown && (d.Outcome != dibs.Granted || d.Replayed || d.Grant.Seq != s.seq+1) {
		return false, s
	}
	next := linearState{seq: s.seq + 1, left: s.left - in.quantity}
	next.grants = append(slices.Clone(s.grants), linearGrant{user: in.user, key: in.key, quantity: in.quantity, seq: next.seq})
	return true, next
}

// release gives a grant's stock back, once, with an entry; a repeat changes nothing.
// Releasing what was not granted fits no answer that is known.
func (s linearState) release(in linearInput, out linearOutput) (bool, any) {
	i := slices.IndexFunc(s.grants, func(g linearGrant) bool { return g.seq == in.target })
	if i < 0 {
		return out.unknown, s
	}
	if s.grants[i].released {
		return true, s
	}
	next := linearState{seq: s.seq + 1, left: s.left + s.grants[i].quantity, grants: slices.Clone(s.grants)}
	next.grants[i].released = true
	return true, next
}

// withdraw takes units, with an entry; it is refused exactly when less is left.
func (s linearState) withdraw(in linearInput, out linearOutput) (bool, any) {
	if s.left < in.quantity {
		return out.unknown || out.refused, s
	}
	if out.refused && !out.unknown {
		return false, s
	}
	return true, linearState{seq: s.seq + 1, left: s.left - in.quantity, grants: s.grants}
}
