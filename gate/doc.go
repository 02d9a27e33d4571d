// Package gate has the words that waiting rooms, lotteries, tickets and audiences share
// with the ledger and the API: their rows, their views, and what each of them does.
package gate
