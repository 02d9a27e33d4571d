package rehearsal_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/lab/rehearsal"
	"github.com/dibs-dev/dibs/node"
)

// TestQuantities: several units per request, more than one request per user,
// and a stock that the quantity does not divide.
func TestQuantities(t *testing.T) {
	r := rehearse(t, rehearsal.Config{Users: 30, Requests: 300, Stock: 100, Limit: 7, Quantity: 3})
	// A user may hold two claims of 3; 33 of them fit into 100 units.
	if !r.OK || count(r, "granted") != 33 || r.Stats.Remaining != 1 {
		t.Errorf("quantities of 3, limit 7:\n%s", table(t, r))
	}
}

// TestMoreStockThanDemand: everybody gets what the limit allows.
func TestMoreStockThanDemand(t *testing.T) {
	r := rehearse(t, rehearsal.Config{Users: 50, Requests: 60, Stock: 1000, NoKeys: true, Concurrency: 7})
	if !r.OK || count(r, "granted") != 50 || count(r, "limit_reached") != 10 {
		t.Errorf("more than enough:\n%s", table(t, r))
	}
}

// TestExistingCampaign loads a campaign that is there, with a server's own
// tokens, twice, and leaves it running.
func TestExistingCampaign(t *testing.T) {
	secret := strings.Repeat("s", 32)
	nd, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := nd.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := nd.Service.Access.EnsureKey(t.Context(), "test", adminKey); err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(nd.Service), JWTSecret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	c, err := client.New(s.URL, client.Options{AdminKey: adminKey})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	items := []string{"A1", "A2", "A3", "B1", "B2", "B3", "C1", "C2", "C3"}
	now := time.Now()
	spec := dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Sale, Title: "Seats", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Items: items},
	}
	if _, err := c.Campaigns.Create(t.Context(), spec, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Campaigns.Publish(t.Context(), "seats"); err != nil {
		t.Fatal(err)
	}
	cfg := rehearsal.Config{URL: s.URL, AdminKey: adminKey, JWTSecret: secret, Campaign: "seats", Users: 4, Requests: 40}
	for range 2 {
		if r := rehearse(t, cfg); !r.OK || count(r, "granted") != 4 {
			t.Errorf("4 of the seats:\n%s", table(t, r))
		}
	}
	if r := rehearse(t, cfg); !r.OK || count(r, "granted") != 1 || r.Stats.Remaining != 0 {
		t.Errorf("the last seat:\n%s", table(t, r))
	}
	v, err := c.Campaigns.Get(t.Context(), "seats")
	if err != nil || v.State != dibs.Published {
		t.Errorf("the campaign is %s, %v; it was to stay published", v.State, err)
	}
	// Its users have no dev tokens.
	cfg.JWTSecret = ""
	if _, err := rehearsal.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "--jwt-secret") {
		t.Errorf("the error does not name the flag: %v", err)
	}
}

// TestKeepsData: two rehearsals on one folder, each on a campaign of its own.
func TestKeepsData(t *testing.T) {
	dir := t.TempDir()
	first := rehearse(t, rehearsal.Config{Users: 10, Requests: 20, Stock: 5, Data: dir})
	second := rehearse(t, rehearsal.Config{Users: 10, Requests: 20, Stock: 5, Data: dir})
	if !first.OK || !second.OK || first.CampaignID == second.CampaignID {
		t.Errorf("%s\n%s", table(t, first), table(t, second))
	}
	nd, err := node.Open(t.Context(), node.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*rehearsal.Report{first, second} {
		c, err := nd.Service.Live.Registry.Get(t.Context(), r.CampaignID)
		if err != nil || c.State != dibs.EndedState {
			t.Errorf("campaign %s: %+v, %v; it was to be ended", r.CampaignID, c, err)
		}
	}
	if err := nd.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestProgressAndJSON: lines elsewhere than on a terminal, a bar on one, and a
// report that machines read.
func TestProgressAndJSON(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var lines bytes.Buffer
		r := rehearse(t, rehearsal.Config{Users: 10, Requests: 20, Stock: 5, Progress: &lines, Terminal: terminal})
		for _, want := range []string{"connecting", "pressing", "granted ", "refused ", "repeating", "reading"} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("terminal=%v: the progress lacks %q:\n%s", terminal, want, lines.String())
			}
		}
		if strings.Contains(lines.String(), "\r") != terminal {
			t.Errorf("terminal=%v, yet: %q", terminal, lines.String())
		}
		var out bytes.Buffer
		if err := r.JSON(&out); err != nil {
			t.Fatal(err)
		}
		var again rehearsal.Report
		if err := json.Unmarshal(out.Bytes(), &again); err != nil || !again.OK || again.Seed == 0 || len(again.Promises) != len(r.Promises) {
			t.Errorf("the JSON reads %+v, %v", again, err)
		}
	}
}

// TestSeed: the same seed presses in the same order.
func TestSeed(t *testing.T) {
	order := func(seed uint64) string {
		var users []string
		cfg := serve(t, liar(func(r *http.Request, status int, body []byte) (int, []byte) {
			if isClaim(r) {
				_, n, _ := strings.Cut(userOf(r), "-")
				users = append(users, n)
			}
			return status, body
		}))
		cfg.Seed, cfg.Concurrency, cfg.Requests = seed, 1, 30
		rehearse(t, cfg)
		return strings.Join(users[:30], " ")
	}
	if a, b, c := order(7), order(7), order(8); a != b || a == c {
		t.Errorf("seed 7: %s\nagain:  %s\nseed 8: %s", a, b, c)
	}
}
