package remote_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/api"
)

// campaignOf reads the campaign that a verb shows.
func campaignOf(t *testing.T, r clitest.Result) api.CampaignView {
	t.Helper()
	r.Want(t, 0)
	var v api.CampaignView
	if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
		t.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	return v
}

// TestCampaignLife walks a campaign through every verb.
func TestCampaignLife(t *testing.T) {
	env := clitest.Served(t)
	verb := func(args ...string) api.CampaignView {
		t.Helper()
		return campaignOf(t, clitest.Run(t, env, append(append([]string{"campaign"}, args...), "--output", "json")...))
	}
	v := verb("create", "--id", "phones", "--title", "Phones", "--units", "10", "--ends", "+2h", "--price", "1999", "--currency", "CNY",
		"--limit", "2", "--pay-within", "15m", "--comment", "inner")
	if v.State != dibs.Draft || *v.Stock.Units != 10 || v.Price.Amount != 1999 || v.LimitPerUser != 2 || v.PayWithin == nil || *v.Comment != "inner" {
		t.Errorf("created %+v", v)
	}
	for _, step := range []struct {
		verb string
		want dibs.State
	}{{"publish", dibs.Published}, {"pause", dibs.PausedState}, {"pause", dibs.PausedState}, {"resume", dibs.Published}} {
		if v := verb(step.verb, "phones"); v.State != step.want {
			t.Errorf("%s: %s, want %s", step.verb, v.State, step.want)
		}
	}
	for range 2 {
		if v := verb("stock", "phones", "--delta", "5", "--key", "pallet-1"); *v.Stock.Units != 15 || v.Remaining != 15 {
			t.Errorf("restocked %+v", v)
		}
	}
	if v := verb("stock", "phones", "--delta", "-5", "--why", "broken"); *v.Stock.Units != 10 {
		t.Errorf("withdrew %+v", v)
	}
	v = verb("create", "--id", "seats", "--title", "Seats", "--items", "A1,A2", "--ends", "+1h", "--publish")
	if v.State != dibs.Published || *v.Stock.Items != 2 {
		t.Errorf("created %+v", v)
	}
	if v := verb("end", "seats"); v.State != dibs.EndedState {
		t.Errorf("ended %+v", v)
	}
	clitest.Run(t, env, "campaign", "list").Want(t, 0, "phones", "10 units", "seats", "2 items", "ended")
	clitest.Run(t, env, "campaign", "show", "phones").Want(t, 0, "pay within", "15m0s", "granted", "0 (pending 0")
	clitest.Run(t, env, "campaign", "show", "phones", "--output", "json").Want(t, 0, `"campaign"`, `"stats"`)
	clitest.Run(t, env, "campaign", "publish", "seats").Want(t, 1, "dibs: invalid_state")
	clitest.Run(t, env, "campaign", "show", "nobody").Want(t, 1, "dibs: not_found")
	clitest.Run(t, env, "campaign", "create", "--id", "phones", "--title", "Again", "--units", "1", "--ends", "+1h").Want(t, 1, "dibs: already_exists")
	clitest.Run(t, env, "campaign", "create", "--kind", "coupon", "--units", "-1", "--title", "t", "--ends", "-1h", "--pay-within", "-3s").Want(t, 1,
		"invalid_request", "; --units must", "--ends must be after --starts", "--pay-within must be a duration such as 15m")
	clitest.Run(t, env, "campaign", "create", "--title", "t", "--kind", "coupon", "--codes", "5000", "--pattern", "X", "--ends", "+1h").Want(t, 1, "--pattern must have at least ")
	clitest.Run(t, env, "campaign", "create", "--title", "One", "--units", "1", "--ends", "+1h").Want(t, 0, "  1 unit  ")
	clitest.Run(t, env, "campaign", "create", "--title", "Many", "--units", "5000", "--ends", "+1h").Want(t, 0, "  5,000 units  5,000  ")
	clitest.Run(t, env, "claim", "list", "--campaign", "a b").Want(t, 1, "--campaign must be 1-64 characters")
	clitest.Run(t, env, "campaign", "announce", "phones").Want(t, 1, "--merchant is required")
	clitest.Run(t, env, "account", "deposit", "a b", "--amount", "1CNY", "--ref", "x").Want(t, 1, "invalid_request: USER must be")
}

