package config_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestConfigFaults checks that every fault is told, with its key and where the
// value came from.
func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		file string
		args []string
		want []string
	}{
		{"nothing is set", nil, "", nil, []string{"2 settings are wrong", "jwt_secret (not set", "admin_key (not set"}},
		{"a short secret", []string{"DIBS_JWT_SECRET=short"}, "", nil, []string{"jwt_secret (env DIBS_JWT_SECRET): must be at least 32 bytes, this one has 5"}},
		{"a short key", clitest.Secrets, "", []string{"--admin-key", "short"}, []string{"1 setting is wrong", "admin_key (flag --admin-key): must be 16 to 255"}},
		{"a key like a token", clitest.Secrets, "", []string{"--admin-key", "dev_0123456789abcdef"}, []string{"admin_key", "must not look like a user's token"}},
		{"an unknown key", clitest.Secrets, "log-format: json\nlisten_: x\nzebra: 1\n", nil, []string{
			"3 settings are wrong", "log-format (file ", "did you mean log_format?", "did you mean listen?", "zebra (file ", "there is no such setting",
		}},
		{"a bad file", clitest.Secrets, "listen: [", nil, []string{"config file", "yaml"}},
		{"a list", clitest.Secrets, "drain: [1s]\n", nil, []string{"drain (file ", "must be a single value"}},
		{"a number for a text", clitest.Secrets[:1], "admin_key: 0123456701234567012345\n", nil, []string{"admin_key (file ", "must be text: put it in quotes"}},
		{"a number that is not used", clitest.Secrets, "admin_key: 0123456789012345678\n", []string{"--jwt-secret", clitest.Secret}, []string{}},
		{"kinds and limits", clitest.Secrets, "behind_proxy: maybe\nsettle_batch: 0\nmax_backlog: many\n", []string{"--drain", "20m", "--ledger-timeout", "1ms", "--log-level", "loud"}, []string{
			"6 settings are wrong", `behind_proxy (file `, `must be true or false, not "maybe"`, "settle_batch", `must be from 1 to 65536, not "0"`,
			"max_backlog", "must be a whole number", `drain (flag --drain): must be from 0s to 10m, not "20m"`, `ledger_timeout (flag --ledger-timeout): must be from 500ms to 1m, not "1ms"`,
			`log_level (flag --log-level): must be debug, info, warn or error, not "loud"`,
		}},
		{"what dibs has not", clitest.Secrets, "", []string{"--engine", "memcached://u:secret-pw@h:1/0", "--ledger", "oracle://u:secret-pw@h/d"}, []string{
			"2 settings are wrong", "engine (flag --engine): must be memory, or the address of Redis", "ledger (flag --ledger): the address must begin with sqlite:, mysql:// or postgres://",
		}},
		{"a level without replicas", clitest.Secrets, "", []string{"--durability", "replicated"}, []string{"durability (flag --durability): the memory engine is always durable"}},
		{"a rule that is none", append([]string{"DIBS_DURABILITY_LOST=yes"}, clitest.Secrets...), "", nil, []string{`durability_lost (env DIBS_DURABILITY_LOST): must be refuse or warn, not "yes"`}},
		{"going on without a journal", clitest.Secrets, "", []string{"--durability-lost", "warn"}, []string{"durability_lost (flag --durability-lost): the memory engine cannot"}},
		{"an engine without a host", clitest.Secrets, "", []string{"--engine", "redis://:secret-pw@"}, []string{"engine (flag --engine): names no host"}},
		{"an engine's database", clitest.Secrets, "", []string{"--engine", "redis://u:secret-pw@h/claims"}, []string{"engine (flag --engine): must end with the number of a database"}},
		{"an engine's option", clitest.Secrets, "", []string{"--engine", "redis://u:secret-pw@h?masterset=x"}, []string{`engine (flag --engine): there is no option "masterset"`, "master_set"}},
		{"an engine that cannot be read", clitest.Secrets, "", []string{"--engine", "redis://u:secret-pw%zz@h"}, []string{"engine (flag --engine): the address cannot be read"}},
		{"a bad ledger", clitest.Secrets, "", []string{"--ledger", "sqlite:"}, []string{"ledger (flag --ledger): it must be sqlite: and the path"}},
		{"a ledger without a database", clitest.Secrets, "", []string{"--ledger", "mysql://u:secret-pw@h"}, []string{"ledger (flag --ledger): the address mysql://h: it must be like mysql://USER:PASSWORD@HOST"}},
		{"a ledger that cannot be read", clitest.Secrets, "", []string{"--ledger", "postgres://u:secret-pw%zz@h/d"}, []string{"ledger (flag --ledger): the address cannot be read: "}},
		{"listening in the open", clitest.Secrets, "", []string{"--listen", ":8080"}, []string{"listen (flag --listen)", "--tls-cert", "--behind-proxy"}},
		{"an address for administrators in the open", clitest.Secrets, "", []string{"--admin-listen", ":8081"}, []string{"admin_listen (flag --admin-listen)", "--tls-cert"}},
		{"one address for both", clitest.Secrets, "", []string{"--admin-listen", "127.0.0.1:8080"}, []string{"must be another address than listen"}},
		{"keys over plain HTTP", clitest.Secrets, "", []string{"--jwks-url", "http://issuer.example/keys"}, []string{"jwks_url (flag --jwks-url): must be https://"}},
		{"a file of secrets that is not there", clitest.Secrets, "", []string{"--jwt-secret-file", "none.txt"}, []string{"jwt_secret_file (flag --jwt-secret-file): cannot be read"}},
		{"a file of lists that is not there", clitest.Secrets, "", []string{"--lists-file", "none.txt"}, []string{"lists_file (flag --lists-file): cannot be read"}},
		{"a limit of zero", clitest.Secrets, "", []string{"--limit-user", "0/s"}, []string{"limit_user (flag --limit-user): rate must be from 1"}},
		{"a limit that cannot be read", clitest.Secrets, "", []string{"--limit-server", "many"}, []string{"limit_server (flag --limit-server): must look like 20/s"}},
		{"everybody at the proxy's address", clitest.Secrets, "", []string{"--limit-address", "9/s", "--behind-proxy"}, []string{"limit_address (flag --limit-address): with behind_proxy it needs trusted_proxies"}},
		{"a proxy without a network", clitest.Secrets, "", []string{"--trusted-proxies", "10.0.0.1"}, []string{"trusted_proxies (flag --trusted-proxies)", "192.0.2.7/32"}},
		{"an origin with a path", clitest.Secrets, "", []string{"--cors-origins", "https://shop.example/"}, []string{"cors_origins (flag --cors-origins)", "without a path"}},
		{"no port", clitest.Secrets, "", []string{"--listen", "localhost"}, []string{"listen (flag --listen): must be a host and a port"}},
		{"half of TLS", clitest.Secrets, "", []string{"--tls-key", "x"}, []string{"tls_cert (not set", "tls_key needs it"}},
		{"TLS without files", clitest.Secrets, "", []string{"--tls-key", "x", "--tls-cert", "y"}, []string{"tls_cert (flag --tls-cert): cannot be used with tls_key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"config", "check"}, c.args...)
			if c.file != "" {
				args = append(args, "--config", clitest.WriteFile(t, "dibs.yaml", c.file))
			}
			if len(c.want) == 0 {
				// The environment wins over a file's value of the wrong kind.
				clitest.Run(t, c.env, args...).Want(t, 0, "the settings are good")
				return
			}
			r := clitest.Run(t, c.env, args...)
			r.Want(t, 2, c.want...)
			if strings.Contains(r.Err, "secret-pw") || strings.Contains(r.Err, "short\n") {
				t.Errorf("a secret is told:\n%s", r.Err)
			}
		})
	}
}

// TestWarnOfADatabase: a journal in a server can be gone on with while that gives less.
func TestWarnOfADatabase(t *testing.T) {
	clitest.Run(t, clitest.Secrets, "config", "check", "--durability-lost", "warn", "--ledger", "mysql://u:pw@h/d").Want(t, 0, "the settings are good")
}

// TestClientCertificateFaults: client certificates are asked for over TLS, at an address of their own,
// by authorities that can be read.
func TestClientCertificateFaults(t *testing.T) {
	clitest.Run(t, clitest.Secrets, "config", "check", "--admin-client-ca", "none.pem").Want(t, 2,
		"admin_client_ca (flag --admin-client-ca): needs tls_cert and admin_listen", "admin_client_ca (flag --admin-client-ca): cannot be read")
	empty := clitest.WriteFile(t, "ca.pem", "none")
	clitest.Run(t, clitest.Secrets, "config", "check", "--admin-client-ca", empty).Want(t, 2, "has no certificate in it")
}
