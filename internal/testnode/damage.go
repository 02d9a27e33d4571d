package testnode

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/node"
)

// Log keeps what a node logs.
// mu guards the buffer: a node logs from many goroutines.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps what is logged.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// Count returns how often something was logged.
func (l *Log) Count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

// Slowly returns the configuration of a node that settles nothing by itself within
// a test, and what it will log.
// Ten seconds are longer than a test takes between a claim and what it does to the
// journal.
func Slowly() (node.ServiceConfig, *Log) {
	log := &Log{}
	return node.ServiceConfig{SettleEvery: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

// Poison rewrites a journal entry by hand: the first row of the campaign that
// ends with a grant of the given item says that it was another item, checksum
// and all.
// The node may run: the row is changed in a transaction of SQLite's. It must not have
// settled the entry yet, see Unsettled.
func (r *Rig) Poison(campaign int, item, other byte) {
	r.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, node.JournalFile)+"?_pragma=busy_timeout(5000)")
	must(r, err)
	defer func() {
		if err := db.Close(); err != nil {
			r.Error(err)
		}
	}()
	// A grant of one item ends with 1, its number, and four bytes of checksum.
	var id int64
	var payload []byte
	err = db.QueryRowContext(r.Context(), `SELECT id, payload FROM journal WHERE campaign = ? AND substr(payload, -6, 2) = ? ORDER BY id LIMIT 1`,
		campaign, []byte{1, item}).Scan(&id, &payload)
	if err != nil {
		r.Fatalf("a row that ends with item %d: %v", item, err)
	}
	body := payload[:len(payload)-4]
	body[len(body)-1] = other
	payload = binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	_, err = db.ExecContext(r.Context(), `UPDATE journal SET payload = ? WHERE id = ?`, payload, id)
	must(r, err)
}

// Unsettled calls f, and again each time it returns false since an entry was settled
// too early.
// Settling may run at any moment; ten attempts in a row are not met by chance.
func Unsettled(t *testing.T, f func() bool) {
	t.Helper()
	for range 10 {
		if f() {
			return
		}
	}
	t.Fatal("the entry was always settled too early")
}

// InQuarantine returns how many entries are in quarantine, as the node says.
func (r *Rig) InQuarantine() int64 { return r.Node.Observe().Quarantined }

// Report verifies; promises may be broken.
func (r *Rig) Report() *audit.Report {
	r.Helper()
	report, err := r.Node.Audit.Verify(r.Context())
	must(r, err)
	return report
}

// Tamper changes the ledger behind dibs' back, constraints switched off.
// A statement that changes no row fails the test: it would prove nothing.
func (r *Rig) Tamper(statements ...string) {
	r.Helper()
	r.TamperFile(node.LedgerFile, statements...)
}

// TamperFile changes one of the files behind dibs' back.
// The node may be open; what it has in memory is not changed.
func (r *Rig) TamperFile(name string, statements ...string) {
	r.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, name)+"?_pragma=busy_timeout(5000)&_pragma=ignore_check_constraints(1)")
	must(r, err)
	defer func() {
		if err := db.Close(); err != nil {
			r.Error(err)
		}
	}()
	for _, s := range statements {
		res, err := db.ExecContext(r.Context(), s)
		if err != nil {
			r.Fatalf("%s: %v", s, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			r.Fatalf("%s changed nothing: %v", s, err)
		}
	}
}
