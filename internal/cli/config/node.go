package config

import (
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/announce"
)

// Node returns what a node is opened with, of settings that keep StoreRules and, for a server,
// ServerRules: it judges nothing again.
func (c *Config) Node() node.Config {
	engine := append([]string{""}, c.Engine...)[min(len(c.Engine), 1):]
	return node.Config{
		Login: c.Logins.Of, LedgerKeys: c.Keys(), EncryptCodes: c.EncryptCodes,
		Engine: engine[0], Deployments: engine[1:], Dir: c.Data, Ledger: c.LedgerAt(), LedgerTimeout: c.LedgerTimeout, Migrate: c.Migrate,
		Durability: c.Durability, DurabilityLost: c.DurabilityLost, Service: c.service(),
		HumanSecrets: c.HumanSecrets(), Limits: c.limits(), Overload: overload.Config{Target: c.OverloadTarget, Max: c.OverloadMax},
		Events: sinks.Config{Sinks: c.Events, Webhooks: sinks.WebhookConfig{AllowPrivate: c.WebhookPrivate}},
	}
}

// service returns what tunes the service of a node. The default of push_first may be above a
// push_threshold that was set, and is then cut to it; ServerRules refuse it when it was given.
func (c *Config) service() node.ServiceConfig {
	return node.ServiceConfig{
		SettleBatch: c.SettleBatch, SettleEvery: c.SettleEvery, JournalKeep: c.JournalKeep, EraseRest: c.EraseRest, ConsoleIdle: c.ConsoleIdle, MaxBacklog: c.MaxBacklog, ShardWait: c.ShardWait, OrderHeld: c.OrderUnits,
		Push: announce.PushConfig{Threshold: c.PushThreshold, First: min(c.PushFirst, c.PushThreshold), Rate: c.PushRate},
	}
}

// Keys returns a ring with the keys of ledger_key_file, which StoreRules have read before.
func (c *Config) Keys() *keyring.Ring {
	ring := &keyring.Ring{}
	if keys, err := c.LedgerKeys(); err == nil {
		// Their length was checked when they were read.
		_ = ring.Set(keys)
	}
	return ring
}
