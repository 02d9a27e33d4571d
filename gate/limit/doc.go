// Package limit bounds how often claims are made: by a user, from an address or
// a device, on a campaign, and on the whole server; by token buckets, which let
// a burst through, or by leaky ones, in which claims queue and drain evenly.
//
// # Basics
//
// A bucket is one number, the moment at which it will be as if never used; a
// claim moves that on by the time that it is worth. So one atomic step decides,
// nothing has to be refilled, and a bucket whose moment has passed can be
// forgotten. Those of users are in a table of fixed size, those of addresses and of
// devices in two others: when a table is full, the bucket that is nearest to being
// forgotten is. Names come from clients, so buckets are found by a keyed hash of the
// limit and the name.
//
// Several nodes share through Redis, and no claim waits for it. Of a limit of a
// campaign or of the server each node holds a share ahead of time, by how much
// is asked of it; the shares that are held never add up to more than the whole.
// Of users, addresses and devices that come near their limit, nodes tell one
// another ten times a second what they used.
//
// # Caveats
//
// The number of claims that pass beyond a limit is bounded; docs/GATE.md says by
// what. A node that cannot reach Redis keeps its last share: the engine is there
// too, and takes no claims meanwhile.
package limit
