package node

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/settings"
)

// newConfigCommand returns the verbs about settings. They call no server and open at most the ledger,
// to see whether it has an API key, as serve would.
func newConfigCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "config",
		Short: "Check, show and document the settings",
	}, newConfigCheckCommand(), newConfigShowCommand(), newConfigDocsCommand())
}

// readServing reads the settings as serve sees them, with everything that serve would refuse, so that
// serve, config check and doctor always agree.
func readServing(cmd *cobra.Command) (*config.Config, []settings.Fault, error) {
	return config.Read(cmd, config.ServerRules, config.ServeRules, adminKeyRule(cmd.Context()))
}

// newConfigCheckCommand lists the faults of the settings for serve, all at once, and exits with 2 when
// there is one. Warnings are notes on the error output and do not change its exit code, so that a
// deployment may run it before each start.
func newConfigCheckCommand() *cobra.Command {
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "check",
		Short: "List everything that is wrong with the settings for serve",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := readServing(cmd)
			if err != nil {
				return err
			}
			notes, wrong := warnings(c, cli.Environ(cmd)), cli.Faults(settingsAre(faults)+" wrong:", faults)
			if cli.WantsJSON(cmd) {
				return errors.Join(cli.Show(cmd, newChecked(notes, faults), nil), wrong)
			}
			for _, w := range notes {
				cmd.PrintErrln("note: " + w)
			}
			// After the notes: a misspelt variable is often the reason of a fault.
			if wrong != nil {
				return wrong
			}
			cmd.Println("the settings are good: dibs serve can run with them")
			return nil
		},
	})
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
}

// checked is the answer of config check as JSON: what would keep serve from starting, and
// what is allowed and probably a mistake.
type checked struct {
	OK     bool           `json:"ok"`
	Faults []checkedFault `json:"faults"`
	Notes  []string       `json:"notes"`
}

// checkedFault is a setting, where its value came from, and what is wrong with it.
type checkedFault struct {
	Key     string `json:"key"`
	From    string `json:"from,omitempty"`
	Problem string `json:"problem"`
}

func newChecked(notes []string, faults []settings.Fault) *checked {
	c := &checked{OK: len(faults) == 0, Faults: []checkedFault{}, Notes: append([]string{}, notes...)}
	for _, f := range faults {
		c.Faults = append(c.Faults, checkedFault(f))
	}
	return c
}

// settingsAre begins a sentence about so many settings.
func settingsAre(faults []settings.Fault) string {
	if len(faults) == 1 {
		return "1 setting is"
	}
	return fmt.Sprintf("%d settings are", len(faults))
}

// warnings lists what is allowed and probably a mistake: variables that look like misspelt settings,
// files of secrets that other users can read, and links without TLS. A file that cannot be examined
// gives no warning: the rules report what cannot be read.
func warnings(c *config.Config, environ []string) []string {
	var list []string
	misspelt := settings.UnknownVariables(c, environ, config.FileEnv)
	for _, name := range slices.Sorted(maps.Keys(misspelt)) {
		list = append(list, fmt.Sprintf("%s is no setting; did you mean %s?", name, misspelt[name]))
	}
	readable := func(path, what string) {
		// Windows keeps permissions elsewhere, and its mode bits say nothing.
		if runtime.GOOS == "windows" || path == "" {
			return
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			list = append(list, fmt.Sprintf("%s holds %s and can be read by others: chmod 600 %s", path, what, path))
		}
	}
	for _, v := range c.Values {
		path, ok := strings.CutPrefix(v.From, "file ")
		switch {
		case v.File != "" && (v.Secret || hasPasswords[v.Key]):
			readable(v.File, v.Key)
		case ok && (v.Secret || hasPasswords[v.Key] && hasPassword(v.Text)):
			readable(path, v.Key)
		}
	}
	// These files hold secrets although their settings, which are paths, are none.
	readable(c.JWTSecretFile, "secrets of users' tokens")
	readable(c.LedgerKeyFile, "keys of the ledger")
	readable(c.TLSKey, "the key of the certificate")
	return append(list, c.PlainLinks()...)
}

// hasPasswords are the settings with addresses that may have passwords in them. A file for the value of one alone, as
// DIBS_ENGINE_FILE names, is there to keep it from others.
var hasPasswords = map[string]bool{"engine": true, "ledger": true, "events": true}

// hasPassword reports whether one of the addresses of a text has a secret in it.
func hasPassword(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(address string) bool {
		u, err := url.Parse(address)
		return err == nil && logins.HasSecret(u)
	})
}

// shownSetting is a setting as config show shows it.
type shownSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// newConfigShowCommand shows the settings with their sources, also when some of them have a fault,
// since a wrong source is a likely reason. It applies no rules: it judges the form of values alone,
// and then exits with 2. Secrets are masked, and so are passwords in addresses.
func newConfigShowCommand() *cobra.Command {
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "show",
		Short: "Show every effective setting and its source; secrets are masked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := config.Read(cmd)
			if err != nil {
				return err
			}
			rows := make([]shownSetting, 0, len(c.Values))
			t := cli.NewTable("KEY", "VALUE", "FROM")
			for _, v := range c.Values {
				rows = append(rows, shownSetting{v.Key, v.ShownText(), v.From})
				t.Add(v.Key, v.ShownText(), v.From)
			}
			if err := cli.Show(cmd, rows, t); err != nil {
				return err
			}
			return cli.Faults(settingsAre(faults)+" wrong:", faults)
		},
	})
	// url too: it is a setting of verbs, and may be in the same file.
	config.AddFlags(cmd, config.ServerKeys, config.CallKeys)
	return cmd
}

// newConfigDocsCommand prints what docs/CONFIG.md must be, from the fields of config.Config.
func newConfigDocsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs",
		Short: "Print the reference of all settings as Markdown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Print(config.Page())
			return nil
		},
	}
}
