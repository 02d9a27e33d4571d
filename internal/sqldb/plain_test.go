package sqldb

import "testing"

// TestIsPlain: what the driver makes of an address counts. Options and the environment can name other hosts than the
// address shows, and TLS that verifies nothing is none against one who sits in between.
func TestIsPlain(t *testing.T) {
	t.Setenv("PGHOST", "")
	for address, want := range map[string]bool{
		"sqlite:x.db":             false,
		"mysql://u:p@127.0.0.1/d": false, "mysql://u:p@[::1]:3306/d": false, "mysql://u:p@db/d": true,
		"mysql://u:p@db/d?tls=true": false, "mysql://u:p@db/d?tls=skip-verify": true, "mysql://u:p@db/d?tls=preferred": true,
		"mariadb://u:p@db/d?tls=true": false, "mariadb://u:p@db/d": true, "postgresql://u:p@db/d": true,
		"postgres://u:p@localhost/d": false, "postgres://u:p@db/d": true, "postgres://u:p@db/d?sslmode=disable": true,
		"postgres://u:p@db/d?sslmode=require": true, "postgres://u:p@db/d?sslmode=verify-ca": false, "postgres://u:p@db/d?sslmode=verify-full": false,
		"postgres:///d?host=/run/postgresql": false, "postgres:///d?host=db.internal": true, "postgres://localhost/d?host=db.internal": true,
		"postgres://127.0.0.1,10.0.0.1/d": true, "postgres://db1,db2/d?sslmode=verify-full": false,
	} {
		if IsPlain(address) != want {
			t.Errorf("%s: plain is %v", address, !want)
		}
	}
	t.Setenv("PGHOST", "db.internal")
	if !IsPlain("postgres:///d") {
		t.Error("a host of the environment is taken for this machine")
	}
}
