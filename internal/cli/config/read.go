package config

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/settings"

	"github.com/dibs-dev/dibs/internal/cli"
)

// AddFlags gives a verb the flags of some settings, and --config.
func AddFlags(cmd *cobra.Command, keys ...[]string) {
	for _, list := range keys {
		settings.AddFlags(cmd.Flags(), &Config{}, list...)
	}
	cmd.Flags().String("config", "", "A YAML `FILE` of settings; flags and environment win over it (default $"+FileEnv+")")
}

// Rule finds faults that a verb objects to beyond those of single values.
type Rule func(*Config) []settings.Fault

// Read loads a verb's settings. Every fault is returned, with those that
// the rules find, and the error is for a source that cannot be read.
func Read(cmd *cobra.Command, rules ...Rule) (*Config, []settings.Fault, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, nil, err
	}
	if file == "" {
		file = os.Getenv(FileEnv)
	}
	c := &Config{}
	values, faults, err := settings.Load(c, settings.Sources{Flags: cmd.Flags(), Environ: os.Environ(), File: file})
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	c.Values = values
	broken := make(map[string]bool)
	for _, f := range faults {
		broken[f.Key] = true
	}
	for _, r := range rules {
		for _, f := range r(c) {
			// A value that could not be read is told once.
			if !broken[f.Key] {
				faults = append(faults, f)
			}
		}
	}
	return c, faults, nil
}

// Load is readConfig for verbs that go on only without faults.
func Load(cmd *cobra.Command, rules ...Rule) (*Config, error) {
	c, faults, err := Read(cmd, rules...)
	if err == nil {
		err = cli.Faults(cmd.Name()+" cannot run with these settings:", faults)
	}
	return c, err
}

// Given reports whether a setting was given by any source.
func (c *Config) Given(key string) bool { return c.Values.Of(key).IsSet() }

// Fault makes a fault of a setting, naming where its value came from.
func (c *Config) Fault(key, problem string) settings.Fault {
	v := c.Values.Of(key)
	from := v.From
	if !v.IsSet() {
		from = "not set: --" + v.Flag() + " or " + v.Env()
	}
	return settings.Fault{Key: key, From: from, Problem: problem}
}
