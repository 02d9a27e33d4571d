package remote_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAccount deposits money, once under one name, and shows it.
func TestAccount(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "account", "show", "host").Want(t, 0, "balance  nothing yet")
	deposit := []string{"account", "deposit", "host", "--amount", "500", "--ref", "transfer-1"}
	clitest.Run(t, env, deposit...).Want(t, 0, "balance  5.00 CNY")
	clitest.Run(t, env, deposit...).Want(t, 0, "this had been done before; nothing changed", "5.00 CNY")
	clitest.Run(t, env, "account", "deposit", "host", "--amount", "7", "--currency", "USD", "--ref", "transfer-2", "--output", "json").
		Want(t, 0, `"amount": 7`, `"currency": "USD"`)
	clitest.Run(t, env, "account", "deposit", "host", "--amount", "-1", "--ref", "transfer-3").Want(t, 2, "--amount must be an amount of money, such as 12.50CNY")
	clitest.Run(t, env, "account", "deposit", "host", "--ref", "transfer-3").Want(t, 2, "--amount is required")
	clitest.Run(t, env, "account", "deposit", "host", "--amount", "1,000.00CNY", "--ref", "transfer-4").Want(t, 0, "1,005.00 CNY")
	clitest.Run(t, env, "account", "deposit", "rich", "--amount", "500", "--ref", "transfer-5").Want(t, 0, "is read as 5.00 CNY", "balance  5.00 CNY")
	clitest.Run(t, env, "account", "show", "host").Want(t, 0, "1,005.00 CNY", "0.07 USD", "deposit +5.00 CNY transfer-1")
	clitest.Run(t, env, "account", "show", "host", "--output", "json").Want(t, 0, `"entries": [`, `"ref": "transfer-2"`)
}
