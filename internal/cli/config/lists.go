package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/internal/settings"
)

// maxListed bounds the lines of lists_file, comments included.
const maxListed = 100_000

// Lists returns the clients that are blocked and those that no limit holds for: of settings that keep
// accessRules, and of lists_file as it is now. A server calls it again when the file changes, so it
// refuses a file as the start would: after an error the former lists should stay.
func (c *Config) Lists() (limit.Lists, error) {
	l := limit.Lists{
		Blocked: Prefixes(c.BlockAddresses), Allowed: Prefixes(c.AllowAddresses), BlockedDevices: c.BlockDevices, AllowedDevices: c.AllowDevices,
	}
	if c.ListsFile == "" {
		return l, nil
	}
	raw, err := os.ReadFile(c.ListsFile)
	if err != nil {
		return l, fmt.Errorf("cannot be read: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	n := 0
	for ; lines.Scan(); n++ {
		if n == maxListed {
			return l, fmt.Errorf("has more than %d lines", maxListed)
		}
		if err := c.listed(&l, lines.Text()); err != nil {
			return l, fmt.Errorf("line %d %w", n+1, err)
		}
	}
	if err := lines.Err(); err != nil {
		return l, fmt.Errorf("line %d cannot be read: %w", n+1, err)
	}
	return l, nil
}

// errListed is what every line of the file must be.
var errListed = errors.New("must be block or allow, then a network such as 203.0.113.0/24, an address, or device and its name")

// listed adds a line of the file to the lists. A comment needs a line of its own:
// the name of a device may hold any character.
func (c *Config) listed(l *limit.Lists, line string) error {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
	if line == "" || line[0] == '#' {
		return nil
	}
	verb, what, _ := strings.Cut(line, " ")
	what = strings.TrimSpace(what)
	addresses, devices := &l.Blocked, &l.BlockedDevices
	switch verb {
	case "block":
	case "allow":
		addresses, devices = &l.Allowed, &l.AllowedDevices
	default:
		return errListed
	}
	if name, ok := strings.CutPrefix(what, "device "); ok {
		if strings.Contains(name, " #") {
			return errors.New("must have no comment: put it on a line of its own")
		}
		*devices = append(*devices, strings.TrimSpace(name))
		return nil
	}
	network, err := netip.ParsePrefix(what)
	if err != nil {
		at, err := netip.ParseAddr(what)
		if err != nil {
			return errListed
		}
		network = netip.PrefixFrom(at, at.BitLen())
	}
	// Devices can still be told apart by their header.
	if c.oneAddress() {
		return errors.New("names an address, and behind_proxy needs trusted_proxies to tell addresses apart")
	}
	*addresses = append(*addresses, network)
	return nil
}

// listRules report a file of lists that cannot be used, by its first bad line.
func listRules(c *Config) []settings.Fault {
	_, err := c.Lists()
	return c.judgeErr("lists_file", err)
}
