// Package node has the verbs that open an engine, a ledger or a whole node in
// their own process, or prepare one: serve, dev, doctor, migrate, verify, key,
// token and config.
package node
