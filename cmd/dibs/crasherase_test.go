package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/erasure"
)

// TestKillErasure kills the server again and again while it erases a user of whom much
// is kept: the erasure ends by itself, nothing names the user any more, and verify
// finds nothing.
func TestKillErasure(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, node.LedgerFile), filepath.Join(dir, node.JournalFile)}
	killErasures(t, dir, "", (rounds(t)+5)/6, func() []*sql.DB {
		var all []*sql.DB
		for _, file := range files {
			db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, db)
		}
		return all
	})
}

// erasedKills is how often the server is killed while it erases one user.
const erasedKills = 3

func killErasures(t *testing.T, data, ledger string, n int, open func() []*sql.DB) {
	seed := killSeed(t)
	t.Logf("seed %d, %d users", seed, n)
	x := &erasures{
		crashes: &crashes{t: t, r: rand.New(rand.NewPCG(seed, 0)), data: data, ledger: ledger, more: []string{"--erase-rest", "1s"}},
		open:    open,
		within:  150,
	}
	if ledger != "" {
		x.within = 600
	}
	var users []string
	for i := range n {
		users = append(users, fmt.Sprintf("to-be-erased-%d-end", i))
	}
	x.live(users)
	for i, user := range users {
		if x.erase(user); t.Failed() {
			t.Fatalf("user %d of seed %d", i+1, seed)
		}
	}
	t.Logf("%d of %d kills came while a user was being erased", x.midway, n*erasedKills)
	if n >= 10 && x.midway == 0 {
		t.Error("no kill came while a user was being erased: this proves nothing")
	}
}

// erasures erases users on a server that is killed meanwhile.
type erasures struct {
	*crashes
	// open opens the databases, to read them while no server does.
	open func() []*sql.DB
	// within is how many milliseconds after it was asked for an erasure is cut off at
	// the latest, midway how often that was in its middle.
	within, midway int
}

