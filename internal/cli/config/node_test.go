package config

import "testing"

// TestNode: what a node is opened with are the settings, and fits together.
func TestNode(t *testing.T) {
	c, text := read(t, nil, nil, "--data", "d", "--push-threshold", "10", "--settle-batch", "7", "--events", "redis://h?stream=a", "--events", "redis://h?stream=b", "--human-secret", "hush")
	if text != "" {
		t.Fatal(text)
	}
	n := c.Node()
	if n.Dir != "d" || n.Ledger != "sqlite:d/ledger.db" || !n.Migrate || n.Service.SettleBatch != 7 || len(n.Events.Sinks) != 2 || len(n.HumanSecrets) != 1 || string(n.HumanSecrets[0]) != "hush" {
		t.Errorf("%+v", n)
	}
	// The default of push_first is more than this threshold.
	if p := n.Service.Push; p.Threshold != 10 || p.First != 10 || p.Rate != 1000 {
		t.Errorf("%+v", p)
	}
}
