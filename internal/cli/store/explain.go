package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/redisengine"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// ownerName is how a node names itself in the journal that it owns.
var ownerName = regexp.MustCompile(`process \d+ on [^\s)]+`)

// OwnerOf names the owner that an error is about.
func OwnerOf(err error) string {
	if owner := ownerName.FindString(err.Error()); owner != "" {
		return owner
	}
	return "another process"
}

// ExplainOpen says what to do about a data folder that cannot be opened;
// otherwise names what may be done instead, such as another flag.
func ExplainOpen(c *config.Config, err error, otherwise string) error {
	switch {
	case errors.Is(err, dibs.ErrOwned):
		return fmt.Errorf("%s is in use by %s: %s", c.Place(), OwnerOf(err), otherwise)
	case errors.Is(err, sqlledger.ErrSchema):
		if sqlledger.InServer(c.Ledger) {
			return fmt.Errorf("%w (dibs migrate brings an older schema up to date)", err)
		}
		return fmt.Errorf("%w (dibs migrate --data %s brings older files up to date)", err, c.Data)
	}
	return explainEngine(c, err)
}

// explainEngine says what to do about an engine that cannot be used.
func explainEngine(c *config.Config, err error) error {
	switch {
	case errors.Is(err, embedded.ErrDurability):
		return fmt.Errorf("%s: set Redis up for it (appendonly yes, appendfsync always; dibs doctor tells more), or ask for less with --durability: %w",
			config.EnginePlace(c.Engine), err)
	case errors.Is(err, redisengine.ErrForeign):
		return fmt.Errorf("%s holds the campaigns of another ledger than %s: correct --engine or --ledger, or name another database of this Redis, such as redis://HOST:6379/1",
			config.EnginePlace(c.Engine), sqlledger.Place(c.LedgerAt()))
	}
	if advice := redisAdvice(err); advice != "" {
		return fmt.Errorf("%s: %s: %w", config.EnginePlace(c.Engine), advice, err)
	}
	return fmt.Errorf("opening %s: %w", c.Place(), err)
}

// redisAdvice says what to do about a Redis that does not let dibs in; empty
// for other errors, and where the error itself says it.
func redisAdvice(err error) string {
	text := err.Error()
	switch has := func(part string) bool { return strings.Contains(text, part) }; {
	case !has("redisengine: connecting"):
		return ""
	case has("WRONGPASS"), has("NOAUTH"), has("AUTH "):
		return "Redis does not let dibs in: correct user and password of --engine"
	case has("cluster support disabled"):
		return "it is one server and no cluster: leave one address in --engine"
	case has("unknown command") && has("SENTINEL"):
		return "it is no sentinel: leave master_set out of --engine, or name the sentinels (port 26379 as a rule)"
	}
	return "nothing answers there as Redis does: start it, or correct host, port and TLS (redis:// or rediss://) of --engine"
}
