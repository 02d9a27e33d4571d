// Package api is what goes over the wire: the views of campaigns, claims and the rest
// as JSON, and problems, once for the HTTP API, the gateway and the client.
package api
