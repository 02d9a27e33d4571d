package config_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

// TestListsFile reads the file line by line, beside the settings. The fault names the
// first bad line.
func TestListsFile(t *testing.T) {
	c := &config.Config{ListsFile: clitest.WriteFile(t, "lists", "# seen on Monday\n\nblock 203.0.113.9/24\n allow 192.0.2.7 \nblock device a farm\nallow device till\nblock 2001:db8::1\n")}
	c.BlockAddresses, c.AllowDevices = []string{"198.51.100.0/24"}, []string{"office"}
	l, err := c.Lists()
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.9/24"), netip.MustParsePrefix("2001:db8::1/128")}
	if !slices.Equal(l.Blocked, want) || !slices.Equal(l.Allowed, []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}) ||
		!slices.Equal(l.BlockedDevices, []string{"a farm"}) || !slices.Equal(l.AllowedDevices, []string{"office", "till"}) {
		t.Errorf("%+v", l)
	}
	for text, want := range map[string]string{
		"block 203.0.113.0/24\nblock everybody\n":   "line 2 must be block or allow",
		"forbid 203.0.113.0/24\n":                   "line 1 must be block or allow",
		"block device farm-7 # since Monday\n":      "line 1 must have no comment",
		"block\n":                                   "line 1 must be",
		strings.Repeat("block device x\n", 100_001): "more than 100000 lines",
		"# " + strings.Repeat("x", 70_000):          "line 1 cannot be read",
	} {
		c.ListsFile = clitest.WriteFile(t, "lists", text)
		if _, err := c.Lists(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	c.ListsFile, c.BehindProxy = clitest.WriteFile(t, "lists", "block device x\nallow 192.0.2.7\n"), true
	if _, err := c.Lists(); err == nil || !strings.Contains(err.Error(), "line 2 names an address, and behind_proxy needs trusted_proxies") {
		t.Errorf("behind a proxy: %v", err)
	}
}
