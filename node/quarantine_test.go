package node_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// logged keeps what a node logs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// count is how often something was logged.
func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

// slowly settles nothing by itself within a test.
func slowly() (node.ServiceConfig, *logged) {
	log := &logged{}
	return node.ServiceConfig{SettleEvery: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

// seats publishes a campaign of n items.
func (r *rig) seats(id string, n int) {
	r.Helper()
	spec := r.sale(id, 0)
	spec.Stock = dibs.StockSpec{}
	for i := range n {
		spec.Stock.Items = append(spec.Stock.Items, fmt.Sprint("seat-", i))
	}
	r.publish(spec)
}

// poison rewrites a journal entry by hand: the first row of the campaign that
// ends with a grant of the given item says that it was another item, checksum
// and all.
func (r *rig) poison(campaign int, item, other byte) {
	r.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, node.JournalFile)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.Fatal(err)
	}
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
	if _, err := db.ExecContext(r.Context(), `UPDATE journal SET payload = ? WHERE id = ?`, payload, id); err != nil {
		r.Fatal(err)
	}
}

// unsettled calls f, again when an entry was settled before f could get at it:
// f returns false then.
func unsettled(t *testing.T, f func() bool) {
	t.Helper()
	for range 10 {
		if f() {
			return
		}
	}
	t.Fatal("the entry was always settled too early")
}

// settle waits until what was granted is settled, as far as it can be.
func (r *rig) settle(campaign string) error {
	r.Helper()
	_, err := r.node.Service.Claims.OfCampaign(r.Context(), campaign, dibs.ClaimFilter{}, dibs.Page{})
	return err
}

// inQuarantine is how many entries the node says are in quarantine.
func (r *rig) inQuarantine() int64 { return r.node.Service.Observe().Quarantined }

// report verifies without an opinion.
func (r *rig) report() *audit.Report {
	r.Helper()
	report, err := r.node.Service.Audit.Verify(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return report
}

// isKept checks that a claim in quarantine is kept: it is found, by its id, by
// its repeat and by its user alone, and counts.
func (r *rig) isKept(campaign, user, key, id string) {
	r.Helper()
	c, err := r.node.Service.Claims.Find(r.Context(), id)
	if err != nil || c.UserID != user {
		r.Errorf("the claim in quarantine: %+v, %v", c, err)
	}
	if again := r.wants(dibs.Granted, campaign, user, key); !again.Replayed || again.Claim.ID != id {
		r.Errorf("its repeat: %+v", again)
	}
	list, err := r.node.Service.Claims.OfUser(r.Context(), user, dibs.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != id {
		r.Errorf("its user's claims: %+v, %v", list.Items, err)
	}
	list, err = r.node.Service.Claims.OfUser(r.Context(), "another user", dibs.Page{})
	if err != nil || len(list.Items) > 0 {
		r.Errorf("the claims of a user who has none: %+v, %v", list.Items, err)
	}
}

// A journal entry that the ledger cannot take is set aside, and everything else
// goes on: it still counts, in the ledger and in an engine that was rebuilt.
func TestAPoisonEntryIsSetAside(t *testing.T) {
	for name, item := range map[string]byte{"an item that does not exist": 99, "an item of another claim": 0} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			var log *logged
			var poisoned *dibs.Claim
			var before api.StatsView
			unsettled(t, func() bool {
				var tune node.ServiceConfig
				tune, log = slowly()
				r = newRig(t, tune)
				r.publish(r.sale("beside", 10))
				r.seats("seats", 10)
				r.sell("seats", 6)
				r.sell("beside", 3)
				poisoned = r.wants(dibs.Granted, "seats", "u3", "k3").Claim
				before = r.stats("seats")
				r.poison(2, 3, item)
				if err := r.settle("seats"); err != nil {
					t.Fatal(err)
				}
				return r.inQuarantine() > 0
			})
			if n := r.inQuarantine(); n != 1 || log.count("is in quarantine") != 1 {
				t.Fatalf("%d entries in quarantine, logged %d times", n, log.count("is in quarantine"))
			}
			h := r.node.Service.Health(t.Context())
			if s := h.Dependencies["settling"]; !h.Ready || !s.OK || !strings.Contains(s.Warning, "quarantine") {
				t.Errorf("health: %+v", h)
			}
			after := r.stats("seats")
			if after.Granted != before.Granted || after.Remaining != before.Remaining || after.Stock != 10 || after.Confirmed != 6 {
				t.Errorf("the stats were %+v and are %+v", before, after)
			}
			r.isKept("seats", "u3", "k3", poisoned.ID)
			saysQuarantine(t, r.report())

			r.reopen()
			r.isKept("seats", "u3", "k3", poisoned.ID)
			r.wants(dibs.LimitReached, "seats", "u3", "another")
			// The journal is what is believed: seat-3 is not in it, another one is kept
			// back for it.
			sold := map[string]bool{"seat-0": true, "seat-1": true, "seat-2": true, "seat-4": true, "seat-5": true}
			for i := range 4 {
				seat := r.wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k").Claim.Items[0]
				if sold[seat] {
					t.Errorf("%s is sold twice", seat)
				}
				sold[seat] = true
			}
			r.wants(dibs.SoldOut, "seats", "too-late", "k")
			saysQuarantine(t, r.report())

			r.pass(2 * time.Hour)
			r.reopen()
			if again := r.wants(dibs.Granted, "seats", "u3", "k3"); !again.Replayed || again.Claim.ID != poisoned.ID {
				t.Errorf("its repeat after the end: %+v", again)
			}
			if c, err := r.node.Service.Claims.Find(t.Context(), poisoned.ID); err != nil || c.UserID != "u3" {
				t.Errorf("it after the end: %+v, %v", c, err)
			}
		})
	}
}

