package config

import (
	"strings"
	"testing"
)

// TestPlaces names what a node opens, and no password.
func TestPlaces(t *testing.T) {
	const redis = "redis://u:secret-pw@h1:6379/2?addr=h2:6379&master_set=main"
	const mysql = "mysql://u:secret-pw@db:3306/shop"
	for _, c := range []struct {
		config                           Config
		ledger, journal, place, journals string
	}{
		{Config{Engine: []string{"memory"}, Data: "d"}, "sqlite:d/ledger.db", "sqlite:d/journal.db", "the data folder d", "sqlite:d/journal.db"},
		{Config{Engine: []string{"memory"}, Data: "d", Ledger: "sqlite:x.db"}, "sqlite:x.db", "sqlite:d/journal.db", "the data folder d", "sqlite:d/journal.db"},
		{Config{Engine: []string{"memory"}, Data: "d", Ledger: mysql}, mysql, mysql, "the database mysql://db:3306/shop", "mysql://db:3306/shop"},
		{Config{Engine: []string{redis}, Data: "d", Ledger: mysql}, mysql, mysql, "redis://h1:6379,h2:6379/2?master_set=main and mysql://db:3306/shop", "redis://h1:6379,h2:6379/2?master_set=main"},
		{Config{Engine: []string{"redis://u:secret-pw%zz@h"}, Data: "d"}, "sqlite:d/ledger.db", "sqlite:d/journal.db", "an address that cannot be read and sqlite:d/ledger.db", "an address that cannot be read"},
	} {
		if c.config.LedgerAt() != c.ledger || c.config.JournalAt() != c.journal {
			t.Errorf("%+v: the ledger is at %s, the journal at %s", c, c.config.LedgerAt(), c.config.JournalAt())
		}
		if c.config.Place() != c.place || c.config.JournalPlace() != c.journals {
			t.Errorf("%+v: shown are %q and %q", c, c.config.Place(), c.config.JournalPlace())
		}
		if shown := c.config.Place() + c.config.JournalPlace() + c.config.EnginePlace(); strings.Contains(shown, "secret-pw") {
			t.Errorf("a password is shown: %s", shown)
		}
	}
}
