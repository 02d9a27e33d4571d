package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
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

// engineOptions are the options that the address of a Redis may have: those that rueidis reads. It
// ignores others, and a misspelt master_set would connect to the wrong server.
var engineOptions = []string{"addr", "master_set", "db", "skip_verify", "protocol", "client_name", "dial_timeout", "write_timeout"}

// enginesProblem says what is wrong with the addresses of an engine's deployments; empty
// for good ones.
func enginesProblem(engines []string) string {
	if len(engines) == 0 {
		return EngineProblem("")
	}
	if len(engines) > live.MaxDeployments {
		return fmt.Sprintf("names %d deployments, at most %d", len(engines), live.MaxDeployments)
	}
	seen := make(map[string]bool)
	for _, engine := range engines {
		problem, place := EngineProblem(engine), redisengine.Place(engine)
		switch {
		case problem != "":
			return problem
		case engine == node.Memory && len(engines) > 1:
			return "memory is an engine of one process, and none of several deployments"
		case seen[place]:
			return place + " is named twice: each address is a deployment of its own"
		}
		seen[place] = true
	}
	return ""
}

// EngineProblem says what is wrong with the form of an engine's address; empty for
// a good one. It connects to nothing, and never repeats a password.
func EngineProblem(engine string) string {
	if engine == node.Memory {
		return ""
	}
	u, err := url.Parse(engine)
	switch {
	case err != nil:
		// Not the error itself: it has the address in it, and so the password.
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
