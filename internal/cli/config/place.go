package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/sqlledger"
)

// SQLitePrefix is how the address of a file begins.
const SQLitePrefix = "sqlite:"

// LedgerAt is the address of the ledger.
func (c *Config) LedgerAt() string {
	if c.Ledger == "" {
		return SQLitePrefix + filepath.Join(c.Data, embedded.LedgerFile)
	}
	return c.Ledger
}

// JournalAt is the address of the embedded engine's journal.
func (c *Config) JournalAt() string {
	if sqlledger.InServer(c.Ledger) {
		return c.Ledger
	}
	return SQLitePrefix + filepath.Join(c.Data, embedded.JournalFile)
}

// JournalPlace is where the journal is, as it can be shown.
func (c *Config) JournalPlace() string {
	if c.OnRedis() {
		return EnginePlace(c.Engine)
	}
	return sqlledger.Place(c.JournalAt())
}

// Place names what is opened: the data folder or a server's database, which one
// process at a time may have with the memory engine, or Redis and the ledger.
func (c *Config) Place() string {
	if c.OnRedis() {
		return EnginePlace(c.Engine) + " and " + sqlledger.Place(c.LedgerAt())
	}
	if sqlledger.InServer(c.Ledger) {
		return "the database " + sqlledger.Place(c.Ledger)
	}
	return "the data folder " + c.Data
}

// OnRedis reports whether other nodes may decide beside this one.
func (c *Config) OnRedis() bool { return c.Engine != embedded.Memory }

// EnginePlace is an engine's name as it can be shown: without user, password
// and options.
func EnginePlace(engine string) string {
	if engine == embedded.Memory {
		return engine
	}
	u, err := url.Parse(engine)
	if err != nil {
		return "an address that cannot be read"
	}
	hosts := append([]string{u.Host}, u.Query()["addr"]...)
	return u.Scheme + "://" + strings.Join(hosts, ",") + u.Path
}
