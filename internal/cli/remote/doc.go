// Package remote has the verbs that ask a running server, as an administrator, over its HTTP API.
//
// Basics: a verb reads its flags, refuses what it can judge without the server, makes one call or
// a few, and shows the answer as a table or, with --output json, as the API's own JSON. It does not
// judge limits and states: the server does, in one place for all its clients, and the verb names
// the flags in its answer. Amounts are shown and read as people write them, 12.50 CNY; in JSON
// they are whole minor units, as in the API.
//
// Exit codes: 0 when the server did it, also when it had done it before; 1 when it refused or was
// not reached; 2 when the command line or a file is wrong, so that the same command fails again.
//
// Caveats: no verb repeats a call by itself and no call has a time limit of its own; Ctrl-C ends
// it. A verb whose call got no answer may or may not have had its effect. Each verb says whether
// it may be repeated, and what makes that safe: an id, a ref or an idempotency key.
package remote
