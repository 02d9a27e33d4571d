// Package enginetest is the contract of a dibs.Engine, as tests that every
// engine runs:
//
//	func TestContract(t *testing.T) {
//		enginetest.Run(t, enginetest.Factory{New: newState})
//	}
//
// # Basics
//
// A Factory makes empty durable states, and a state opens engines, one after
// the other. The suite plays the ledger itself, in memory, with the rules that
// the contract gives the ledger: it settles the journal, moves before it
// commands a release or a restock, and hands out loads of rising epochs.
//
// Each check of Checks stands alone, gets an engine of its own and returns an
// error, so that the suite itself can be tested: engines with planted bugs
// must fail it.
//
// # Environment
//
//	ENGINETEST_SEED       replay the random operations of one printed seed
//	ENGINETEST_RUNS       how many seeds are played, default 8, divided by Factory.Shards
//	ENGINETEST_STEPS      operations of each seed, default 250
//	ENGINETEST_HISTORIES  histories checked for linearizability, default 100, divided too
//
// # Caveats
//
// Where the contract leaves a choice to the engine, the checks accept every
// choice: in which order returned items are granted again, which items a
// withdrawal takes, whether a repeated command of an older epoch is answered
// with nil or ErrStale. An engine whose clock cannot be set is checked with
// windows that open and close by the real clock.
package enginetest
