// Package overload keeps a node that gets more claims than it can answer from
// answering all of them late: it lets in as many at a time as are answered
// within a target time, and refuses the rest at once.
//
// # Basics
//
// A Guard counts the claims that are with the engine. Ten times a second or so
// it looks at how long those took that had to wait, since an answer from memory
// says nothing of a queue. While that is above the target, it lets in as many at
// a time as were answered within the target lately, by Little's law: what is
// under way is the rate times the time. When it is below, it lets in more again,
// step by step. So what is let in is answered about as soon as the target says,
// as fast as the engine can, and what is not costs two loads of memory and a few
// hundred bytes.
//
// A time that is long although little is under way is no queue: the disk or the
// network is slow then, and refusing helps nobody. The target is twice that time
// where that is more, up to four times the target.
//
// Readiness is another matter: a node that has refused for some seconds, or that
// has little memory left, says so, and that it does not any more only after as
// long a time.
//
// # Caveats
//
// On a campaign that is sold out nobody waits for the engine, and a crowd there
// fills no places. While another one fills them all, claims there are refused as
// overloaded too: which campaign it is was not looked at.
//
// Libraries for this exist. Those for Go take a lock, and memory, for each
// permit (failsafe-go's adaptivelimiter), or are not kept up any more
// (platinummonkey/go-concurrency-limits); a claim on a campaign that is sold out
// takes a few hundred nanoseconds in all, and this takes some ten of them.
package overload
