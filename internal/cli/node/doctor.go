package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/redisengine"
	"github.com/dibs-dev/dibs/sqlledger"
)

// newDoctorCommand returns the verb that finds out why serve would not work well. It shows
// all findings before it fails.
func newDoctorCommand() *cobra.Command {
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "doctor",
		Short: "Examine everything that serve depends on; exit 1 when something fails",
		Long: `Examine everything that serve depends on, with the settings that serve would have:
the settings, this machine, the engine and the ledger. For each it shows what it
found, and for a problem also what it wants and what to do.

WARN marks what works and may cause trouble, FAIL what does not work or would break a
promise. doctor may run beside running nodes. It changes nothing, except that it makes
a table in the ledger's server for a moment, to test that it may.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := readServing(cmd)
			if err != nil {
				return err
			}
			u := examine(cmd.Context(), c, faults, cli.Environ(cmd))
			if err := cli.Show(cmd, u, u.table()); err != nil {
				return err
			}
			if fails := u.count(dibs.StandingFail); fails > 0 {
				return fmt.Errorf("doctor: %d of %d checks failed", fails, len(u.Findings))
			}
			return nil
		},
	})
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
}

// diagnosis is a finding with the part of the system that it is about.
type diagnosis struct {
	Area string `json:"area"`
	dibs.Finding
}

// checkup is everything that doctor found.
type checkup struct {
	OK       bool        `json:"ok"`
	Findings []diagnosis `json:"findings"`
}

// examine examines what the settings name.
func examine(ctx context.Context, c *config.Config, faults []settings.Fault, environ []string) *checkup {
	u := &checkup{}
	u.add("settings", settingsFindings(c, faults, environ)...)
	u.add("machine", machineFindings(c)...)
	broken := map[string]bool{}
	for _, f := range faults {
		broken[f.Key] = true
	}
	// At the same time: an engine that does not answer must not delay the ledger.
	var engine, ledger []dibs.Finding
	var both sync.WaitGroup
	both.Go(func() {
		if !broken["engine"] {
			engine = engineFindings(ctx, c)
		}
	})
	both.Go(func() {
		if !broken["ledger"] {
			ledger = append(ledgerFindings(ctx, c), sharedFileFinding(c)...)
		}
	})
	both.Wait()
	u.add("engine", engine...)
	u.add("ledger", ledger...)
	u.OK = u.count(dibs.StandingFail) == 0
	return u
}

// add adds findings about a part of the system.
func (u *checkup) add(area string, findings ...dibs.Finding) {
	for _, f := range findings {
		u.Findings = append(u.Findings, diagnosis{area, f})
	}
}

// count returns the number of findings with a standing.
func (u *checkup) count(s dibs.Standing) int {
	n := 0
	for _, d := range u.Findings {
		if d.Standing == s {
			n++
		}
	}
	return n
}

// table shows the findings, and below each problem what is wanted and what to do.
func (u *checkup) table() *cli.Table {
	t := cli.NewTable()
	for _, d := range u.Findings {
		t.Add(d.Standing, d.Area, d.Subject, d.Found)
		if d.Standing == dibs.StandingOK {
			continue
		}
		for _, more := range [][2]string{{"wanted", d.Wanted}, {"remedy", d.Remedy}} {
			if more[1] != "" {
				t.Add("", "", "", more[0]+": "+more[1])
			}
		}
	}
	t.Foot = fmt.Sprintf("\n%d OK, %d WARN, %d FAIL (%s)", u.count(dibs.StandingOK), u.count(dibs.StandingWarn), u.count(dibs.StandingFail), cli.Moment(time.Now()))
	return t
}

// settingsFindings returns every fault that makes serve refuse to start.
func settingsFindings(c *config.Config, faults []settings.Fault, environ []string) []dibs.Finding {
	var fs []dibs.Finding
	for _, f := range faults {
		fs = append(fs, dibs.Finding{
			Standing: dibs.StandingFail, Subject: f.Key, Found: f.Problem + " (" + f.From + ")", Wanted: "a setting that serve starts with",
			Remedy: "correct it; dibs config docs lists all settings",
		})
	}
	for _, w := range warnings(c, environ) {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingWarn, Subject: "doubt", Found: w, Remedy: "correct the name or the mode"})
	}
	if len(faults) == 0 {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingOK, Subject: "all", Found: "serve can start with them"})
	}
	return fs
}

// engineFindings examines the engine.
func engineFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	if c.OnRedis() {
		found, err := redisengine.Check(ctx, redisengine.Config{URL: c.Engine, Durability: node.EngineLevel(c.Durability)})
		if err != nil {
			return []dibs.Finding{{Standing: dibs.StandingFail, Subject: "address", Found: cli.Message(err), Remedy: "correct --engine"}}
		}
		return found
	}
	owner := "no process uses it now"
	if owned := node.Owned(ctx, c.Node()); errors.Is(owned, dibs.ErrOwned) {
		owner = "in use by " + store.OwnerOf(owned)
	}
	return []dibs.Finding{
		{Standing: dibs.StandingOK, Subject: "durability", Found: "the memory engine commits to its journal before it answers"},
		{Standing: dibs.StandingOK, Subject: "owner", Found: owner},
	}
}

// ledgerFindings examines the ledger, and the journal if the ledger's server holds
// it too.
func ledgerFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	found := sqlledger.Examine(ctx, c.LedgerAt())
	for _, f := range found {
		if f.Standing == dibs.StandingFail {
			return found
		}
	}
	if c.OnRedis() || !sqlledger.InServer(c.Ledger) {
		return found
	}
	return append(found, sqlledger.ExamineJournal(ctx, c.JournalAt())...)
}

// sharedFileFinding warns of a SQLite ledger with Redis: nodes on other machines
// cannot open the file.
func sharedFileFinding(c *config.Config) []dibs.Finding {
	if !c.OnRedis() || sqlledger.InServer(c.Ledger) {
		return nil
	}
	return []dibs.Finding{{
		Standing: dibs.StandingWarn, Subject: "file", Found: "the ledger is a SQLite file",
		Wanted: "MySQL, MariaDB or PostgreSQL, for nodes on several machines",
		Remedy: "run all nodes on this machine, with the file on a disk of its own, or name a server with --ledger",
	}}
}
