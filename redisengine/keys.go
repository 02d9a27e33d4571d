package redisengine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
)

// shardsKey is the hash of all shards that were opened, with the step of its
// opening that each was at last; see Engine.list. It, ledgerKey and tickets are the only keys outside of a shard's hash tag.
const shardsKey = "dibs:shards"

// statePrefix begins the keys by which processes follow what is refused. They
// have a prefix of their own, since followers hear of every key with it.
const statePrefix = "dibs:state:"

// ticketKey is the key of a value that is taken once. Who reads Redis cannot use
// what it finds.
func ticketKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "dibs:ticket:{" + hex.EncodeToString(sum[:16]) + "}"
}

// ledgerKey is the identity of the ledger that this Redis belongs to.
const ledgerKey = "dibs:ledger"

// keys are the names of one shard's keys. They share a hash tag, so that a
// cluster keeps them in one slot, where a script may use them together.
type keys struct {
	// meta is a hash: state, place of the last entry, counts, definition.
	meta string
	// holdings is a hash of buckets, each with the claims of a few users.
	holdings string
	// places is the index from a place to the bucket of its claim, and its time.
	places string
	// journal is a stream, whose ids are epoch-seq of each batch's last entry.
	journal string
	// free is the list of items that nobody holds, in granting order.
	free string
	// issued is a hash from a place to the items of its claim.
	issued string
	// refs is the set of stock changes that were counted.
	refs string
	// state is written when what the shard refuses everybody with may have changed.
	// Its name begins with statePrefix, by which the processes follow it.
	state string
	// settler is the process that settles and loads the shard, while its lease lasts.
	settler string
	// end is where the journal of a retired shard ended, as a stream id.
	end string
}

func keysOf(id dibs.ShardID) keys {
	tag := fmt.Sprintf("dibs:{%d:%d}:", id.Campaign, id.Shard)
	return keys{
		meta: tag + "meta", holdings: tag + "holdings", places: tag + "places", journal: tag + "journal",
		free: tag + "free", issued: tag + "issued", refs: tag + "refs",
		settler: tag + "settler", end: tag + "end", state: fmt.Sprintf("%s{%s}", statePrefix, memberOf(id)),
	}
}

// probeKeys are those that probe.lua tries.
var probeKeys = []string{
	"dibs:{probe}:meta", "dibs:{probe}:journal", "dibs:{probe}:free", "dibs:{probe}:refs", "dibs:{probe}:settler", statePrefix + "{probe}",
}

// memberOf names a shard in the hash of all shards.
func memberOf(id dibs.ShardID) string { return fmt.Sprintf("%d:%d", id.Campaign, id.Shard) }

// shardOf reads what memberOf wrote.
func shardOf(member string) (dibs.ShardID, error) {
	campaign, shard, _ := strings.Cut(member, ":")
	c, err := strconv.ParseUint(campaign, 10, 32)
	if err != nil {
		return dibs.ShardID{}, fmt.Errorf("redisengine: the list of shards has %q: %w", member, dibs.ErrCorrupt)
	}
	s, err := strconv.ParseUint(shard, 10, 8)
	if err != nil {
		return dibs.ShardID{}, fmt.Errorf("redisengine: the list of shards has %q: %w", member, dibs.ErrCorrupt)
	}
	return dibs.ShardID{Campaign: uint32(c), Shard: uint8(s)}, nil
}

// streamID is a place as an id of the journal's stream.
func streamID(c dibs.Cursor) string { return fmt.Sprintf("%d-%d", c.Epoch, c.Seq) }

// streamPlace reads what streamID wrote.
func streamPlace(id string) (dibs.Cursor, error) {
	epoch, seq, _ := strings.Cut(id, "-")
	e, err := strconv.ParseUint(epoch, 10, 16)
	if err == nil && e > dibs.MaxEpoch {
		err = strconv.ErrRange
	}
	if err != nil {
		return dibs.Cursor{}, fmt.Errorf("redisengine: the journal has the id %q: %w", id, dibs.ErrCorrupt)
	}
	s, err := strconv.ParseUint(seq, 10, 32)
	if err != nil {
		return dibs.Cursor{}, fmt.Errorf("redisengine: the journal has the id %q: %w", id, dibs.ErrCorrupt)
	}
	return dibs.Cursor{Epoch: uint16(e), Seq: uint32(s)}, nil
}
