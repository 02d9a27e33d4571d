package node

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// TestBanner shows where everything is, and no password.
func TestBanner(t *testing.T) {
	now := time.Now()
	campaigns := []api.CampaignView{
		{ID: "phone-noon", Kind: dibs.Sale, State: dibs.Published, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), Remaining: 7, Price: &dibs.Money{Amount: 99900, Currency: "CNY"}},
		{ID: "later", Kind: dibs.Sale, State: dibs.Published, StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour)},
		{ID: "over", Kind: dibs.Sale, State: dibs.Published, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(-time.Minute)},
		{ID: "held", Kind: dibs.Sale, State: dibs.PausedState, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour)},
	}
	for _, c := range []struct {
		banner banner
		want   []string
	}{
		{banner{engine: "memory", data: "/tmp/x", ledger: "sqlite:/tmp/x/ledger.db", temporary: true, durability: dibs.LevelDurable}, []string{
			"dibs v7 · memory engine, SQLite ledger · durable: a yes is on the disk", "\nexport DIBS_URL=http://h:1 DIBS_ADMIN_KEY=dibs_key DIBS_DATA=/tmp/x\n", "/tmp/x (removed at the end; --data DIR keeps it)",
		}},
		{banner{engine: "redis://:secret-pw@r", data: "x", ledger: "postgres://u:secret-pw@h/d", durability: dibs.LevelLedgered}, []string{
			"dibs v7 · Redis engine, PostgreSQL ledger · ledgered: ", "\nexport DIBS_URL=http://h:1 DIBS_ADMIN_KEY=dibs_key\n", "postgres://h/d (kept)",
		}},
	} {
		c.banner.version, c.banner.url, c.banner.key, c.banner.campaigns = "v7", "http://h:1", "dibs_key", campaigns
		var out bytes.Buffer
		if err := c.banner.print(&out); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, want := range append(c.want, "7 left  open until ", "999.00 CNY", "starts ", "  over", "ended", "paused",
			"\ncurl -sS -X POST -w '\\n' -H 'Authorization: Bearer dev_42' http://h:1/v1/campaigns/phone-noon/claims\n",
			"\ncurl -sS -w '\\n' -H 'Authorization: Bearer dibs_key' http://h:1/v1/campaigns/phone-noon/stats\n") {
			if !strings.Contains(text, want) {
				t.Errorf("the banner lacks %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "secret-pw") {
			t.Errorf("a password is shown:\n%s", text)
		}
	}
}

// A shell reads each word as it was.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{"/tmp/a-b_c.d": "/tmp/a-b_c.d", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'"} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
