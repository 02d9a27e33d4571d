package room

import (
	"fmt"
	"hash/crc32"
)

// buckets is over how many hashes the users of a room are spread: those of a room
// of millions stay small enough for the compact form that Redis has for them.
// It must never change while rooms last: nodes of all versions look in the same
// bucket.
const buckets = 16_384

// The keys of a campaign's room share a hash tag, so that a cluster keeps them in
// one slot, where a script may use them together. It is another one than that of
// the campaign's stock: who waits does not slow down who claims.
func keyTag(campaign uint32) string { return fmt.Sprintf("dibs:{%d:room}:", campaign) }

// metaKey is a hash: how far the room is.
func metaKey(campaign uint32) string { return keyTag(campaign) + "meta" }

// goneKey is a hash of the places that were given up and are not passed yet.
func goneKey(campaign uint32) string { return keyTag(campaign) + "gone" }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// bucketKey is a hash with the numbers of a few users. It is found without a secret:
// Redis compares names in full, so users who choose ids that meet in one bucket share
// nothing and only make that hash larger. Nodes of all versions have to find a user
// in the same one, for as long as a room lasts.
func bucketKey(campaign uint32, user string) string {
	return bucketAt(campaign, crc32.Checksum([]byte(user), castagnoli)%buckets)
}

func bucketAt(campaign, bucket uint32) string { return fmt.Sprintf("%su:%d", keyTag(campaign), bucket) }
