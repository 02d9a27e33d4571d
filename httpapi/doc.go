// Package httpapi serves dibs over HTTP: campaigns, claims, orders and gates for
// users; campaigns, stock, products, money, webhooks, audiences and the admin log for
// administrators; health and metrics for operators.
//
// # Basics
//
// New returns an http.Handler for a node's Services; NewServer wraps a handler in
// an http.Server with limits on everything a client can hold open. All routes are in
// /openapi.json, and /docs shows them to people. Every refusal and error is a problem
// document (RFC 9457) in English or Chinese.
//
// Routes are grouped by resource. A file has the routes of a group, a type with
// their handlers, and the interface that these call; services.go says which type
// fills it. Every route but the claim is a huma operation, so that its parameters are
// validated and documented from one source. To follow a request, read router.go for
// what all routes have in common, then register.go for the steps of an operation:
// admit the caller, read the body, log the act of an administrator, run, answer. The
// claim has a handler of its own, claim.go, since all users of a sale call it within
// the same seconds.
//
// # Caveats
//
// The handler trusts the connection's peer: TLS, compression and limits per
// address belong to the proxy in front of it.
package httpapi
