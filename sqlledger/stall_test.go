package sqlledger_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// A process that is frozen in the middle of a transaction loses it soon, where
// the server has a limit for that, before those who wait for its rows give up.
func TestServerStalledTransaction(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		frozen := openAt(t, url)
		defer closeAll(t, frozen)
		limit := "SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
		if strings.HasPrefix(url, "mysql") {
			limit = "SELECT @@SESSION.idle_transaction_timeout * 1000"
		}
		ms, end, err := sqlledger.InTransaction(t.Context(), frozen, limit)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if ms != sqlledger.StallPatience.Milliseconds() {
			t.Errorf("a transaction may do nothing for %d ms", ms)
		}
		if os.Getenv("SOAK") != "" {
			stalled(t, url, frozen)
		}
	})
}

// stalled has one process lock a campaign's row and do nothing more: another one
// changes the campaign all the same.
func stalled(t *testing.T, url string, frozen *sqlledger.Ledger) {
	other, err := sqlledger.Open(t.Context(), url, sqlledger.Options{Migrate: true, Timeout: sqlledger.MaxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, other)
	c := &dibs.Campaign{
		ID: "phone", Kind: dibs.Sale, Title: "Phone", StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.Stock{Kind: dibs.Units, Total: 5}, LimitPerUser: 1, Shards: 1,
	}
	if err := other.InsertCampaign(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	_, end, err := sqlledger.InTransaction(t.Context(), frozen, "SELECT number FROM campaigns WHERE id = 'phone' FOR UPDATE")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	c.Title = "Phone at one"
	if err := other.UpdateCampaign(t.Context(), c); err != nil {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	if took := time.Since(begun); took < sqlledger.StallPatience/2 || took > 2*sqlledger.StallPatience {
		t.Errorf("the row was free after %s", took)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
