package webhooks_test

import (
	"net/netip"
	"testing"

	"github.com/dibs-dev/dibs/webhooks"
)

// TestPublicAddr: only addresses of the public internet are, however they are
// written.
func TestPublicAddr(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"} {
		if !webhooks.PublicAddr(netip.MustParseAddr(public)) {
			t.Errorf("%s is public", public)
		}
	}
	for _, inner := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1",
		"::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:169.254.169.254", "::ffff:100.64.0.1", "::ffff:198.18.0.1", "::ffff:0.0.0.0",
		"168.63.129.16", "::ffff:168.63.129.16", "::7f00:1", "::10.1.2.3", "::ffff:0:7f00:1", "::ffff:0:10.1.2.3", "192.88.99.1", "100:0:0:1::1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00::1", "ff02::1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
	} {
		if webhooks.PublicAddr(netip.MustParseAddr(inner)) {
			t.Errorf("%s is not public", inner)
		}
	}
	if webhooks.PublicAddr(netip.Addr{}) {
		t.Error("no address is not public")
	}
}
