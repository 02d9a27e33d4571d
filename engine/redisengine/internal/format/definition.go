package format

import (
	"math"
	"slices"

	"github.com/dibs-dev/dibs"
)

// Definition is a campaign as the scripts read it.
type Definition struct {
	Version, StartsMS, EndsMS, PayInMS, Limit int64
	// OfProduct is the limit per product, 0 for none.
	OfProduct                 int64
	Closed, Items, LimitFirst int
	// Shards is the campaign's number of shards.
	Shards int
	// Divided are the numbers of shards that the campaign has or had, each between commas.
	Divided string
}

// The values of Definition.Closed.
const (
	isOpen = iota
	IsPaused
	IsEnded
)

// Define returns a campaign as the scripts read it. A state that is neither published
// nor paused refuses as ended.
func Define(c *dibs.Campaign) Definition {
	d := Definition{
		Version: c.Version, StartsMS: c.StartsAt.UnixMilli(), EndsMS: c.EndsAt.UnixMilli(),
		PayInMS: c.PayWithin.Milliseconds(), Limit: min(c.LimitPerUser, math.MaxUint32),
		OfProduct: c.LimitPerProduct, Shards: c.Shards,
	}
	d.Divided = ","
	for _, shards := range append(slices.Clip(c.EarlierShards), c.Shards) {
		d.Divided += Itoa(shards) + ","
	}
	switch c.State {
	case dibs.Published:
		d.Closed = isOpen
	case dibs.PausedState:
		d.Closed = IsPaused
	default:
		d.Closed = IsEnded
	}
	if c.HasItems() {
		d.Items = 1
	}
	if c.LimitFirst() {
		d.LimitFirst = 1
	}
	return d
}
