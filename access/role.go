package access

import "slices"

// Role is what an API key may do.
type Role string

// The roles; each may do what those before it may.
const (
	// RoleViewer may read.
	RoleViewer Role = "viewer"
	// RoleEditor may draft and edit products and campaigns.
	RoleEditor Role = "editor"
	// RolePublisher may run campaigns: publish, pause, restock, and the steps of
	// claims that they lead to.
	RolePublisher Role = "publisher"
	// RoleAdmin may do everything: money from outside, webhooks, repairs, users'
	// data, the audit log.
	RoleAdmin Role = "admin"
)

// roles are all roles, the least first.
var roles = []Role{RoleViewer, RoleEditor, RolePublisher, RoleAdmin}

// May reports whether a role may do what another one may. A role that there is
// not may do nothing.
func (r Role) May(other Role) bool {
	has, needs := slices.Index(roles, r), slices.Index(roles, other)
	return needs >= 0 && has >= needs
}
