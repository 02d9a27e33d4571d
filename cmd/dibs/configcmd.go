package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/settings"
)

func newConfigCommand() *cobra.Command {
	cmd := family(&cobra.Command{
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
			c, faults, err := readConfig(cmd, serverRules, serveRules(cmd.Context()))
			if err != nil {
				return err
			}
			for _, doubt := range doubts(c) {
				cmd.PrintErrln("note: " + doubt)
			}
			if err := asError(settingsAre(faults)+" wrong:", faults); err != nil {
				return err
			}
			cmd.Println("the settings are good: dibs serve can run with them")
			return nil
		},
	}
	addSettings(cmd, serverKeys)
	return cmd
}

// doubts tell what is allowed and probably not meant.
func doubts(c *config) []string {
	var list []string
	found := settings.UnknownVariables(c, os.Environ(), configFileEnv)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s is no setting; did you mean %s?", name, found[name]))
	}
	for _, v := range c.values {
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
			c, faults, err := readConfig(cmd)
			if err != nil {
				return err
			}
			if err := showSettings(cmd, c, output); err != nil {
				return err
			}
			return asError(settingsAre(faults)+" wrong:", faults)
		},
	}
	addSettings(cmd, serverKeys, []string{"url"})
	addOutput(cmd, &output)
	return cmd
}

func showSettings(cmd *cobra.Command, c *config, output string) error {
	type row struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		From  string `json:"from"`
	}
	rows := make([]row, 0, len(c.values))
	t := table{head: []string{"KEY", "VALUE", "FROM"}}
	for _, v := range c.values {
		rows = append(rows, row{v.Key, v.ShownText(), v.From})
		t.add(v.Key, v.ShownText(), v.From)
	}
	return show(cmd, output, rows, &t)
}

func newConfigDocsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs",
		Short: "Print the reference of all settings as Markdown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Print("# Settings\n\nFlags win over the environment, the environment over the file (`--config dibs.yaml` or `" + configFileEnv +
				"`),\nand the file over the defaults. `dibs config show` prints what counts and why, `dibs config check` what is wrong.\n\n" +
				settings.Markdown(&config{}))
			return nil
		},
	}
}
