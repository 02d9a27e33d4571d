// Package erasure erases users: it replaces their names by pseudonyms wherever the
// ledger, the engine and the nodes have them, in steps that go on after a crash.
package erasure
