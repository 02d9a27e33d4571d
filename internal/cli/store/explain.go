package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// ownerName matches the name that a node leaves in the journal that it owns.
var ownerName = regexp.MustCompile(`process \d+ on [^\s)]+`)

// OwnerOf returns the name of the owner in a dibs.ErrOwned.
func OwnerOf(err error) string {
	if owner := ownerName.FindString(err.Error()); owner != "" {
		return owner
	}
	return "another process"
}

// InUse returns the remedy for a server that cannot start because another process
// uses its data.
func InUse(c *config.Config) string {
	other := "--data"
	if sqlledger.InServer(c.Ledger) {
		other = "--ledger"
	}
	return "one process at a time may use it; stop that one, or name another " + other
}

// Explain adds to an error of opening a node or a ledger what the user can do about
// it. remedy is what to do when another process uses the data.
func Explain(c *config.Config, err error, remedy string) error {
	return explain(c, c.Place(), err, remedy)
}

// explain is Explain for what is opened at a place: a node's, or the ledger alone.
func explain(c *config.Config, place string, err error, remedy string) error {
	switch {
	case errors.Is(err, dibs.ErrOwned):
		return fmt.Errorf("%s is in use by %s: %s", place, OwnerOf(err), remedy)
	case errors.Is(err, sqlledger.ErrSchema):
		if sqlledger.InServer(c.Ledger) {
			return fmt.Errorf("%w (dibs migrate brings an older schema up to date)", err)
		}
		return fmt.Errorf("%w (dibs migrate --data %s brings older files up to date)", err, c.Data)
	case errors.Is(err, node.ErrDurability):
		return fmt.Errorf("%s: configure Redis for it (appendonly yes, appendfsync always; dibs doctor says more), or ask for less with --durability: %w",
			c.EnginePlace(), err)
	case errors.Is(err, redisengine.ErrForeign):
		return fmt.Errorf("%s holds the campaigns of another ledger than %s: correct --engine or --ledger, or name another database of this Redis, such as redis://HOST:6379/1",
			c.EnginePlace(), sqlledger.Place(c.LedgerAt()))
	}
	if remedy := redisRemedy(err); remedy != "" {
		return fmt.Errorf("%s: %s: %w", c.EnginePlace(), remedy, err)
	}
	return fmt.Errorf("opening %s: %w", place, err)
}

// redisRemedy says what to do about a Redis that does not let dibs in. It is empty
// for other errors, and for those that say it themselves.
func redisRemedy(err error) string {
	text := err.Error()
	switch has := func(part string) bool { return strings.Contains(text, part) }; {
	case !has("redisengine: connecting"):
		return ""
	case has("WRONGPASS"), has("NOAUTH"), has("AUTH "):
		return "Redis does not let dibs in: correct user and password of --engine"
	case has("cluster support disabled"):
		return "it is a single server and no cluster: leave one address in --engine"
	case has("unknown command") && has("SENTINEL"):
		return "it is no sentinel: leave master_set out of --engine, or name the sentinels (usually port 26379)"
	}
	return "nothing answers there as Redis does: start it, or correct host, port and TLS (redis:// or rediss://) of --engine"
}
