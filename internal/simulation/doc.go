// Package simulation runs whole dibs nodes in virtual time, has everything go wrong
// around them, and holds the seven promises against what simulated people were told.
//
// # Basics
//
// One seed draws one run: how many nodes there are and how wrong their clocks are,
// the campaigns, the people, the settings, and what goes wrong. Several nodes, each a
// node.Service as the project wires it, run in one bubble of testing/synctest over a
// model of Redis and the real SQL ledger on SQLite. An hour takes some milliseconds.
// Users claim, repeat, pay, cancel; admins restock, withdraw, pause, extend, end;
// meanwhile servers are restarted, emptied, promoted with a copy that is late, or
// two are alive at a time; nodes are killed between any two steps, stand still, or
// reach nothing; answers are lost, late, or come after the caller has given up; the
// ledger is slow, ends transactions in favour of others, commits without saying so,
// or goes back to a dump.
//
// After each round everything is healed. Then all that was granted has to be settled
// within a stated time, and every promise is looked at: what the ledger has, what the
// engine has, and what each user and admin was told. The declared level says what may
// be lost: at dibs.LevelDurable a yes whose entry is in no history that is left, at
// dibs.LevelLedgered nothing. In the end strangers buy what is left,
// to the last unit, and the engine has to let go of all.
//
// A broken promise shows the plan, the story of the run, and the seed. The seed runs
// it again, as far as Go's scheduler allows: every chance is drawn by the name of
// what it is for, and hardly two things happen at the same moment.
//
// # Where things are
//
//	run       the rounds of a run, from its seed to what came of it
//	plan      what a run is like, drawn from the seed; dice draw everything else
//	scene     what all of a run share: its clock, its book, its story
//	memory, server, decide
//	          the model of Redis: what a server holds, and its scripts, one step each
//	engine, opening
//	          a node's dibs.Engine over that model; wire loses and delays its calls
//	base, ledger
//	          the SQL ledger, its dumps, and what goes wrong on the way to it
//	process   nodes that start, die and start again
//	world     nodes, servers and the ledger, with what is wrong between them
//	harm      what goes wrong, and healing it
//	users, admins, client, book
//	          people, how they ask nodes, and what they were told
//	judge, promises, finish
//	          quiet moments
//	planted   faults that dibs once had, for tests of the simulation itself
//
// # Caveats
//
// The engine is a model: what is wrong in the Lua scripts themselves is not found
// here. It keeps to their steps (which of them there are, what each checks, what is
// written together), and has to follow them when they change. docs/SIMULATION.md
// says what it would take to run the scripts themselves.
package simulation
