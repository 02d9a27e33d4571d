// Package strategies holds the classical ways to sell what runs out, from code that
// sells too much to code that works, and dibs beside them. Each is a small file that has
// the flaw where the classical way has it.
//
// # Basics
//
// All lists them. Open makes one ready in a [World], which has the servers;
// an Attempt then answers claims, of any number of callers at once, and Finish
// writes what was not written yet. Its orders alone tell what it sold.
//
// # Caveats
//
// They are there to be measured and to be read, not to be used.
package strategies

import (
	"context"
	"errors"
)

// Outcome is what a caller is told.
type Outcome uint8

// The outcomes.
const (
	// Granted is a yes.
	Granted Outcome = iota
	// SoldOut says that nothing is left.
	SoldOut
	// Again says that the user has one already.
	Again
	// Busy says that somebody was faster, or that the wait was too long.
	Busy
)

// Flaw is a promise that a strategy breaks.
type Flaw string

// The flaws, by the name of the figure that shows them.
const (
	// Oversold: more orders than stock.
	Oversold Flaw = "oversold"
	// Duplicates: a second order for one user.
	Duplicates Flaw = "duplicates"
	// Undersold: refused although stock is left.
	Undersold Flaw = "undersold"
	// Unkept: told yes, and there is no order.
	Unkept Flaw = "told yes without an order"
)

// Strategy is one way.
type Strategy struct {
	// Name is how it is asked for; Idea is what it is a form of.
	Name, Idea string
	// Does says how it works, Teaches what its figures show.
	Does, Teaches string
	// Breaks are the flaws that it has; none when it is safe.
	Breaks []Flaw
	// PerUser says that it means to give each user one; without it, a user may
	// have many, and that is no flaw.
	PerUser bool
	// SQL and Redis say which servers it needs.
	SQL, Redis bool
	// Level is how durable its Redis is, one of dibs.Levels; empty for one that
	// keeps nothing.
	Level string

	open func(ctx context.Context, w *World) (Attempt, error)
}

// Attempt is a strategy at work. Claim is safe for concurrent use.
type Attempt interface {
	// Claim answers one press of a user. After an error it is unknown whether they have got one.
	Claim(ctx context.Context, user string) (Outcome, error)
	// Finish writes what is still to be written, and ends the attempt. No Claim
	// is under way.
	Finish(ctx context.Context) error
}

// World is where a strategy is at work: servers of its own, and what is sold.
type World struct {
	SQL   *SQL
	Redis *Redis
	// RedisURL and LedgerURL are the addresses for dibs; without LedgerURL its
	// ledger is a file in Dir.
	RedisURL, LedgerURL, Dir string
	// Stock is how many there are.
	Stock int64
	// Packet says that what is given are the shares of a red packet; dibs makes one then.
	Packet bool
	// Over is closed when the time of the attempt is over: callers that wait give up.
	Over <-chan struct{}
	// At, when it is set, is called where a flaw is, with the name of the place:
	// AfterRead, between reading and writing, and AfterUnlock, between the
	// release of a lock and the commit of what it guards. A test makes callers
	// meet there.
	At func(ctx context.Context, place string)
}

// The places where flaws are.
const (
	AfterRead   = "read"
	AfterUnlock = "unlocked"
)

func (w *World) at(ctx context.Context, place string) {
	if w.At != nil {
		w.At(ctx, place)
	}
}

// Open makes a strategy ready in an empty world.
func (s *Strategy) Open(ctx context.Context, w *World) (Attempt, error) {
	if s.SQL && w.SQL == nil || s.Redis && w.Redis == nil {
		return nil, errors.New("strategies: " + s.Name + " needs a server that is not there")
	}
	if w.SQL != nil {
		if err := w.SQL.prepare(ctx, w.Stock); err != nil {
			return nil, err
		}
	}
	return s.open(ctx, w)
}

// Safe says whether it breaks nothing.
func (s *Strategy) Safe() bool { return len(s.Breaks) == 0 }

// simple is a strategy that needs nothing but its world.
type simple struct {
	done
	*World
}

// done is a Finish with nothing to do.
type done struct{}

// Finish implements Attempt.
func (done) Finish(context.Context) error { return nil }
