package main

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// The file of lists is read line by line, beside the settings, and the first line
// that says nothing is named.
func TestListsFile(t *testing.T) {
	c := &config.Config{ListsFile: writeFile(t, "lists", "# seen on Monday\n\nblock 203.0.113.9/24\n allow 192.0.2.7 \nblock device a farm\nallow device till\nblock 2001:db8::1\n")}
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
		"block device farm-7 # since Monday\n":      "line 1 must have no remark",
		"block\n":                                   "line 1 must be",
		strings.Repeat("block device x\n", 100_001): "more than 100000 lines",
		"# " + strings.Repeat("x", 70_000):          "line 1 cannot be read",
	} {
		c.ListsFile = writeFile(t, "lists", text)
		if _, err := c.Lists(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	c.ListsFile, c.BehindProxy = writeFile(t, "lists", "block device x\nallow 192.0.2.7\n"), true
	if _, err := c.Lists(); err == nil || !strings.Contains(err.Error(), "line 2 names an address, and behind_proxy needs trusted_proxies") {
		t.Errorf("behind a proxy: %v", err)
	}
}

// Who is put on the list hears so at once, without a restart; a list with a fault
// changes nothing.
func TestListsChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lists")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("block device farm\n")
	p, url := startServe(t, t.TempDir(), "--lists-file", file)
	publish(t, admin(t, url), "phone", 10)
	user, err := httpapi.IssueToken([]byte(testSecret), "42", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	hears := func(status int) {
		t.Helper()
		eventuallyHears(t, url+"/v1/campaigns/phone/claims", user, status)
	}
	hears(http.StatusCreated)
	write("block\t127.0.0.0/8\n")
	p.signal(t, syscall.SIGHUP)
	hears(http.StatusForbidden)
	write("block 127.0.0.0/8\nblock nobody in particular\n")
	p.signal(t, syscall.SIGHUP)
	p.await(t, p.err, `cannot be used; what was before stays.*line 2 must be block or allow`)
	hears(http.StatusForbidden)
	write("")
	p.signal(t, syscall.SIGHUP)
	hears(http.StatusConflict)
}

// eventuallyHears asks until the answer has a status.
func eventuallyHears(t *testing.T, address, token string, status int) {
	t.Helper()
	tick, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		have := ask(t, http.MethodPost, address, token, "")
		if have == status {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("status %d, want %d", have, status)
		}
	}
}
