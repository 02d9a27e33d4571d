// Package funds keeps accounts by double entry: what comes in from outside, what a
// red packet holds in escrow, credits to its users, and returns to its sender.
package funds
