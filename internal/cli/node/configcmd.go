package node

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/settings"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

func newConfigCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "config",
		Short: "Check, show and document the settings",
	})
	cmd.AddCommand(newConfigCheckCommand(), newConfigShowCommand(), newConfigDocsCommand())
	return cmd
}

func newConfigCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List everything that is wrong with the settings, as serve would see them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := config.Read(cmd, config.ServerRules, serveRules(cmd.Context()))
			if err != nil {
				return err
			}
			for _, doubt := range doubts(c) {
				cmd.PrintErrln("note: " + doubt)
			}
			if err := cli.Faults(settingsAre(faults)+" wrong:", faults); err != nil {
				return err
			}
			cmd.Println("the settings are good: dibs serve can run with them")
			return nil
		},
	}
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
}

// doubts tell what is allowed and probably not meant.
func doubts(c *config.Config) []string {
	var list []string
	found := settings.UnknownVariables(c, os.Environ(), config.FileEnv)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s is no setting; did you mean %s?", name, found[name]))
	}
	for _, v := range c.Values {
		path, ok := strings.CutPrefix(v.From, "file ")
		if !ok || !v.Secret || runtime.GOOS == "windows" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			list = append(list, fmt.Sprintf("%s holds %s and can be read by others: chmod 600 %s", path, v.Key, path))
		}
	}
	return list
}

func newConfigShowCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every effective setting and where it comes from; secrets are masked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := config.Read(cmd)
			if err != nil {
				return err
			}
			if err := showSettings(cmd, c, output); err != nil {
				return err
			}
			return cli.Faults(settingsAre(faults)+" wrong:", faults)
		},
	}
	config.AddFlags(cmd, config.ServerKeys, []string{"url"})
	cli.AddOutput(cmd, &output)
	return cmd
}

func showSettings(cmd *cobra.Command, c *config.Config, output string) error {
	type row struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		From  string `json:"from"`
	}
	rows := make([]row, 0, len(c.Values))
	t := cli.Table{Head: []string{"KEY", "VALUE", "FROM"}}
	for _, v := range c.Values {
		rows = append(rows, row{v.Key, v.ShownText(), v.From})
		t.Add(v.Key, v.ShownText(), v.From)
	}
	return cli.Show(cmd, output, rows, &t)
}

func newConfigDocsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs",
		Short: "Print the reference of all settings as Markdown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Print("# Settings\n\nFlags win over the environment, the environment over the file (`--config dibs.yaml` or `" + config.FileEnv +
				"`),\nand the file over the defaults. `dibs config show` prints what counts and why, `dibs config check` what is wrong.\n\n" +
				settings.Markdown(&config.Config{}))
			return nil
		},
	}
}

// settingsAre counts faults in words.
func settingsAre(faults []settings.Fault) string {
	if len(faults) == 1 {
		return "1 setting is"
	}
	return fmt.Sprintf("%d settings are", len(faults))
}
