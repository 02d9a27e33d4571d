package live

import (
	"errors"
	"sync"

	"github.com/dibs-dev/dibs"
)

// undivided remembers the shards that the engine did not take, since they go by a number of
// shards that the ledger does not know: it was restored from an older backup. Each load
// costs an epoch, of which a shard has so many, and nothing changes until somebody gives
// the campaign its shards again, or the engine's server is another one. It is safe for
// concurrent use; the zero value is empty.
type undivided struct{ shards sync.Map } // dibs.ShardID -> refusedLoad

// refusedLoad is what a load was made by that the engine did not take, and why.
type refusedLoad struct {
	shards int
	by     Opener
	err    error
}

// notDivided is implemented by the errors with which an engine refuses such a load.
type notDivided interface {
	error
	NotDivided() bool
}

// before returns why a load by a number of shards cannot be made, when the engine has
// refused the same one.
func (u *undivided) before(id dibs.ShardID, shards int, by Opener) error {
	if v, ok := u.shards.Load(id); ok {
		if r := v.(refusedLoad); r.shards == shards && r.by == by {
			return r.err
		}
	}
	return nil
}

// after notes what became of a load, and returns its error.
func (u *undivided) after(id dibs.ShardID, shards int, by Opener, err error) error {
	if refused, ok := errors.AsType[notDivided](err); ok && refused.NotDivided() {
		u.shards.Store(id, refusedLoad{shards: shards, by: by, err: err})
	} else {
		u.shards.Delete(id)
	}
	return err
}
