// Package conn speaks to Redis for the engine: one server, a set behind Sentinel, or a
// cluster. It sends commands and the scripts of folder lua, and turns answers into
// replies, errors with their effect, and what a server tells of itself. It knows
// nothing of claims.
package conn
