package dibs

import "net/netip"

// Visitor is what the API knows of who asks for a long-lived connection, before
// it knows the user.
type Visitor struct {
	// Chinese says that texts for people are to be in Chinese, else English.
	Chinese bool
	// RequestID is what the log knows the connection by.
	RequestID string
	// Address is the client's, as the trusted proxies say.
	Address netip.Addr
}
