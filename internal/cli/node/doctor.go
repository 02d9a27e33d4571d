package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// newDoctorCommand returns the verb that finds out why serve would not work well. It reads faults of
// the settings as findings, where other verbs stop at them, and shows all findings before it fails. It
// exits with 1 when one is a FAIL; warnings leave it at 0.
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
			// Whatever is found, the report comes first and the verdict last.
			u := examine(cmd.Context(), c, faults, cli.Environ(cmd), ownerFinding)
			if err := cli.Show(cmd, u, u.table()); err != nil {
				return err
			}
			// Exit code 1, also for a fault of the settings: doctor itself has worked.
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

// checkup is everything that doctor found, in the order of the areas. One goroutine fills it.
type checkup struct {
	OK       bool        `json:"ok"`
	Findings []diagnosis `json:"findings"`
}

// examine examines what the settings name. An engine or a ledger whose setting has a fault is left
// out: what its examination found would be a second fault for one mistake.
func examine(ctx context.Context, c *config.Config, faults []settings.Fault, environ []string, owner func(context.Context, *config.Config) string) *checkup {
	u := &checkup{}
	u.add("settings", settingsFindings(c, faults, environ)...)
	u.add("machine", machineFindings(c)...)
	u.examineStores(ctx, c, faults, owner)
	u.OK = u.count(dibs.StandingFail) == 0
	return u
}

// examineStores examines engine and ledger. owner tells of the memory engine's journal.
func (u *checkup) examineStores(ctx context.Context, c *config.Config, faults []settings.Fault, owner func(context.Context, *config.Config) string) {
	broken := map[string]bool{}
	// A value with a fault may be empty here, or stand for something else.
	for _, f := range faults {
		broken[f.Key] = true
	}
	// At the same time: an engine that does not answer must not delay the ledger. Each goroutine
	// writes a variable of its own, so that the order of the findings does not change.
	var engine, ledger []dibs.Finding
	var both sync.WaitGroup
	both.Go(func() {
		if !broken["engine"] {
			engine = engineFindings(ctx, c, owner)
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
}

// diagnosed is a running server, which administrators ask for its settings and for
// what doctor would find. It implements httpapi.Diagnosis; nothing in it changes.
type diagnosed struct {
	c       *config.Config
	environ []string
}

// Settings returns what config show shows.
func (d diagnosed) Settings() []httpapi.SettingView {
	rows := make([]httpapi.SettingView, 0, len(d.c.Values))
	for _, v := range d.c.Values {
		rows = append(rows, httpapi.SettingView{Key: v.Key, Value: v.ShownText(), From: v.From})
	}
	return rows
}

// Examine returns what doctor finds. Settings with a fault would have stopped the
// start, and this process has the memory engine's journal: it is not opened again.
func (d diagnosed) Examine(ctx context.Context) []httpapi.DiagnosisView {
	u := examine(ctx, d.c, nil, d.environ, func(context.Context, *config.Config) string { return "in use by this process" })
	list := make([]httpapi.DiagnosisView, len(u.Findings))
	for i, f := range u.Findings {
		list[i] = httpapi.DiagnosisView{Area: f.Area, Standing: f.Standing, Subject: f.Subject, Found: f.Found}
		if f.Standing != dibs.StandingOK {
			list[i].Wanted, list[i].Remedy = f.Wanted, f.Remedy
		}
	}
	return list
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
		// A good finding needs no step, even where a finding says what it compared with.
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

// settingsFindings returns every fault that makes serve refuse to start, as a FAIL, and every warning.
func settingsFindings(c *config.Config, faults []settings.Fault, environ []string) []dibs.Finding {
	var fs []dibs.Finding
	for _, f := range faults {
		fs = append(fs, dibs.Finding{
			Standing: dibs.StandingFail, Subject: f.Key, Found: f.Problem + " (" + f.From + ")", Wanted: "a setting that serve starts with",
			Remedy: "correct it; dibs config docs lists all settings",
		})
	}
	for _, w := range warnings(c, environ) {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingWarn, Subject: "doubt", Found: w, Remedy: "correct it as it says"})
	}
	if len(faults) == 0 {
		fs = append(fs, dibs.Finding{Standing: dibs.StandingOK, Subject: "all", Found: "serve can start with them"})
	}
	return fs
}

// engineFindings examines the engine: a Redis' version, configuration and durability, or who owns the
// memory engine's journal. An owner is no problem, since doctor may run beside a server.
func engineFindings(ctx context.Context, c *config.Config, owner func(context.Context, *config.Config) string) []dibs.Finding {
	if c.OnRedis() {
		return redisFindings(ctx, c)
	}
	return []dibs.Finding{
		{Standing: dibs.StandingOK, Subject: "durability", Found: "the memory engine commits to its journal before it answers"},
		{Standing: dibs.StandingOK, Subject: "owner", Found: owner(ctx, c)},
	}
}

// ownerFinding says which process has the journal of the memory engine.
func ownerFinding(ctx context.Context, c *config.Config) string {
	if owned := node.Owned(ctx, c.Node()); errors.Is(owned, dibs.ErrOwned) {
		return "in use by " + store.OwnerOf(owned)
	}
	return "no process uses it now"
}

// redisFindings examines each deployment of Redis, at the same time, and whether they are different
// servers. Of several, each finding names its address.
func redisFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	found, runs := make([][]dibs.Finding, len(c.Engine)), make([][]string, len(c.Engine))
	var all sync.WaitGroup
	for i, address := range c.Engine {
		all.Go(func() {
			// The level ledgered asks the database, not Redis: EngineLevel says what Redis must give.
			cfg := redisengine.Config{URL: address, Durability: node.EngineLevel(c.Durability)}
			var err error
			if found[i], err = redisengine.Check(ctx, cfg); err != nil {
				found[i] = []dibs.Finding{{Standing: dibs.StandingFail, Subject: "address", Found: cli.Message(err), Remedy: "correct --engine"}}
			}
			if len(c.Engine) > 1 {
				// One that does not answer is among the findings.
				runs[i], _ = redisengine.Runs(ctx, cfg)
			}
		})
	}
	all.Wait()
	if len(c.Engine) == 1 {
		return found[0]
	}
	for i := range found {
		for n := range found[i] {
			found[i][n].Found = redisengine.Place(c.Engine[i]) + ": " + found[i][n].Found
		}
	}
	return append(slices.Concat(found...), apart(c.Engine, runs))
}

// apart is the finding about whether deployments are different servers.
func apart(addresses []string, runs [][]string) dibs.Finding {
	at := map[string]string{}
	for i, address := range addresses {
		place := redisengine.Place(address)
		for _, run := range runs[i] {
			if other := at[run]; other != "" && other != place {
				return dibs.Finding{
					Standing: dibs.StandingFail, Subject: "deployments", Found: other + " and " + place + " are the same server",
					Wanted: "a server, a Sentinel group or a Cluster of its own for each address", Remedy: "name each deployment once in --engine",
				}
			}
			at[run] = place
		}
	}
	return dibs.Finding{Standing: dibs.StandingOK, Subject: "deployments", Found: fmt.Sprintf("%d, which divide new campaigns among themselves", len(addresses))}
}

// ledgerFindings examines the ledger, and the journal if the ledger's server holds it too: after a
// FAIL of the ledger the journal would only fail in the same way.
func ledgerFindings(ctx context.Context, c *config.Config) []dibs.Finding {
	found := sqlledger.Examine(ctx, c.LedgerAt())
	for _, f := range found {
		if f.Standing == dibs.StandingFail {
			return found
		}
	}
	// The journal is in Redis, or a file, which the machine's findings cover.
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
