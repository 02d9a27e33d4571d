// Package tokens verifies the JWTs by which users say who they are: signed by
// a secret that is shared (HS256), or by somebody whose public keys are at an
// address (a JWKS; RS256 and ES256), or either.
//
// # Basics
//
// Open makes a Verifier. Secrets and keys may change while it works: several
// secrets are good at once, so that a new one can be handed out before the old
// one is taken away, and the JWKS is read again on its own. Epoch rises with every
// change, so that a caller that remembers verified tokens knows when to forget them.
//
// # Caveats
//
// Nothing is believed but the signature: a key is used for the algorithm that
// it is made for and no other, a token's own `jku`, `x5u` and `jwk` are not
// read, and `alg: none` does not exist here.
package tokens
