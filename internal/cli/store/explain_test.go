package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// TestExplain: every error says what to do, keeps its cause and shows no password.
func TestExplain(t *testing.T) {
	files := &config.Config{Engine: []string{"memory"}, Data: "d"}
	inServer := &config.Config{Engine: []string{"memory"}, Data: "d", Ledger: "mysql://u:secret-pw@h/shop"}
	redis := &config.Config{Engine: []string{"redis://u:secret-pw@r:6379/0"}, Ledger: inServer.Ledger}
	connecting := func(text string) error { return errors.New("redisengine: connecting: " + text) }
	for _, c := range []struct {
		config *config.Config
		err    error
		want   string
	}{
		{files, fmt.Errorf("x: %w by process 7 on till-1 (since noon)", dibs.ErrOwned), "the data folder d is in use by process 7 on till-1: stop it"},
		{inServer, fmt.Errorf("x: %w", dibs.ErrOwned), "the database mysql://h/shop is in use by another process: stop it"},
		{files, sqlledger.ErrSchema, "(dibs migrate --data d brings older files up to date)"},
		{inServer, sqlledger.ErrSchema, "(dibs migrate brings an older schema up to date)"},
		{redis, node.ErrDurability, "redis://r:6379/0: configure Redis for it"},
		{redis, redisengine.ErrForeign, "redis://r:6379/0 holds the campaigns of another ledger than mysql://h/shop"},
		{redis, connecting("WRONGPASS bad"), "redis://r:6379/0: Redis does not let dibs in: correct user and password of --engine"},
		{redis, connecting("ERR This instance has cluster support disabled"), "it is a single server and no cluster"},
		{redis, connecting("unknown command 'SENTINEL'"), "it is no sentinel"},
		{redis, connecting("connection refused"), "nothing answers there as Redis does"},
		{redis, errors.New("something else"), "opening redis://r:6379/0 and mysql://h/shop: something else"},
	} {
		err := Explain(c.config, c.err, "stop it")
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-pw") {
			t.Errorf("%v\nwant %s", err, c.want)
		}
		if !errors.Is(c.err, dibs.ErrOwned) && !errors.Is(err, c.err) && !errors.Is(c.err, redisengine.ErrForeign) {
			t.Errorf("%v lost its cause", err)
		}
	}
	if InUse(files) == InUse(inServer) {
		t.Error("a folder and a database need different flags")
	}
}