// saysQuarantine checks that the report's only complaint is the quarantine.
func saysQuarantine(t *testing.T, report *audit.Report) {
	t.Helper()
	for _, c := range report.Campaigns {
		for _, p := range c.Promises {
			if want := c.CampaignID != "seats" || p.Promise != "a yes is kept"; p.Held != want {
				t.Errorf("%s, %q held: %t: %s", c.CampaignID, p.Promise, p.Held, p.Detail)
			}
			if !p.Held && !strings.Contains(p.Detail, "in quarantine: 1") {
				t.Errorf("it says %q", p.Detail)
			}
		}
	}
}

// A poison entry in the tail that a crash left does not keep the campaign from
// being loaded.
func TestAPoisonedTailIsSettledBeforeTheLoad(t *testing.T) {
	var r *rig
	unsettled(t, func() bool {
		tune, _ := slowly()
		r = newRig(t, tune)
		r.seats("seats", 10)
		r.sell("seats", 6)
		if !r.abandon() {
			return false
		}
		r.poison(1, 3, 99)
		r.open()
		return r.inQuarantine() > 0
	})
	if n := r.inQuarantine(); n != 1 {
		t.Fatalf("%d entries in quarantine", n)
	}
	if again := r.wants(dibs.Granted, "seats", "u3", "k3"); !again.Replayed {
		t.Errorf("%+v", again)
	}
	for i := range 4 {
		r.wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k")
	}
	r.wants(dibs.SoldOut, "seats", "too-late", "k")
	saysQuarantine(t, r.report())
}

// A claim that the ledger has at a place that is not settled is no poison: two
// histories cannot both be kept. The campaign halts, the others go on.
func TestAForkHalts(t *testing.T) {
	tune, log := slowly()
	r := newRig(t, tune)
	r.publish(r.sale("forked", 10))
	r.publish(r.sale("beside", 10))
	r.tamper(`INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at)
		SELECT 1, 0, epoch, 3, 'another story', 1, 1, 2, 0, '', 0, 0, 0, 0 FROM positions WHERE campaign = 1`)
	r.sell("forked", 3)
	r.sell("beside", 3)
	if err := r.settle("beside"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := r.node.Service.Claims.OfCampaign(ctx, "forked", dibs.ClaimFilter{}, dibs.Page{})
	r.fails(err, dibs.Unavailable)
	r.eventually("the log says why", func() bool { return log.count("a claim at a place that is not settled") > 0 })
	if n := r.inQuarantine(); n != 0 {
		t.Errorf("%d entries in quarantine", n)
	}
	if h := r.node.Service.Health(t.Context()); h.Ready || h.Dependencies["settling"].OK {
		t.Errorf("health: %+v", h)
	}
	r.wants(dibs.Granted, "beside", "late", "k")
	r.tamper(`DELETE FROM claims WHERE user_id = 'another story'`)
	r.verify()
}
