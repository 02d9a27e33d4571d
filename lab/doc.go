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
// Load and servers share the machine when the servers are the lab's own, so rates are floors: what
// they show is what one way costs more than another in the same run. Rates of two runs or two
// machines do not compare. A strategy that sells too much once is unsafe; one that did not may have
// been lucky, and the verdict says so. A strategy that is not done when its time is over is stopped,
// and then nothing is said about what it left unsold.
package lab
