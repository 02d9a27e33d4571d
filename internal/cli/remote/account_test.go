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
	clitest.Run(t, env, deposit...).Want(t, 0, "balance  500 CNY (minor units)")
	clitest.Run(t, env, deposit...).Want(t, 0, "this had been done before; nothing changed", "500 CNY")
	clitest.Run(t, env, "account", "deposit", "host", "--amount", "7", "--currency", "USD", "--ref", "transfer-2", "--output", "json").
		Want(t, 0, `"amount": 7`, `"currency": "USD"`)
	clitest.Run(t, env, "account", "deposit", "host", "--amount", "-1", "--ref", "transfer-3").Want(t, 1, "amount")
	clitest.Run(t, env, "account", "show", "host").Want(t, 0, "500 CNY (minor units)", "7 USD (minor units)", "deposit +500 CNY transfer-1")
	clitest.Run(t, env, "account", "show", "host", "--output", "json").Want(t, 0, `"entries": [`, `"ref": "transfer-2"`)
}
