// Package measure takes the calibration that package plan simulates with, and holds
// what a plan says against what a rehearsal shows.
//
// # Basics
//
// Run starts servers of its own, loads them as dibs rehearse does, and reads from
// their metrics what each step costs: several times, of which the middle counts. Check
// lets a plan predict rehearsals of several sizes, runs them, and reports how far the plan
// was off. RunAndCheck does both by turns.
//
// # Caveats
//
// Load and servers share the machine, and so may other programs. Costs of processors
// are counted in processor time, which they do not change; the times of disks and
// databases are as long as they were. A calibration is worth what the machine was: take it
// where the servers will run, while nothing else does. With a Redis or a database of
// your own, campaigns named rehearsal-… stay in it, and of a Redis without a ledger the
// file of SQLite that they are in.
package measure
