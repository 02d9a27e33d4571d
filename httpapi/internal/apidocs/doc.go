// Package apidocs renders an OpenAPI document as one HTML page for people: every
// operation with a command that calls it, every schema, and every reason of a
// refusal. The page needs no script and nothing from other servers.
package apidocs
