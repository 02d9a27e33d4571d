// Package events has the feed of what happened to claims and campaigns, as
// CloudEvents. Package sinks beneath it carries the feed to brokers and webhooks.
package events
