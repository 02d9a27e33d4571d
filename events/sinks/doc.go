// Package sinks carries what happened in dibs to the world: to Kafka, NATS
// JetStream, RabbitMQ, Redis Streams, and to webhooks.
//
// # Basics
//
// The ledger has a feed, whose rows are written in the transactions of what
// they tell. Start runs one dispatcher for each sink: it holds the sink by a
// lease in the ledger, so that one of many nodes does the work, reads the feed
// from the place after the last row taken, publishes, waits until the sink has
// acknowledged everything, and moves the place. Webhooks take the feed into a
// table of deliveries, which are posted from there, each with its own attempts.
//
// Events are CloudEvents, version 1.0, in JSON; the type is events.Event.
//
// # Guarantees
//
// Every event is published at least once. After a crash, or an answer that got
// lost, some are published again, with the same id. Events of one subject, a
// claim say, come in order; repeats may follow later ones, and are told by id.
//
// # Caveats
//
// A sink that is down is tried for ever, with growing pauses; the feed keeps
// what it has not taken. A sink that is in no node's configuration any more
// is forgotten after a week.
package sinks
