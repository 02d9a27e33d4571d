package config

import (
	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/overload"
)

// Node returns what a node is opened with.
func (c *Config) Node() embedded.Config {
	return embedded.Config{
		Engine: c.Engine, Dir: c.Data, Ledger: c.LedgerAt(), LedgerTimeout: c.LedgerTimeout, Migrate: c.Migrate,
		Durability: c.Durability, DurabilityLost: c.DurabilityLost, Service: c.service(),
		HumanSecret: []byte(c.HumanSecret), Limits: c.limits(), Overload: overload.Config{Target: c.OverloadTarget, Max: c.OverloadMax},
		Events: events.Config{Sinks: c.Events, Webhooks: events.WebhookConfig{AllowPrivate: c.WebhookPrivate}},
	}
}

// service returns what tunes the service of a node.
func (c *Config) service() dibs.Config {
	return dibs.Config{
		SettleBatch: c.SettleBatch, SettleEvery: c.SettleEvery, JournalKeep: c.JournalKeep, EraseRest: c.EraseRest, MaxBacklog: c.MaxBacklog,
		Push: dibs.PushConfig{Threshold: c.PushThreshold, First: min(c.PushFirst, c.PushThreshold), Rate: c.PushRate},
	}
}
