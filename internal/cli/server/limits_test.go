package server

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/node"
)

// TestAllowedAddressesAreNoStrangers: no limit of calls without a token holds for the
// addresses that are allowed, by the settings and by the file of lists, which is read again.
func TestAllowedAddressesAreNoStrangers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lists")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	c := &config.Config{LimitCalls: "1/1h", LimitEntries: 1024, AllowAddresses: []string{"198.51.100.0/24"}, ListsFile: file}
	all, err := limit.New(limit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	s := &Server{c: c, node: &node.Node{Limits: all}}
	var cfg httpapi.Config
	if err := s.openLimits(&cfg); err != nil {
		t.Fatal(err)
	}
	defer s.strangers.Close()
	passes := func(when, address string, want bool) {
		t.Helper()
		_, ok := true, true
		for range 3 {
			_, ok = s.strangers.Enter(t.Context(), &dibs.ClaimRequest{Address: netip.MustParseAddr(address)})
		}
		if ok != want {
			t.Errorf("%s, a third call of %s passes: %t", when, address, ok)
		}
	}
	passes("at the start", "198.51.100.7", true)
	passes("at the start", "203.0.113.7", false)
	write("allow 203.0.113.0/24\n")
	for _, set := range s.watched() {
		if err := set.load(); err != nil {
			t.Fatal(err)
		}
	}
	passes("after the file has changed", "203.0.113.7", true)
}
