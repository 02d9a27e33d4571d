// Package cli is the frame of every verb of the program dibs: how a command line
// is read and refused, how an answer is shown, and what the process exits with.
package cli
