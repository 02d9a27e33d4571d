package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/sqlledger"
)

// LedgerProblem says what is wrong with the form of a ledger's address; empty for a
// good one, and for none. It connects to nothing.
func LedgerProblem(ledger string) string {
	if ledger == "" {
		return ""
	}
	if err := sqlledger.Check(ledger); err != nil {
		return cli.Message(err)
	}
	return ""
}

// engineForm says what an engine's address looks like.
const engineForm = "must be memory, or the address of Redis such as redis://HOST:6379 (rediss:// for TLS)"

// engineOptions are the options that the address of a Redis may have.
var engineOptions = []string{"addr", "master_set", "db", "skip_verify", "protocol", "client_name", "dial_timeout", "write_timeout"}

// EngineProblem says what is wrong with the form of an engine's address; empty for
// a good one. It connects to nothing, and never repeats a password.
func EngineProblem(engine string) string {
	if engine == node.Memory {
		return ""
	}
	u, err := url.Parse(engine)
	switch {
	case err != nil:
		return "the address cannot be read (write special characters in a password as %40)"
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix", u.Opaque != "":
		return engineForm
	case u.Scheme != "unix" && u.Hostname() == "":
		return "names no host: " + engineForm
	}
	if database := strings.TrimPrefix(u.Path, "/"); u.Scheme != "unix" && database != "" {
		if _, err := strconv.ParseUint(database, 10, 16); err != nil {
			return "must end with the number of a database, if with anything, such as redis://HOST:6379/0"
		}
	}
	for option := range u.Query() {
		if !slices.Contains(engineOptions, option) {
			return fmt.Sprintf("there is no option %q, only %s", option, strings.Join(engineOptions, ", "))
		}
	}
	return ""
}
