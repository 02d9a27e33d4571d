package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// TestServerConstraints is TestConstraints on servers.
func TestServerConstraints(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		items, units := plant(t, l)
		for what, statement := range forbidden {
			if what == "an item of two claims" && strings.HasPrefix(url, "mysql") {
				// Its migration says why there is no trigger for this one.
				continue
			}
			if err := s.Exec(name, statement); err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		for _, c := range []*dibs.Campaign{items, units} {
			a, err := l.Audit(t.Context(), c)
			if err != nil || len(a.BadItems)+len(a.BadTotals)+len(a.OverLimit) > 0 || a.BeyondPosition != 0 {
				t.Errorf("the audit of %s: %+v, %v", c.ID, a, err)
			}
		}
	})
}

// TestServerAuditFinds plants what the constraints cannot see, all at once.
func TestServerAuditFinds(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		items, units := plant(t, l)
		unchecked := `SET session_replication_role = replica`
		if strings.HasPrefix(url, "mysql") {
			unchecked = `SET foreign_key_checks = 0`
		}
		if err := s.Exec(name, unchecked,
			`DELETE FROM claims WHERE campaign = 1 AND seq = 2`,
			`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 2`,
			`DELETE FROM items WHERE n = 9`,
			`UPDATE campaigns SET stock_left = 2 WHERE number = 2`,
			`UPDATE positions SET confirmed = 9, pos_seq = 2 WHERE campaign = 2`,
			`UPDATE claims SET quantity = 6 WHERE campaign = 2 AND seq = 2`); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range []*dibs.Campaign{items, units} {
			a, err := l.Audit(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			said = append(append(said, a.BadItems...), a.BadTotals...)
			said = append(said, fmt.Sprintf("%d past the position", a.BeyondPosition), "over the limit: "+strings.Join(a.OverLimit, " "))
		}
		all := strings.Join(said, "\n")
		for _, want := range []string{
			"item 0 belongs to the claim 1/0@1.2, which does not exist", "the claim 1/0@1.3 should have 2 items and has 1",
			"shard 0 stock of items is 10, its rows add up to 9", "campaign stock_left is 2, its rows add up to 3",
			"shard 0 confirmed is 9, its rows add up to 7", "1 past the position", "over the limit: u0",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("the audit does not say %q, it says:\n%s", want, all)
			}
		}
	})
}

// TestServerTexts: ids that differ in case or by spaces are different, texts
// keep every character, and what cannot be kept is the caller's mistake.
func TestServerTexts(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		ctx := t.Context()
		url, _ := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		title := "手机 📱 ’ \\ % _ \" ; --"
		for _, id := range []string{"abc", "ABC", "Abc"} {
			if err := l.InsertProduct(ctx, &dibs.Product{ID: id, Name: title + id}); err != nil {
				t.Fatal(err)
			}
		}
		p, err := l.Product(ctx, "ABC")
		if err != nil || p.Name != title+"ABC" {
			t.Errorf("found %+v, %v", p, err)
		}
		if _, err := l.Product(ctx, "aBC"); !errors.Is(err, dibs.ErrNotFound) {
			t.Errorf("an id in another case: %v", err)
		}
		values := []string{"a", "A", "a ", " a", "ä", "a\u0308", "ａ", strings.Repeat("码", dibs.MaxItemLen)}
		c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Items, Total: int64(len(values))}}
		if err := l.InsertCampaign(ctx, c, values); err != nil {
			t.Fatal(err)
		}
		load, err := l.LoadShard(ctx, c, dibs.ShardID{Campaign: c.Number}, dibs.Opener{})
		if err != nil || fmt.Sprintf("%q", load.Items) != fmt.Sprintf("%q", values) {
			t.Errorf("items %+v, %v", load, err)
		}
		if _, err := l.Product(ctx, "\xff\xfe"); !errors.Is(err, dibs.ErrNotFound) && !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("bytes that are no text: %v", err)
		}
		if err := l.InsertProduct(ctx, &dibs.Product{ID: "nul", Name: "a\x00b"}); err != nil && !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("a NUL: %v", err)
		}
	})
}

