// Package httpapi serves dibs over HTTP: campaigns and claims for users,
// products, campaigns, stock and numbers for admins, and the operations
// endpoints.
//
// # Basics
//
// New returns an http.Handler for a dibs.Service; NewServer wraps a handler in
// an http.Server with limits on everything a client can hold open. Every route
// but the claim is a huma operation, so that its parameters are validated and
// documented from one source; the claim is a handler of its own, since it is
// what everybody calls at the same second. All routes are in /openapi.json,
// and /docs shows them to people.
//
// Every refusal and error is a problem document (RFC 9457) in the language
// that the caller prefers, Chinese or English.
//
// # Caveats
//
// The handler trusts the connection's peer: TLS, compression and limits per
// address belong to the proxy in front of it.
package httpapi
