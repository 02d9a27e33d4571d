// Package remote has the verbs that ask a running server, as an administrator,
// over its HTTP API.
package remote
