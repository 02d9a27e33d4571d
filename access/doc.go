// Package access keeps API keys and their roles, the log of what administrators did,
// and the answers to admin requests that may be repeated.
package access
