// Package web reads HTTP requests and writes answers: the plumbing under the
// routes of the API and of the gateway.
//
// # Basics
//
// A Responder gives each answer its request id and its headers, and turns errors
// into problem documents (RFC 9457) in English or Chinese. ReadBody and Decoder
// read bodies within limits and name every fault of one. Proxies finds the
// address of a client. Do answers the repeat of a request by its
// Idempotency-Key. Page, Pace and Flight are for answers that many callers share.
//
// # Caveats
//
// The package knows no route, no service and no metric. It imports the domain for
// its reasons, errors and texts alone.
package web
