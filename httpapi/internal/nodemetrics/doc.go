// Package nodemetrics shows what a node counts as metrics for Prometheus: claims,
// settling, campaigns, events, webhooks and announcements. docs/OPERATIONS.md lists
// every metric.
package nodemetrics
