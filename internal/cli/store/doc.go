// Package store opens what the settings name, a node or a ledger, and explains in
// the user's words why it cannot be opened.
package store
