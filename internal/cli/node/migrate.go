package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newMigrateCommand() *cobra.Command {
	var check bool
	var output string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the ledger and the journal of an older version up to date",
		Long: `Bring the ledger and the journal of an older version up to date, while no server
uses them; on Redis, whose journal needs no schema, nodes may run meanwhile where
the release notes say so. serve does it by itself at start, unless it is told
--migrate=false.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd, config.StoreRules)
			if err != nil {
				return err
			}
			return migrate(cmd, c, check, output)
		},
	}
	config.AddFlags(cmd, config.StoreKeys)
	cmd.Flags().BoolVar(&check, "check", false, "Change nothing; exit 1 when something is out of date")
	cli.AddOutput(cmd, &output)
	return cmd
}

// schema is a file with a schema that can be migrated.
type schema interface {
	SchemaVersion(ctx context.Context) (current, want int64, err error)
	Migrate(ctx context.Context) (applied int, err error)
	Close() error
}

// schemaFile is where a schema is, what it is of, and how it is opened.
type schemaFile struct {
	address, what string
	open          func() (schema, error)
}

// migrated is what was done with one file, or with its tables in a server.
type migrated struct {
	File    string `json:"file"`
	Was     int64  `json:"was"`
	Is      int64  `json:"is"`
	Wanted  int64  `json:"wanted"`
	Applied int    `json:"applied"`
}

func migrate(cmd *cobra.Command, c *config.Config, check bool, output string) error {
	ctx, opts := cmd.Context(), sqlledger.Options{AnySchema: true, Timeout: c.LedgerTimeout}
	// The journal goes first: it knows whether a server is running.
	files := []schemaFile{
		{c.JournalAt(), "journal", func() (schema, error) { return sqlledger.OpenJournal(ctx, c.JournalAt(), opts) }},
		{c.LedgerAt(), "ledger", func() (schema, error) { return sqlledger.Open(ctx, c.LedgerAt(), opts) }},
	}
	if c.OnRedis() {
		// The journal is in Redis, and has no schema.
		files = files[1:]
	}
	t := cli.Table{Head: []string{"FILE", "WAS", "IS", "WANTED"}}
	var done []migrated
	behind := false
	for _, f := range files {
		name := schemaName(f.address, f.what)
		found, err := store.Exists(f.address)
		if err != nil {
			return err
		}
		if check && !found {
			return fmt.Errorf("there is no file %s", name)
		}
		m, err := migrateOne(ctx, name, f.open, check)
		if err != nil {
			return store.ExplainOpen(c, err, "stop it before the schema is changed")
		}
		behind = behind || m.Is != m.Wanted
		done = append(done, m)
		t.Add(m.File, strconv.FormatInt(m.Was, 10), strconv.FormatInt(m.Is, 10), strconv.FormatInt(m.Wanted, 10))
	}
	if err := cli.Show(cmd, output, done, &t); err != nil {
		return err
	}
	if behind {
		return errors.New("some files are not what this version wants; dibs migrate brings older ones up to date")
	}
	return nil
}

// schemaName is a file's path, or which tables of a server's database are meant.
func schemaName(address, what string) string {
	if sqlledger.InServer(address) {
		return what + " in " + sqlledger.Place(address)
	}
	return strings.TrimPrefix(address, config.SQLitePrefix)
}

func migrateOne(ctx context.Context, name string, open func() (schema, error), check bool) (m migrated, err error) {
	m.File = name
	s, err := open()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if m.Was, m.Wanted, err = s.SchemaVersion(ctx); err != nil {
		return m, err
	}
	if m.Is = m.Was; check {
		return m, nil
	}
	if m.Applied, err = s.Migrate(ctx); err == nil {
		m.Is, _, err = s.SchemaVersion(ctx)
	}
	return m, err
}
