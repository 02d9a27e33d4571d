package sqldb

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestDurable: a server whose connections are all in use is asked again, and its answer names the setting
// by which it may lose commits, until that is right again. A file has no such setting.
func TestDurable(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server, url string) {
		db := openTest(t, url, Config{})
		wrong := func() (wrong []Finding) {
			found, err := db.Durable(t.Context())
			noError(t, err)
			if len(found) == 0 {
				t.Error("nothing was asked")
			}
			for _, f := range found {
				if f.Level != LevelOK {
					wrong = append(wrong, f)
				}
			}
			return wrong
		}
		if w := wrong(); w != nil {
			t.Errorf("a server that keeps its commits: %+v", w)
		}
		var busy sync.WaitGroup
		done := make(chan struct{})
		free := sync.OnceFunc(func() { close(done); busy.Wait() })
		defer free()
		for _, use := range []func(context.Context, string, func(*Session) error) error{db.Read, db.WriteOnce} {
			in := make(chan struct{})
			busy.Go(func() {
				if err := use(t.Context(), "wait", func(*Session) error { close(in); <-done; return nil }); err != nil {
					t.Error(err)
				}
			})
			<-in
		}
		name, is, wanted, right := s.LoseCommits(t)
		within(t, "the setting is noticed", func() bool {
			w := wrong()
			return len(w) == 1 && w[0].Level == LevelFail && w[0].Subject == name && w[0].Found == is && w[0].Wanted == wanted && w[0].Remedy != ""
		})
		free()
		right()
		within(t, "it is noticed that all is right again", func() bool { return wrong() == nil })
		noError(t, db.Close())
		if found, err := db.Durable(t.Context()); err == nil {
			t.Errorf("a server that was not asked answers %+v", found)
		}
	})
	if found, err := openTest(t, fileAddress(t), Config{}).Durable(t.Context()); found != nil || err != nil {
		t.Errorf("a file: %+v, %v", found, err)
	}
}

// TestSynchronousCommitStays: a connection that is open keeps waiting for the disk when
// the server's configuration says that none need to.
func TestSynchronousCommitStays(t *testing.T) {
	s, url, _ := servers.Database(t, servers.Postgres)
	db := openTest(t, url, Config{})
	noError(t, insert(t, db, "a", 1))
	back := []string{"ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()"}
	t.Cleanup(func() { noError(t, s.Exec("", back...)) })
	noError(t, s.Exec("", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"))
	ask := func(what string) (value string) {
		noError(t, db.WriteOnce(t.Context(), "ask", func(s *Session) error { return s.Row(t.Context(), what, nil, &value) }))
		return value
	}
	// The connection has read the configuration when it knows what it would be reset to.
	within(t, "the connection reads the configuration", func() bool {
		return ask("SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'") == "off"
	})
	if value := ask("SELECT current_setting('synchronous_commit')"); value != "on" {
		t.Errorf("a connection from before commits with synchronous_commit %s", value)
	}
}

// within waits until something is so.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
