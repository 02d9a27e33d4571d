// Package audit compares the engine with the ledger, campaign by campaign and promise
// by promise, and repairs what can be repaired without touching a claim.
package audit
