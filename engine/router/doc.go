// Package router makes one engine of several deployments: of several Redis servers,
// Sentinel groups or Clusters. It sends each call to the deployment of its shard.
//
// # Basics
//
// The ledger keeps the deployment of each shard, from the shard's first opening on. For a
// shard that was never opened the router chooses one, by rendezvous hashing of shard and
// deployment: every node that has the same deployments chooses the same one, and a
// deployment that is added later takes new shards only. The transaction that opens the
// shard makes the choice final.
//
// The first deployment has what belongs to no shard: the store for small things, and the
// lease of the nodes. First is the one that the ledger has known for longest, so that the
// order in the settings of a node does not matter.
//
// A deployment that does not answer takes nothing from the others. The router notices it
// within some three seconds, refuses what is meant for its shards at once, and asks it
// every second whether it is back. A server that answers for it under another run than
// before is checked before anything is loaded into it. A deployment that could not be
// reached when the router was made is looked for in the background, and its calls are
// refused in the same way until it can be used: it must be the deployment that the ledger
// knows, and no server of another one.
//
// # Caveats
//
// Calls that ask for all shards need all deployments: HoldingsOf fails while one is away,
// and JournalShards returns those that it has found together with the error.
package router
