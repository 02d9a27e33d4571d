// Package consumer handles the events of dibs on the other side: from a stream in
// Redis or NATS JetStream, with a handler that commits an event or asks for it
// again later, and from webhooks, whose signatures it checks.
//
// # Basics
//
// Run reads a stream as one of a group of consumers: each event goes to one of
// them. The handler returns Commit when it is done with an event, and
// ReconsumeLater when it could not be; after so many attempts the event goes to
// the group's dead letters, which DeadLetters lists and Replay brings back.
//
// Verify checks a request that a webhook of dibs sent.
//
// # Caveats
//
// An event may come more than once: after a crash of dibs or of a consumer, and
// when an answer got lost. Its id is the same then; a handler that must not do
// its work twice remembers ids, best in the transaction of its work.
//
// Within one process, events of one subject, a claim say, come in order, until
// one of them is asked for again: those that follow do not wait for it. Processes
// of one group share events whatever the subject. ClaimEventData.N tells what is
// older.
//
// Redis 6.2 is the oldest that will do. In a cluster the name of the stream
// needs a hash tag, {dibs}:events say. The groups of NATS have names of letters,
// digits, - and _.
package consumer
