// Package claims takes claims to the engine and finds them again, settled or not.
//
// The way of a claim is in claim.go, from top to bottom: the campaign, its gate, the
// engine, the answer. Campaigns that this node does not hold are in notlive.go.
package claims
