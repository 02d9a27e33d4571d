package format

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
)

// ShardsKey is the hash of all shards that were opened, with the step of its
// opening that each was at last. It, LedgerKey, DeploymentKey and those of ValueKey are
// the only keys outside of a shard's hash tag.
const ShardsKey = "dibs:shards"

// StatePrefix begins the keys by which processes follow what is refused. They
// have a prefix of their own, since Redis tells followers of every key with it.
const StatePrefix = "dibs:state:"

// ValueKey is the key of a value of the shared store, which is taken once. A reader of
// Redis cannot use what it finds: the name stands there as a hash.
func ValueKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "dibs:ticket:{" + hex.EncodeToString(sum[:16]) + "}"
}

// LedgerKey is the identity of the ledger that this Redis belongs to.
const LedgerKey = "dibs:ledger"

// DeploymentKey is the identity of this deployment among those of its ledger.
const DeploymentKey = "dibs:deployment"

// Keys are the names of one shard's keys. They share a hash tag, so that a
// cluster keeps them in one slot, where a script may use them together.
type Keys struct {
	// Meta is a hash: state, place of the last entry, counts, definition.
	Meta string
	// Holdings is a hash of buckets, each with the claims of a few users.
	Holdings string
	// Places is the index from a place to the bucket of its claim, and its time.
	Places string
	// Journal is a stream, whose ids are epoch-seq of each batch's last entry.
	Journal string
	// Free is the list of items that no claim has, in granting order.
	Free string
	// Issued is a hash from a place to the items of its claim.
	Issued string
	// Refs is the set of stock changes that were counted.
	Refs string
	// State is written when what the shard refuses every user with may have changed.
	// Its name begins with StatePrefix, by which the processes follow it.
	State string
	// Settler is the process that settles and loads the shard, while its lease lasts.
	Settler string
	// End is where the journal of a retired shard ended, as a stream id.
	End string
	// Product is the product whose limit the campaign shares; empty for none.
	Product string
	// Counted and Units are those of the product: a hash of the campaigns whose claims
	// count, and a hash of what users hold of each. Empty without a Product.
	Counted, Units string
}

// OfProduct are the keys that scripts which count take besides; none without a Product.
func (k *Keys) OfProduct() []string {
	if k.Product == "" {
		return nil
	}
	return []string{k.Counted, k.Units}
}

// KeysOf names the keys of a shard. Shards of campaigns that share the limit of a
// product have its hash tag, so that one script counts over all of them. No id of a
// product has a slash.
func KeysOf(id dibs.ShardID, product string) Keys {
	if product == "" {
		return keysOf(fmt.Sprintf("dibs:{%d:%d}:", id.Campaign, id.Shard), fmt.Sprintf("%s{%s}", StatePrefix, MemberOf(id)))
	}
	tag := fmt.Sprintf("{product/%s:%d}:", product, id.Shard)
	k := keysOf(fmt.Sprintf("dibs:%s%d:", tag, id.Campaign), StatePrefix+tag+MemberOf(id))
	k.Product, k.Counted, k.Units = product, "dibs:"+tag+"counted", "dibs:"+tag+"units"
	return k
}

// ShardOfState returns the shard whose State key has a name.
func ShardOfState(key string) (dibs.ShardID, error) {
	tag, member, _ := strings.Cut(strings.TrimPrefix(key, StatePrefix+"{"), "}")
	if member == "" {
		return ShardOf(tag)
	}
	return ShardOf(strings.TrimPrefix(member, ":"))
}

func keysOf(tag, state string) Keys {
	return Keys{
		Meta: tag + "meta", Holdings: tag + "holdings", Places: tag + "places", Journal: tag + "journal",
		Free: tag + "free", Issued: tag + "issued", Refs: tag + "refs",
		Settler: tag + "settler", End: tag + "end", State: state,
	}
}

// ProbeKeys are those that probe.lua tries.
var ProbeKeys = []string{
	"dibs:{probe}:meta", "dibs:{probe}:journal", "dibs:{probe}:free", "dibs:{probe}:refs", "dibs:{probe}:settler", StatePrefix + "{probe}",
}

// MemberOf names a shard in the hash of all shards.
func MemberOf(id dibs.ShardID) string { return fmt.Sprintf("%d:%d", id.Campaign, id.Shard) }

// ShardOf reads what MemberOf wrote.
func ShardOf(member string) (dibs.ShardID, error) {
	campaign, shard, _ := strings.Cut(member, ":")
	c, err := strconv.ParseUint(campaign, 10, 32)
	s, wrong := strconv.ParseUint(shard, 10, 8)
	if err != nil || wrong != nil {
		return dibs.ShardID{}, fmt.Errorf("redisengine: the list of shards has %q: %w", member, dibs.ErrCorrupt)
	}
	return dibs.ShardID{Campaign: uint32(c), Shard: uint8(s)}, nil
}

// StreamID is a place as an id of the journal's stream.
func StreamID(c dibs.Cursor) string { return fmt.Sprintf("%d-%d", c.Epoch, c.Seq) }

// StreamPlace reads what StreamID wrote.
func StreamPlace(id string) (dibs.Cursor, error) {
	epoch, seq, _ := strings.Cut(id, "-")
	e, err := strconv.ParseUint(epoch, 10, 16)
	s, wrong := strconv.ParseUint(seq, 10, 32)
	if err != nil || e > dibs.MaxEpoch || wrong != nil {
		return dibs.Cursor{}, fmt.Errorf("redisengine: the journal has the id %q: %w", id, dibs.ErrCorrupt)
	}
	return dibs.Cursor{Epoch: uint16(e), Seq: uint32(s)}, nil
}
