package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// SQLitePrefix begins the address of a SQLite file.
const SQLitePrefix = "sqlite:"

// LedgerAt returns the address of the ledger: the setting's, or a file in the data folder.
func (c *Config) LedgerAt() string {
	if c.Ledger == "" {
		return SQLitePrefix + filepath.Join(c.Data, node.LedgerFile)
	}
	return c.Ledger
}

// JournalAt returns the address of the memory engine's journal: in the ledger's server, or a file of
// its own in the data folder. With Redis there is no such journal.
func (c *Config) JournalAt() string {
	if sqlledger.InServer(c.Ledger) {
		return c.Ledger
	}
	return SQLitePrefix + filepath.Join(c.Data, node.JournalFile)
}

// EnginePlace names the engine for people.
func (c *Config) EnginePlace() string {
	if !c.OnRedis() {
		return node.Memory
	}
	places := make([]string, len(c.Engine))
	for i, engine := range c.Engine {
		places[i] = redisengine.Place(engine)
	}
	return strings.Join(places, " and ")
}

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
func (c *Config) OnRedis() bool { return !slices.Equal(c.Engine, []string{node.Memory}) }
