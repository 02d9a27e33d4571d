package webhooks

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// FuzzURL: an address that a webhook may have leads to no private network, however it is
// written, as far as that shows before its name is looked up.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example/hooks", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0x7f.1/", "https://localhost./",
		"https://a@b/", "http://shop.example/", "https://169.254.169.254/", "https://[64:ff9b::a00:1]/", "https://[fe80::1%25eth0]/", "https://１２７.0.0.1/", "//x", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if webhookURLProblem(address, false).EN != "" {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Fatalf("%q is taken: %v", address, err)
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()) {
			t.Fatalf("%q leads to this machine or network", address)
		}
		if ip, err := netip.ParseAddr(host); err == nil && !PublicAddr(ip) {
			t.Fatalf("%q leads to %s", address, ip)
		}
	})
}
