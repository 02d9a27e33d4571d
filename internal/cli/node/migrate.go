package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// newMigrateCommand returns the verb for operators that start serve with --migrate=false, so that a
// schema changes when they say so, not when a node starts. It may be repeated. With --check it changes
// nothing and exits with 1 when something is out of date.
func newMigrateCommand() *cobra.Command {
	var check bool
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the ledger and the journal of an older version up to date",
		Long: `Bring the ledger and the journal of an older version up to date, while no server
uses them. With Redis, where the journal has no schema, nodes may run meanwhile if the
release notes say so. serve does the same at its start, unless it is told
--migrate=false.`,
		Args: cobra.NoArgs,
		RunE: config.With(func(cmd *cobra.Command, c *config.Config) error { return migrate(cmd, c, check) }, config.StoreRules),
	})
	config.AddFlags(cmd, config.StoreKeys)
	cmd.Flags().BoolVar(&check, "check", false, "Change nothing; exit 1 when something is out of date")
	return cmd
}

// schema is a database with a schema that can be migrated. Migrate applies what is missing, in order.
type schema interface {
	SchemaVersion(ctx context.Context) (current, want int64, err error)
	Migrate(ctx context.Context) (applied int, err error)
	Close() error
}

// migration is one database to migrate: where it is, what is in it, and how it is
// opened.
type migration struct {
	address, what string
	open          func() (schema, error)
}

// migrated is what was done with one database. Is is above Wanted when a later version of dibs has
// migrated it: no migration leads back.
type migrated struct {
	File    string `json:"file"`
	Was     int64  `json:"was"`
	Is      int64  `json:"is"`
	Wanted  int64  `json:"wanted"`
	Applied int    `json:"applied"`
}

// migrate migrates the journal and the ledger, or only compares versions if check is true. Redis has
// no schema: with it only the ledger is migrated. It stops at the first error; what was migrated
// before stays so, and a repeat goes on.
func migrate(cmd *cobra.Command, c *config.Config, check bool) error {
	// AnySchema: opening otherwise refuses the older schema that is to be migrated.
	ctx, opts := cmd.Context(), sqlledger.Options{AnySchema: true, Timeout: c.LedgerTimeout}
	// The journal comes first: opening it fails while a server runs, before anything
	// is changed.
	list := []migration{
		{c.JournalAt(), "journal", func() (schema, error) { return sqlledger.OpenJournal(ctx, c.JournalAt(), opts) }},
		{c.LedgerAt(), "ledger", func() (schema, error) { return sqlledger.Open(ctx, c.LedgerAt(), opts) }},
	}
	if c.OnRedis() {
		list = list[1:]
	}
	t := cli.NewTable("FILE", "WAS", "IS", "WANTED")
	var done []migrated
	behind := false
	for _, m := range list {
		found, err := store.Exists(m.address)
		if err != nil {
			return err
		}
		// Without --check a missing file is made, with the schema of this version.
		if check && !found {
			return fmt.Errorf("there is no file %s", m.name())
		}
		result, err := m.run(ctx, check)
		if err != nil {
			return store.Explain(c, err, "stop it before the schema is changed")
		}
		behind = behind || result.Is != result.Wanted
		done = append(done, result)
		t.Add(result.File, result.Was, result.Is, result.Wanted)
	}
	// The table comes before the verdict, so that it says which of them is out of date.
	if err := cli.Show(cmd, done, t); err != nil {
		return err
	}
	if behind {
		return errors.New("some files are not what this version wants; dibs migrate brings older ones up to date")
	}
	return nil
}

// name returns a file's path, or says which tables of a server's database are meant.
func (m *migration) name() string {
	if sqlledger.InServer(m.address) {
		return m.what + " in " + sqlledger.Place(m.address)
	}
	return strings.TrimPrefix(m.address, config.SQLitePrefix)
}

// run migrates the database, or only reads its versions if check is true.
func (m *migration) run(ctx context.Context, check bool) (r migrated, err error) {
	r.File = m.name()
	s, err := m.open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if r.Was, r.Wanted, err = s.SchemaVersion(ctx); err != nil {
		return r, err
	}
	if r.Is = r.Was; check {
		return r, nil
	}
	if r.Applied, err = s.Migrate(ctx); err == nil {
		// Read again, not assumed: the database says where it is.
		r.Is, _, err = s.SchemaVersion(ctx)
	}
	return r, err
}
