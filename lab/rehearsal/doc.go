// Package rehearsal rehearses a rush: it loads a running dibs with the presses
// of many users, or of one, and then checks every promise against what the
// server answered and against what it keeps.
//
// # Basics
//
// Run does it all: it starts an embedded server of its own (or speaks to one by
// URL), makes a campaign, presses, repeats what was granted, reads every
// granted claim back, asks the server to compare its engine with its ledger,
// and returns a Report. Report.Table and Report.JSON show it.
//
// Latency is measured open-loop: from the moment at which a press was meant to
// happen, not from the moment at which the load found time to send it. A server
// that makes its callers wait therefore cannot hide it.
//
// # Caveats
//
// Load and server share the machine when the server is the rehearsal's own, so
// its rates are a floor of what the server can do. When a connection breaks,
// the effect of its press is unknown; the same press is then sent again with
// the same idempotency key, which tells. Without keys that is not possible, and
// such a press stays unexplained.
package rehearsal
