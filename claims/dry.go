package claims

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// errShardDry says that a claim has to wait, or that all shards have to be looked at: it
// is the user's shard, which has too little left. No caller of this package sees it.
type errShardDry uint8

// Error implements error.
func (e errShardDry) Error() string {
	return fmt.Sprintf("dibs: shard %d has too little left", uint8(e))
}

// dryOf returns the shard that an error of ask names as dry; false for any other error.
func dryOf(err error) (uint8, bool) {
	if err == nil {
		return 0, false
	}
	dry, is := err.(errShardDry) //nolint:errorlint // ask returns it as it is
	return uint8(dry), is
}

// dryShard answers a claim whose shard has too little left, of a campaign with several:
// sold out only when no shard has enough and none is on its way. Until that is known,
// or units have come, the claim waits, outside of the engine and of the guard, which
// would take the wait for load.
func (s *Claims) dryShard(ctx context.Context, l *live.Campaign, c *dibs.Campaign, req *dibs.ClaimRequest, shard uint8) (dibs.Result, error) {
	for deadline := s.cfg.Moving.Deadline(); ; {
		left, gone, err := s.cfg.Moving.Await(ctx, l, shard, req.Quantity, deadline)
		if err != nil {
			return dibs.Result{}, s.failed(l, err)
		}
		if gone {
			l.CountRefusal(dibs.SoldOut)
			return dibs.Result{Outcome: dibs.SoldOut, Remaining: left, Campaign: c}, nil
		}
		if s.TokenEnded(req) {
			l.CountRefusal(dibs.Unauthenticated)
			return dibs.Result{}, ErrTokenEnded
		}
		r, err := s.ask(ctx, l, c, req, false, nil)
		if _, dry := dryOf(err); !dry {
			return r, err
		}
	}
}
