// Package viewcache keeps what users read before and during a sale as it is sent: the
// public view of each campaign, its page for people, and the first page of the list
// of campaigns.
//
// # Basics
//
// Campaign, List and HTML answer a request from memory, or leave it to its route.
// Neither the number of readers nor that of claims makes the ledger work: it is read
// when a campaign or its product has changed.
package viewcache
