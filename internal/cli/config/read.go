package config

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/settings"
)

// AddFlags gives a verb the flags of some settings, and --config.
func AddFlags(cmd *cobra.Command, keys ...[]string) {
	for _, list := range keys {
		settings.AddFlags(cmd.Flags(), &Config{}, list...)
	}
	cmd.Flags().String("config", "", "A YAML `FILE` of settings; flags and environment win over it (default $"+FileEnv+")")
}

// Rule finds what is wrong with settings beyond the form of single values. It may be called with
// values that could not be read and are zero.
type Rule func(*Config) []settings.Fault

// Read reads a verb's settings from its flags, the environment and the file. It
// returns every fault of the values and every fault that the rules find. The error
// is for a file that cannot be read.
func Read(cmd *cobra.Command, rules ...Rule) (*Config, []settings.Fault, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, nil, err
	}
	if file == "" {
		file = cli.Getenv(cmd, FileEnv)
	}
	c := &Config{Logins: &logins.Book{}}
	values, faults, err := settings.Load(c, settings.Sources{Flags: cmd.Flags(), Environ: cli.Environ(cmd), File: file})
	if err != nil {
		// A file that was named and cannot be read is no reason to go on with defaults.
		return nil, nil, cli.Usage(err)
	}
	c.Values = values
	broken := make(map[string]bool)
	for _, f := range faults {
		broken[f.Key] = true
	}
	for _, r := range rules {
		for _, f := range r(c) {
			// A value that cannot be parsed is empty here: what a rule says of it would
			// be a second fault for one mistake.
			if !broken[f.Key] {
				faults = append(faults, f)
			}
		}
	}
	return c, faults, nil
}

// Load is Read for verbs that need settings without a fault: faults become one error, exit code 2.
func Load(cmd *cobra.Command, rules ...Rule) (*Config, error) {
	c, faults, err := Read(cmd, rules...)
	if err == nil {
		err = cli.Faults(strings.TrimPrefix(cmd.CommandPath(), "dibs ")+" cannot run with these settings:", faults)
	}
	return c, err
}

// With runs a verb with its settings, when they follow the rules.
func With(do func(*cobra.Command, *Config) error, rules ...Rule) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := Load(cmd, rules...)
		if err != nil {
			return err
		}
		return do(cmd, c)
	}
}

// Given reports whether any source sets a setting.
func (c *Config) Given(key string) bool { return c.Values.Of(key).IsSet() }

// ByFlag reports whether a flag sets a setting. A flag shows what the user wants
// now; the environment and the file may be there for other verbs.
func (c *Config) ByFlag(key string) bool {
	v := c.Values.Of(key)
	return v.From == "flag --"+v.Flag()
}

// Fault returns a fault of a setting that names the source of its value.
func (c *Config) Fault(key, problem string) settings.Fault {
	v := c.Values.Of(key)
	from := v.From
	if !v.IsSet() {
		from = "not set: --" + v.Flag() + " or " + v.Env()
	}
	return settings.Fault{Key: key, From: from, Problem: problem}
}

// judge returns the fault of a setting that has a problem; none when the problem is empty.
func (c *Config) judge(key, problem string) []settings.Fault {
	return c.faultIf(problem != "", key, problem)
}

// judgeErr returns the fault of a setting that cannot be used; none without an error.
func (c *Config) judgeErr(key string, err error) []settings.Fault {
	if err == nil {
		return nil
	}
	return c.judge(key, err.Error())
}

// faultIf returns the fault of a setting if wrong is true, else nil.
func (c *Config) faultIf(wrong bool, key, problem string) []settings.Fault {
	if !wrong {
		return nil
	}
	return []settings.Fault{c.Fault(key, problem)}
}
