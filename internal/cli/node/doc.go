// Package node has the verbs that open an engine, a ledger or a whole node in their own process, or
// prepare one: serve, dev, doctor, migrate, verify, key, token and config.
//
// Basics: each verb reads the settings that it needs (package config), refuses them all at once with
// exit code 2, opens what they name and closes it at its end. serve and dev run until a signal comes.
//
// Caveats: with the memory engine one process at a time may use the journal, so a verb that opens it
// fails beside a running server and names the owner. With Redis, verbs work beside running nodes.
package node
