package sqlledger

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// attrs is the option of a PostgreSQL address that says which of several servers
// will do.
const attrs = "target_session_attrs"

// oneThatWrites makes an address of several servers take the one that is written
// to: each new connection looks for it, so that it is found again after a failover.
// It returns the number of servers.
func oneThatWrites(u *url.URL) (hosts int, err error) {
	hosts = strings.Count(u.Host, ",") + 1
	query := u.Query()
	wanted := query.Get(attrs)
	if wanted == "" {
		wanted = os.Getenv("PGTARGETSESSIONATTRS")
	}
	switch wanted {
	case "read-write", "primary":
	case "":
		if hosts > 1 {
			query.Set(attrs, "read-write")
			u.RawQuery = query.Encode()
		}
	default:
		// What a standby shows is late, and it takes no writes.
		return 0, errors.New(attrs + " must be read-write or primary: the ledger is read and written at one server")
	}
	return hosts, nil
}

// eachHost is how long one of several servers has to answer: all are tried within
// connectPatience.
func eachHost(wanted time.Duration, hosts int) time.Duration {
	most := connectPatience / time.Duration(hosts)
	if wanted == 0 || wanted > most {
		return most
	}
	return wanted
}

// addressOf names the servers of an address, for people.
func addressOf(c *pgx.ConnConfig) string {
	var all []string
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}, c.Fallbacks...) {
		// Each is there once with TLS and once without, one after the other.
		if at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); len(all) == 0 || all[len(all)-1] != at {
			all = append(all, at)
		}
	}
	return strings.Join(all, ",")
}

// noneWrites is the advice when the servers of an address answer, and none of them
// takes writes.
func noneWrites(c *pgx.ConnConfig, err error) string {
	if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
		return "no server at " + addressOf(c) + " takes writes: promote a standby, or wait until one is promoted"
	}
	return ""
}

// oneHost refuses the address of several MySQL servers.
func oneHost(u *url.URL) error {
	if strings.Contains(u.Host, ",") {
		return fmt.Errorf("%s are several servers: name one address, and let a proxy or a moving address lead to the server that is written to", u.Host)
	}
	return nil
}
