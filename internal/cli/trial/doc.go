// Package trial has the verbs that try a sale out before it happens: rehearse, plan and lab.
//
// Basics: rehearse loads a server as a rush does and checks every promise; plan computes what a rush
// needs; lab runs ways to sell, and locks, side by side. Each starts the servers that nobody names, in
// temporary folders, and removes what it made. Progress goes to the error output.
//
// Caveats: load and servers share this machine unless a server is named, so rates are floors. rehearse
// and lab put all the load on a server that they can: never name one that is in use.
package trial
