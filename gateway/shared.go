package gateway

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

//go:embed lua/count.lua
var countScript string

// countKey counts the tickets of all nodes.
const countKey = "dibs:tickets:{made}"

// maxSharedTickets bounds the tickets that all nodes of an engine make in the life of one, so that at most twice as many
// wait to be used. A ticket takes some 200 bytes of the engine's store, which claims need too.
const maxSharedTickets = 500_000

// countWithin is how long the store may take to count a ticket.
const countWithin = 3 * time.Second

// sharedTickets are Tickets in the store of an engine, where every node finds them.
type sharedTickets struct {
	dibs.SharedStore
	// most is maxSharedTickets.
	most int64
}

var errCount = errors.New("gateway: the count of tickets is not what the script returns")

// Put keeps a value; *dibs.Error of Overloaded when the nodes have made too many tickets lately.
// A ticket is counted before it is kept: one that is counted and not kept is none that anybody has.
func (s *sharedTickets) Put(ctx context.Context, name, value string, keep time.Duration) error {
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	answer, err := s.RunScript(counting, countScript, []string{countKey}, strconv.FormatInt(max(keep.Milliseconds(), 1), 10))
	if err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	if len(answer) != 2 {
		return errCount
	}
	made, ok := answer[0].(int64)
	left, also := answer[1].(int64)
	if !ok || !also {
		return errCount
	}
	if made > s.most {
		e := *errTickets
		e.RetryAfter = time.Duration(left) * time.Millisecond
		return &e
	}
	return s.SharedStore.Put(ctx, name, value, keep)
}
