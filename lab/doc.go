// Package lab runs the ways of [strategies] side by side: the same servers, the
// same presses, one after the other, and afterwards the orders are counted.
//
// # Basics
//
// Run takes a Config, starts the servers that it has no address for, and
// returns a Report, which Table, JSON and HTML show.
//
// # Caveats
//
// Load and servers share the machine when the servers are the lab's own, so that
// rates are floors; what one way costs more than another is what they show. A
// way that is not done when its time is over is stopped, and then nothing is
// said about what it left unsold.
package lab