// live lets the users leave traces three days ago, so that nothing holds them any more.
func (x *erasures) live(users []string) {
	x.t.Helper()
	ctx := x.t.Context()
	var ahead atomic.Int64
	ahead.Store(int64(-72 * time.Hour))
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	nd, err := node.Open(ctx, node.Config{
		Dir: x.data, Ledger: x.ledger, Migrate: true, Now: now, Service: node.ServiceConfig{
			Split:     func(p dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(p, nil) },
			TidyEvery: 10 * time.Millisecond, SettleEvery: time.Millisecond, CreditEvery: 10 * time.Millisecond,
		},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	p := &past{erasures: x, node: nd, now: now}
	p.sell(users)
	p.follow(users)
	p.record(users)
	ahead.Add(int64(24 * time.Hour))
	p.await("nothing is held any more", func() bool {
		shards, err := nd.Engine.JournalShards(ctx)
		p.must(err)
		return len(shards) == 0
	})
	p.must(nd.Close(context.Background()))
}

// erase erases a user, with kills in between.
func (x *erasures) erase(user string) {
	x.t.Helper()
	if places := x.naming(user); len(places) < 8 {
		x.t.Fatalf("before, only %v names the user", places)
	}
	x.server, x.url = startServe(x.t, x.data, append(x.where(), x.more...)...)
	asked := make(chan struct{})
	ask := func() (erasure.ErasureView, error) {
		v, _, err := clitest.Admin(x.t, x.url).Erasures.Erase(x.t.Context(), user, erasure.ErasureSpec{LeaveBalance: true})
		return v, err
	}
	go func() {
		defer close(asked)
		if _, err := ask(); err != nil {
			x.t.Logf("the call was cut off: %v", err)
		}
	}()
	for kill := range erasedKills {
		most := x.within
		if kill > 0 {
			// It has to start first.
			most *= 3
			x.server = start(x.t, clitest.Secrets, slices.Concat([]string{"serve", "--data", x.data, "--listen", "127.0.0.1:0"}, x.where(), x.more)...)
		}
		<-time.After(time.Duration(x.r.IntN(most)) * time.Millisecond)
		x.server.kill()
		<-asked
		if x.isMidway() {
			x.midway++
		}
	}
	x.server, x.url = startServe(x.t, x.data, append(x.where(), x.more...)...)
	// It may not have been asked for before the first kill.
	e, err := ask()
	if err != nil {
		x.t.Fatal(err)
	}
	api := clitest.Admin(x.t, x.url)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(clitest.Patience); e.State != erasure.ErasureDone; <-tick.C {
		if e, err = api.Erasures.Get(x.t.Context(), e.ID); err != nil || time.Now().After(until) {
			x.t.Fatalf("the erasure does not end: %+v, %v", e, err)
		}
	}
	if r, err := api.Erasures.Record(x.t.Context(), user); err != nil || len(r.Campaigns)+len(r.Balances)+len(r.Follows)+len(r.Lists) > 0 || r.Erasure != nil {
		x.t.Errorf("what there is about the user: %+v, %v", r, err)
	}
	x.server.signal(x.t, syscall.SIGTERM)
	if code := x.server.code(x.t); code != 0 {
		x.t.Errorf("exit code %d", code)
	}
	if places := x.naming(user); len(places) > 0 {
		x.t.Errorf("the user is named still: %v", places)
	}
	execute(x.t, nil, append([]string{"verify", "--data", x.data}, x.where()...)...).Want(x.t, 0, "every promise holds")
}

// isMidway reports whether an erasure is neither at its beginning nor at its end.
func (x *erasures) isMidway() (is bool) {
	x.t.Helper()
	x.each(func(db *sql.DB) {
		// The journal's file has no erasures.
		if slices.Contains(x.tables(db), "erasures") {
			x.rows(db, "SELECT step FROM erasures WHERE user_id IS NOT NULL AND clean_since = 0", func(_, values []string) {
				is = is || values[0] != string(erasure.EraseClaims)
			})
		}
	})
	return is
}

// each opens the databases for a while.
func (x *erasures) each(do func(db *sql.DB)) {
	x.t.Helper()
	for _, db := range x.open() {
		do(db)
		if err := db.Close(); err != nil {
			x.t.Error(err)
		}
	}
}

// naming lists where a user is named: in any column of any table, and, where the
// database is files, in these, once what was deleted has gone from them.
func (x *erasures) naming(user string) []string {
	x.t.Helper()
	places := map[string]bool{}
	x.each(func(db *sql.DB) {
		for _, table := range x.tables(db) {
			x.search(db, table, user, places)
		}
		if x.ledger == "" {
			for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
				if _, err := db.ExecContext(x.t.Context(), statement); err != nil {
					x.t.Fatal(err)
				}
			}
		}
	})
	list, err := os.ReadDir(x.data)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, file := range list {
		text, err := os.ReadFile(filepath.Join(x.data, file.Name()))
		if err != nil {
			x.t.Fatal(err)
		}
		if bytes.Contains(text, []byte(user)) {
			places["the file "+file.Name()] = true
		}
	}
	var names []string
	for name := range places {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tables lists the tables of a database.
func (x *erasures) tables(db *sql.DB) (names []string) {
	x.t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	switch {
	case strings.HasPrefix(x.ledger, "mysql"):
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
	case x.ledger != "":
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	x.rows(db, query, func(_, values []string) { names = append(names, values[0]) })
	return names
}

// search notes the columns of a table that name a user.
func (x *erasures) search(db *sql.DB, table, user string, places map[string]bool) {
	x.t.Helper()
	x.rows(db, "SELECT * FROM "+table, func(columns, values []string) {
		for i, v := range values {
			if strings.Contains(v, user) {
				places[table+"."+columns[i]] = true
			}
		}
	})
}

// rows reads rows of any kind as texts.
func (x *erasures) rows(db *sql.DB, query string, do func(columns, values []string)) {
	x.t.Helper()
	rows, err := db.QueryContext(x.t.Context(), query)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			x.t.Error(err)
		}
	}()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		raw, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range raw {
			into[i] = &raw[i]
		}
		if err = rows.Scan(into...); err == nil {
			values := make([]string, len(raw))
			for i := range raw {
				values[i] = string(raw[i])
			}
			do(columns, values)
		}
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		x.t.Fatal(err)
	}
}
