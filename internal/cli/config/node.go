package config

import (
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/overload"

	"github.com/dibs-dev/dibs/announce"
)

// Node returns what a node is opened with.
func (c *Config) Node() node.Config {
	return node.Config{
		Engine: c.Engine, Dir: c.Data, Ledger: c.LedgerAt(), LedgerTimeout: c.LedgerTimeout, Migrate: c.Migrate,
		Durability: c.Durability, DurabilityLost: c.DurabilityLost, Service: c.service(),
		HumanSecret: []byte(c.HumanSecret), Limits: c.limits(), Overload: overload.Config{Target: c.OverloadTarget, Max: c.OverloadMax},
		Events: sinks.Config{Sinks: c.Events, Webhooks: sinks.WebhookConfig{AllowPrivate: c.WebhookPrivate}},
	}
}

// service returns what tunes the service of a node.
func (c *Config) service() node.ServiceConfig {
	return node.ServiceConfig{
		SettleBatch: c.SettleBatch, SettleEvery: c.SettleEvery, JournalKeep: c.JournalKeep, EraseRest: c.EraseRest, MaxBacklog: c.MaxBacklog,
		Push: announce.PushConfig{Threshold: c.PushThreshold, First: min(c.PushFirst, c.PushThreshold), Rate: c.PushRate},
	}
}
