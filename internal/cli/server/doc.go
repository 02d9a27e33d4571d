// Package server runs a node behind its HTTP server in this process: it listens,
// serves, reads changed files again, and drains when it is stopped.
package server
