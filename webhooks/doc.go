// Package webhooks keeps the endpoints that events are posted to, and what became of
// each delivery. Package events/sinks posts them.
package webhooks
