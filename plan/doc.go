// Package plan answers before a rush what the rush will need: how many nodes, how
// much memory, how far the ledger falls behind, how long users wait, and what
// breaks first.
//
// # Basics
//
// A Question describes the crowd, the stock and the deployment. A Calibration has
// what each step costs on the machines in question; Default returns the one that
// is embedded, and package plan/measure takes a new one. Ask runs a discrete-event
// simulation of the crowd, the nodes, the engine, the settlers and the ledger, and
// looks for the smallest deployment that answers in time. The Answer is written as
// a table, as JSON, or as a page with charts.
//
// The same question, calibration and seed give the same answer: nothing in the
// simulation depends on the machine that runs it.
//
// # Caveats
//
// Requests travel through the simulation in parcels of equal size, at most some
// ten thousand of them, so that a hundred million users take seconds. A parcel
// costs what its requests cost, and its requests are answered together; so waits
// shorter than the work of one parcel are not resolved. The Answer says how large
// a parcel was. Assumptions are listed in docs/SCALE.md.
package plan
