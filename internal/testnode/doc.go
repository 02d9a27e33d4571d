// Package testnode runs nodes for the tests of the services: a whole node on a
// folder, whose clock the test moves and whose files it damages (Rig), or a service
// whose calls to engine and ledger a test stands in between (Parts).
package testnode
