package live

import (
	"log/slog"
	"testing"
	"time"
)

// newNode returns a node with the config's zero fields set; nothing runs.
func newNode(t *testing.T, c Config) *Node {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.SettleBatch == 0 {
		c.SettleBatch = 1 << 14
	}
	if c.SettleEvery == 0 {
		c.SettleEvery = 100 * time.Millisecond
	}
	c.Now, c.LedgerTimeout, c.Life = time.Now, 5*time.Second, t.Context()
	return New(c)
}
