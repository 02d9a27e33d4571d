// Package program puts the verbs of the program dibs together, in the groups that
// its help shows.
package program
