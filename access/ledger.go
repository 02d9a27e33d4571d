package access

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
