//go:build soak

package main

import "testing"

// TestTenThousand has ten thousand users tap over WebSockets of one node that is
// killed meanwhile. Each connection is a file of this process and one of the
// node's.
func TestTenThousand(t *testing.T) { crowdKilled(t, 10_000) }
