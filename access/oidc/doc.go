// Package oidc signs administrators in at an OpenID provider, with the authorization code flow and PKCE.
//
// # Basics
//
// New makes a Provider of settings, without a connection. Address is where a browser is sent; Person turns the code
// that the browser brings back into who it is, with the role that the person's groups have:
//
//	to, err := p.Address(ctx, attempt)
//	person, err := p.Person(ctx, code, attempt)
//
// # Caveats
//
// The provider is looked up at the first sign-in, and again every few minutes, so that a service starts while its
// provider is away, and follows changes of addresses and keys. A person's groups are read when they sign in: what is
// changed at the provider later shows with the next sign-in.
package oidc
