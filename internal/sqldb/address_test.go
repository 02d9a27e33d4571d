package sqldb

import (
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"sqlite:":                         "the path of a file",
		"sqlite://x":                      "the path of a file",
		"oracle://u:hush@h/d":             "must begin with sqlite:, mysql:// or postgres://",
		"mysql://u:hush@h":                "mysql://USER:PASSWORD@HOST",
		"mysql://u:hush@h/d?charset=x":    `there is no option "charset", only tls`,
		"mysql://u:hush@h/d?tls=maybe":    "tls must be",
		"mysql://u:hu%sh@h/d":             "the address cannot be read",
		"mysql://u:hush@h:many/d":         "the address cannot be read",
		"postgres://u:hush@h":             "postgres://USER:PASSWORD@HOST",
		"postgres://u:hush@h/d?sslmode=x": "sslmode",
	} {
		err := Check(address)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "hu%sh")) {
			t.Errorf("the password is shown: %v", err)
		}
	}
	for address, place := range map[string]string{
		"sqlite:a.db":                             "sqlite:a.db",
		"mysql://u:hush@h/d?tls=true":             "mysql://h/d",
		"mariadb://u:hush@h:1/d":                  "mysql://h:1/d",
		"postgresql://u:hush@h/d?sslmode=disable": "postgres://h/d",
		"postgres://u:hush@a:5432,b:5433/d":       "postgres://a:5432,b:5433/d",
	} {
		if err := Check(address); err != nil || Place(address) != place {
			t.Errorf("%s: %v, shown as %s", address, err, Place(address))
		}
	}
}

// TestSeveralHosts: which addresses of several servers are taken.
func TestSeveralHosts(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:hush@a:5432,b:5433/d":                                "",
		"postgres://u:hush@a,b/d?target_session_attrs=primary":             "",
		"postgres://u:hush@a/d?target_session_attrs=read-write":            "",
		"postgres://u:hush@a,b/d?target_session_attrs=any":                 "must be read-write or primary",
		"postgres://u:hush@a,b/d?target_session_attrs=prefer-standby":      "must be read-write or primary",
		"mysql://u:hush@a:3306,b:3306/d":                                   "name one address",
		"mariadb://u:hush@a,b/d":                                           "name one address",
		"postgres://u:hush@a:5432,b:5433/d?sslmode=disable&no_such=option": "",
	} {
		err := Check(address)
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
