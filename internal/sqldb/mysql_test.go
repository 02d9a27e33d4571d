package sqldb

import (
	"errors"
	"strings"
	"testing"
)

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{
		"8.0.15": true, "8.0.16": false, "8.0.36-0ubuntu0.22.04.1": false, "5.7.44-log": true, "9.1.0": false, "8.4": false, "8": true, "nonsense": true,
		"5.5.5-8.0.16-MariaDB": false,
	} {
		if got := olderThan(version, [3]int{8, 0, 16}); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestUnfitServers(t *testing.T) {
	fit := mysqlVariables{version: "10.11.6-MariaDB", flush: 1, binlog: 0, syncBinlog: 0, packet: leastPacket}
	if err := fit.check(); err != nil {
		t.Error(err)
	}
	if found := fit.durable(); len(remedies(found)) > 0 {
		t.Errorf("%+v", found)
	}
	for want, change := range map[string]func(v *mysqlVariables){
		"MariaDB 10.6 is the oldest":         func(v *mysqlVariables) { v.version = "10.5.23-MariaDB" },
		"MySQL 8.0.16 is the oldest":         func(v *mysqlVariables) { v.version = "8.0.15" },
		"innodb_flush_log_at_trx_commit = 1": func(v *mysqlVariables) { v.flush = 2 },
		"sync_binlog = 1":                    func(v *mysqlVariables) { v.binlog = 1 },
		"max_allowed_packet = 16M":           func(v *mysqlVariables) { v.packet-- },
	} {
		v := fit
		change(&v)
		if err := v.check(); !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}
