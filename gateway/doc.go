// Package gateway holds the long-lived connections of users: WebSockets, which
// carry claims and results, and streams of server-sent events, which carry what
// happens to a campaign.
//
// # Basics
//
// New makes a Hub of a node. The API gives it its connections: httpapi's
// Config.Gateway takes a Hub. Drain has all of them go elsewhere, Close ends
// what is left.
//
// A claim's message id is its idempotency key, so that a tap that was sent
// again, over this connection or another one, through this node or another
// one, is the same claim. A claim that was begun is decided also when its
// connection is gone.
//
// # Caveats
//
// Messages tell where a campaign stands, not each step on the way: a client that
// reads slowly gets the newest and misses those between.
//
// An idle connection is one goroutine and small buffers. Messages are written by a
// goroutine that lives as long as there is something to send.
package gateway