func TestCampaignUsage(t *testing.T) {
	env := []string{"DIBS_ADMIN_KEY=" + clitest.Key}
	create := []string{"campaign", "create", "--title", "x"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(create, "--units", "1"), "--ends is required; for example: dibs campaign create"},
		{append(create, "--ends", "+1h"), "give one stock"},
		{append(create, "--ends", "+1h", "--units", "1", "--codes", "2"), "give one stock"},
		{append(create, "--ends", "+1h", "--units", "1", "--price", "2"), `--price must name its currency, such as 12.50CNY, not "2"`},
		{append(create, "--ends", "+1h", "--units", "1", "--kind", "coupn"), `--kind must be sale or coupon, not "coupn"; did you mean coupon?`},
		{append(create, "--ends", "+1h", "--units", "1", "--room", "fiffo"), `--room must be fifo, shuffle or lottery, not "fiffo"; did you mean fifo?`},
		{[]string{"events", "deliveries", "x", "--status", "deliverd"}, `--status must be pending, delivered or failed, not "deliverd"; did you mean delivered?`},
		{[]string{"rehearse", "--kind", "redpacked"}, `--kind must be sale, coupon or redpacket, not "redpacked"; did you mean redpacket?`},
		{[]string{"rehearse", "--scenario", "oneuser"}, "did you mean one-user?"},
		{[]string{"rehearse", "--through", "htp"}, "did you mean http?"},
		{[]string{"plan", "--shape", "fallin"}, "did you mean falling?"},
		{[]string{"plan", "--durability", "durabel"}, "did you mean durable?"},
		{[]string{"lab", "--preset", "packet"}, "did you mean packets?"},
		{[]string{"verify", "--repair", "--older-ledger", "contnue"}, "did you mean continue?"},
		{[]string{"campaign", "crate", "--id", "x"}, `there is no command "campaign crate"; did you mean create?`},
		{[]string{"claim", "list", "--status", "paid"}, "--status must be pending, confirmed, released or refunded"},
		{append(create, "--ends", "+1h", "--units", "1", "--pattern", "X"), "--pattern belongs to --codes"},
		{[]string{"campaign", "stock", "x"}, "give --delta or --items"},
		{[]string{"campaign", "publish"}, "ID is missing; for example: dibs campaign publish phone-noon"},
		{[]string{"campaign", "pause", ""}, "ID is empty; for example: dibs campaign pause phone-noon"},
		{[]string{"claim", "comment", "", "x"}, "ID is empty; for example: dibs claim comment 7K3M9QX2B4TD6RWA"},
		{[]string{"approval", "approve", ""}, "ID is empty; for example: dibs approval approve ap-7K3M9QX2B4TD"},
		{[]string{"lottery", "show", ""}, "ID is empty; for example: dibs lottery show phone-noon"},
		{[]string{"user", "erasures", ""}, "ID is empty"},
		{[]string{"claim", "list", "--user", "", "--csv"}, "--user is empty"},
		{[]string{"session", "end"}, "ID is missing; for example: dibs session end s-7K3M9QX2B4TD"},
		{[]string{"token", "allow"}, "dibs token allow r-7K3M9QX2B4TD"},
		{[]string{"audience", "show"}, "dibs audience show vip"},
		{[]string{"events", "endpoints", "show"}, "dibs events endpoints show wh-7K3M9QX2B4TD"},
		{[]string{"events", "deliveries"}, "dibs events deliveries wh-7K3M9QX2B4TD"},
		{[]string{"campaign", "apply", "a.yaml"}, "for example: dibs campaign apply -f campaigns.yaml"},
		{[]string{"campaign", "list", "--server-ca", "/nope"}, "server_ca (flag --server-ca): cannot be read"},
		{[]string{"follower", "list", "--merchant", "shop", "--limit", "0"}, "--limit must be at least 1"},
		{[]string{"lottery", "verify", "x", "--entries", "none.txt", "--user", "u"}, "--user and --nonce belong together"},
		{[]string{"campaign", "list", "--output", "xml"}, "must be table or json"},
		{[]string{"campaign", "list", "--url", "localhost"}, "url (flag --url): must be an address"},
		{[]string{"campaign", "watch", "--every", "1ms"}, "--every must be"},
		{[]string{"campaign", "pubilsh", "x"}, `there is no command "campaign pubilsh"; did you mean publish?`},
		{[]string{"campaign", "apply"}, "name a file"},
		{[]string{"campaign", "apply", "-f", "not-there.yaml"}, "no such file"},
	} {
		r := clitest.Run(t, env, c.args...)
		r.Want(t, 2, c.want)
		if strings.Count(strings.TrimSpace(r.Err), "\n") > 1 {
			t.Errorf("%v: more than a line:\n%s", c.args, r.Err)
		}
	}
	clitest.Run(t, env, "campaign", "list", "--url", "http://none.invalid").Want(t, 1, "the name of the server at http://none.invalid cannot be looked up: correct --url")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := strings.Replace(plain.URL, "http:", "https:", 1)
	clitest.Run(t, env, "campaign", "list", "--url", secure).Want(t, 1, "dibs: the server at "+secure+" speaks plain HTTP: write http:// in --url\n")
	clitest.Run(t, nil, "campaign", "list").Want(t, 2, "campaign list cannot run with these settings:", "admin_key (not set: --admin-key or DIBS_ADMIN_KEY)", "dibs dev prints the key of its server")
	clitest.Run(t, env, "campaign", "list", "--url", "http://127.0.0.1:1").Want(t, 1, "dibs: no server answers at http://127.0.0.1:1")
	clitest.Run(t, clitest.Served(t), "campaign", "list", "--admin-key", "0123456789abcdefgh").Want(t, 1, "does not take this admin key")
}
