// Package access knows who may call as an administrator, and what they did: API keys
// with roles and scopes, sessions of the console, sign-ins at an identity provider,
// revoked tokens of users, approvals by a second person, the admin log with its chain of
// hashes, and the answers to admin requests that may be repeated.
package access
