package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/sqlledger"
)

// SQLitePrefix begins the address of a SQLite file.
const SQLitePrefix = "sqlite:"

// LedgerAt returns the address of the ledger.
func (c *Config) LedgerAt() string {
	if c.Ledger == "" {
		return SQLitePrefix + filepath.Join(c.Data, node.LedgerFile)
	}
	return c.Ledger
}

// JournalAt returns the address of the memory engine's journal.
func (c *Config) JournalAt() string {
	if sqlledger.InServer(c.Ledger) {
		return c.Ledger
	}
	return SQLitePrefix + filepath.Join(c.Data, node.JournalFile)
}

// EnginePlace names the engine for people.
func (c *Config) EnginePlace() string { return enginePlace(c.Engine) }

// JournalPlace names the place of the journal for people.
func (c *Config) JournalPlace() string {
	if c.OnRedis() {
		return c.EnginePlace()
	}
	return sqlledger.Place(c.JournalAt())
}

// Place names for people what a node opens: Redis and the ledger; or with the
// memory engine the data folder, or a server's database, which one process at a
// time may use.
func (c *Config) Place() string {
	if c.OnRedis() {
		return c.EnginePlace() + " and " + sqlledger.Place(c.LedgerAt())
	}
	if sqlledger.InServer(c.Ledger) {
		return "the database " + sqlledger.Place(c.Ledger)
	}
	return "the data folder " + c.Data
}

// OnRedis reports whether the engine is Redis, where other nodes may decide claims
// beside this one.
func (c *Config) OnRedis() bool { return c.Engine != node.Memory }

// enginePlace returns an engine's address without user, password and options.
func enginePlace(engine string) string {
	if engine == node.Memory {
		return engine
	}
	u, err := url.Parse(engine)
	if err != nil {
		return "an address that cannot be read"
	}
	hosts := append([]string{u.Host}, u.Query()["addr"]...)
	return u.Scheme + "://" + strings.Join(hosts, ",") + u.Path
}