// TestServerRefused: whatever keeps a ledger from being opened is told within
// five seconds, with what to do, and without the password.
func TestServerRefused(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, silent)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, gone)
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		here := fmt.Sprintf("127.0.0.1:%d", s.Port())
		grant := []string{fmt.Sprintf("CREATE USER poor_%s PASSWORD 'poor-pw'", name)}
		latin := fmt.Sprintf("CREATE DATABASE latin_%s ENCODING 'LATIN1' TEMPLATE template0", name)
		if strings.HasPrefix(url, "mysql") {
			grant = []string{
				fmt.Sprintf("CREATE USER poor_%s IDENTIFIED BY 'poor-pw'", name), fmt.Sprintf("GRANT SELECT ON %s.* TO poor_%s", name, name),
			}
			latin = "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
		}
		t.Cleanup(func() {
			// The server is shared: nobody else shall meet them.
			if err := s.Exec("", "DROP USER poor_"+name); err != nil {
				t.Error(err)
			}
		})
		noSchema := strings.Replace(url, servers.User+":"+servers.Password, "poor_"+name+":poor-pw", 1)
		if !strings.HasPrefix(url, "mysql") {
			noSchema += "?search_path=nowhere"
		}
		if err := s.Exec("", grant...); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for what, c := range map[string]struct {
			url, want string
			before    []string
		}{
			"a wrong password": {strings.Replace(url, servers.Password, "wrong-pw", 1), "correct user or password", nil},
			"a wrong user":     {strings.Replace(url, servers.User+":", "nobody:", 1), "correct user or password", nil},
			"no database":      {strings.Replace(url, "/"+name, "/nowhere", 1), "there is no database nowhere: CREATE DATABASE nowhere", nil},
			"no rights":        {strings.Replace(url, servers.User+":"+servers.Password, "poor_"+name+":poor-pw", 1), "has too few rights", nil},
			"no schema":        {noSchema, "has too few rights", nil},
			"nobody there":     {strings.Replace(url, here, gone.Addr().String(), 1), "start the server, or correct host and port", nil},
			"no such host":     {strings.Replace(url, "127.0.0.1", "no-such-host.invalid", 1), "start the server, or correct host and port", nil},
			"another server":   {another(t, url), "start the server, or correct host and port", nil},
			"no TLS":           {url + map[bool]string{true: "?tls=true", false: "?sslmode=verify-full"}[strings.HasPrefix(url, "mysql")], "the server does not encrypt", nil},
			"a silent server":  {strings.Replace(url, here, silent.Addr().String(), 1), "start the server, or correct host and port", nil},
		} {
			all.Go(func() { refused(t, s, what, c.url, c.want, c.before) })
		}
		all.Wait()
		unfit := strings.Replace(url, "/"+name, "/latin_"+name, 1)
		if strings.HasPrefix(url, "mysql") {
			unfit = url
		}
		refused(t, s, "a server that is unfit", unfit, "cannot keep a ledger as it is", []string{latin})
		if strings.HasPrefix(url, "mysql") {
			if err := s.Exec("", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// another is the address with the port of a server of the other kind.
func another(t *testing.T, address string) string {
	t.Helper()
	get := servers.MariaDB
	if strings.HasPrefix(address, "mysql") {
		get = servers.Postgres
	}
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", s.Port())
	return u.String()
}

// refused opens what cannot be opened, after some statements.
func refused(t *testing.T, s *servers.Server, what, url, want string, before []string) {
	t.Helper()
	if err := s.Exec("", before...); err != nil {
		t.Error(err)
		return
	}
	began := time.Now()
	var both sync.WaitGroup
	for kind, open := range map[string]func() error{
		"ledger": func() error {
			_, err := sqlledger.Open(t.Context(), url, sqlledger.Options{Migrate: true})
			return err
		},
		"journal": func() error {
			_, err := sqlledger.OpenJournal(t.Context(), url, sqlledger.Options{Migrate: true})
			return err
		},
	} {
		both.Go(func() {
			err := open()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, the %s: %v", what, kind, err)
			}
			for _, secret := range []string{servers.Password, "wrong-pw", "poor-pw"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s, the %s: the error shows the password: %v", what, kind, err)
				}
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s, the %s: told after %s", what, kind, took)
			}
		})
	}
	both.Wait()
}

// TestServersOpenedTogether: nodes that start on an empty database at the same
// time all find it ready.
func TestServersOpenedTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		errs := make(chan error)
		for range 4 {
			go func() {
				l, err := sqlledger.Open(context.Background(), url, sqlledger.Options{Migrate: true})
				if err == nil {
					err = l.Close()
				}
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

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
		err := sqlledger.Check(address)
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
	} {
		if err := sqlledger.Check(address); err != nil || sqlledger.Place(address) != place {
			t.Errorf("%s: %v, shown as %s", address, err, sqlledger.Place(address))
		}
	}
}
