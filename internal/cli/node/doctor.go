package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/redisengine"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newDoctorCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine everything that serve depends on; exit 1 when something fails",
		Long: `Examine everything that serve depends on, with the settings that serve would
have: the settings, this machine, the engine and the ledger. For each thing it
says what was found and, when it is not well, what is wanted and what to do.

WARN is for what works and may go wrong, FAIL for what does not work, or would
break a promise. It may run beside running nodes. It changes nothing, but makes
a table in the ledger's server for a moment, to know that it may.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := config.Read(cmd, config.ServerRules, serveRules(cmd.Context()))
			if err != nil {
				return err
			}
			return doctor(cmd, c, faults, output)
		},
	}
	config.AddFlags(cmd, config.ServerKeys)
	cli.AddOutput(cmd, &output)
	return cmd
}

// diagnosis is a finding with the part of the system that it is about.
type diagnosis struct {
	Area string `json:"area"`
	dibs.Finding
}

// Checkup is all that doctor found.
type Checkup struct {
	OK       bool        `json:"ok"`
	Findings []diagnosis `json:"findings"`
}

func (u *Checkup) add(area string, findings ...dibs.Finding) {
	for _, f := range findings {
		u.Findings = append(u.Findings, diagnosis{area, f})
	}
}

// Count is how many findings have a standing.
func (u *Checkup) Count(s dibs.Standing) int {
	n := 0
	for _, d := range u.Findings {
		if d.Standing == s {
			n++
		}
	}
	return n
}

// doctor examines, and shows what was found.
func doctor(cmd *cobra.Command, c *config.Config, faults []settings.Fault, output string) error {
	u := &Checkup{}
	u.add("settings", settingsFindings(c, faults)...)
	u.add("machine", machineFindings(c)...)
	broken := map[string]bool{}
	for _, f := range faults {
		broken[f.Key] = true
	}
	// One that does not answer does not make the other wait.
	var engine, ledger []dibs.Finding
	var both sync.WaitGroup
	both.Go(func() {
		if !broken["engine"] {
			engine = engineFindings(cmd.Context(), c)
		}
	})
	both.Go(func() {
		if !broken["ledger"] {
			ledger = append(ledgerFindings(cmd.Context(), c), sharedFileFinding(c)...)
		}
	})
	both.Wait()
	u.add("engine", engine...)
	u.add("ledger", ledger...)
	fails := u.Count(dibs.StandingFail)
	u.OK = fails == 0
	if err := showCheckup(cmd, output, u); err != nil {
		return err
	}
	if fails > 0 {
		return fmt.Errorf("doctor: %d of %d checks failed", fails, len(u.Findings))
	}
	return nil
}

// settingsFindings tells every fault that serve would refuse to start with.
func settingsFindings(c *config.Config, faults []settings.Fault) []dibs.Finding {
	var fs []dibs.Finding
	for _, f := range faults {
		fs = append(fs, dibs.Finding{
			Standing: dibs.StandingFail, Subject: f.Key, Found: f.Problem + " (" + f.From + ")", Wanted: "a setting that serve starts with",
			Remedy: "set it right; dibs config docs lists them all",
		})
	}
	for _, doubt := range doubts(c) {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingWarn, Subject: "doubt", Found: doubt, Remedy: "correct the name or the mode"})
	}
	if len(faults) == 0 {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingOK, Subject: "all", Found: "serve can start with them"})
	}
	return fs
}

// engineFindings examines the engine.
func engineFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	if c.OnRedis() {
		return redisFindings(ctx, c)
	}
	fs := []dibs.Finding{{Standing: dibs.StandingOK, Subject: "durability", Found: "the memory engine commits to its journal before it answers"}}
	owned := embedded.Owned(ctx, c.Node())
	if errors.Is(owned, dibs.ErrOwned) {
		return append(fs, dibs.Finding{Standing: dibs.StandingOK, Subject: "owner", Found: "in use by " + store.OwnerOf(owned)})
	}
	return append(fs, dibs.Finding{Standing: dibs.StandingOK, Subject: "owner", Found: "nobody runs on it now"})
}

// redisFindings are the engine's own, as doctor shows them.
func redisFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	found, err := redisengine.Check(ctx, redisengine.Config{URL: c.Engine, Durability: embedded.EngineLevel(c.Durability)})
	if err != nil {
		return []dibs.Finding{{Standing: dibs.StandingFail, Subject: "address", Found: cli.Message(err), Remedy: "correct --engine"}}
	}
	return found
}

// ledgerFindings are about the database, and about the journal in it if there is
// one.
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

// sharedFileFinding is about a SQLite ledger under an engine of many nodes.
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

// showCheckup shows the findings, with what to do beneath each that needs it.
func showCheckup(cmd *cobra.Command, output string, u *Checkup) error {
	if output == cli.OutputJSON {
		return cli.Show(cmd, output, u, nil)
	}
	out := cmd.OutOrStdout()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, d := range u.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Standing, d.Area, d.Subject, d.Found)
		if d.Standing == dibs.StandingOK {
			continue
		}
		for _, more := range [][2]string{{"wanted", d.Wanted}, {"remedy", d.Remedy}} {
			if more[1] != "" {
				fmt.Fprintf(w, "\t\t\t%s: %s\n", more[0], more[1])
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d OK, %d WARN, %d FAIL (%s)\n", u.Count(dibs.StandingOK), u.Count(dibs.StandingWarn), u.Count(dibs.StandingFail),
		time.Now().UTC().Format(time.RFC3339))
	return nil
}
