package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"

	"github.com/dibs-dev/dibs/access"
)

// TestOpenLedger makes a ledger only when it may, and tells which keys are in it.
func TestOpenLedger(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c := &config.Config{Engine: []string{"memory"}, Data: data, LedgerTimeout: time.Second}
	if _, err := OpenLedger(t.Context(), c, false); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "dibs serve makes it") {
		t.Errorf("%v", err)
	}
	has := func(want bool) {
		t.Helper()
		if got, err := HasAdminKey(t.Context(), c); err != nil || got != want {
			t.Errorf("an admin key: %v, %v, want %v", got, err, want)
		}
	}
	has(false)
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made the folder: %v", err)
	}
	l, err := OpenLedger(t.Context(), c, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	insert := func(role access.Role) *access.APIKey {
		t.Helper()
		k, _, err := access.NewKey(access.KeySpec{Name: "k", Role: role}, time.Now())
		if err == nil {
			err = l.InsertKey(t.Context(), k)
		}
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	insert(access.RoleViewer)
	has(false)
	admin := insert(access.RoleAdmin)
	has(true)
	if err := l.RevokeKey(t.Context(), admin.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	has(false)
}

// TestOpenNode explains why a folder cannot be opened twice.
func TestOpenNode(t *testing.T) {
	c := &config.Config{Engine: []string{"memory"}, Data: t.TempDir(), LedgerTimeout: time.Second, Migrate: true, LimitEntries: 1024}
	log := slog.New(slog.DiscardHandler)
	node, err := OpenNode(t.Context(), c, log, nil, "wait")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNode(t.Context(), c, log, nil, "wait"); err == nil || !strings.Contains(err.Error(), c.Data+" is in use by process ") || !strings.HasSuffix(err.Error(), ": wait") {
		t.Errorf("%v", err)
	}
	if err := node.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestExists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "l.db")
	for address, want := range map[string]bool{"sqlite:" + file: false, "mysql://u:p@h/d": true} {
		if got, err := Exists(address); got != want || err != nil {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Exists("sqlite:" + file); !got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
