package gateway_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/tokens"
)

// Changes of a campaign are told to those who follow it, and to nobody else.
func TestCampaignNews(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := start(t, gateway.Config{StockEvery: time.Millisecond})
	var sale string
	var p *peer
	var first message
	// On a slow machine a sale may start before it is subscribed to; then a later one is tried.
	for soon := 5 * time.Second; first["phase"] != "upcoming" && soon < time.Minute; soon *= 2 {
		sale = r.saleAt(shared, 2, time.Now().Add(soon), time.Now().Add(time.Hour))
		p = r.join("42")
		p.send(message{"type": "subscribe", "id": "s", "campaign_id": sale})
		if m := p.next("subscribed"); m["id"] != "s" {
			t.Errorf("%v", m)
		}
		first = p.next("campaign")
	}
	other := r.join("43")
	if first["event"] != "state" || first["phase"] != "upcoming" || first["remaining"] != 2.0 || first["title"] != "Sale "+sale {
		t.Errorf("%v", first)
	}
	expect := func(phase dibs.Phase, event string) message {
		t.Helper()
		m := p.until(phase)
		if m["event"] != event {
			t.Errorf("want %s, have %v", event, m)
		}
		return m
	}
	expect(dibs.PhaseOpen, "opened")
	_, err := shared.Service.Campaigns.Pause(ctx, sale)
	must(t, err)
	expect(dibs.PhasePaused, "paused")
	_, err = shared.Service.Campaigns.Resume(ctx, sale)
	must(t, err)
	expect(dibs.PhaseOpen, "resumed")
	for _, user := range []string{"1", "2"} {
		_, err := shared.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: sale, UserID: user})
		must(t, err)
	}
	if m := expect(dibs.PhaseSoldOut, "sold_out"); m["remaining"] != 0.0 {
		t.Errorf("%v", m)
	}
	_, err = shared.Service.Campaigns.ChangeStock(ctx, sale, dibs.StockChange{Delta: 3}, "more")
	must(t, err)
	if m := expect(dibs.PhaseOpen, "reopened"); m["remaining"] != 3.0 {
		t.Errorf("%v", m)
	}
	title := "Renamed"
	_, err = shared.Service.Campaigns.Patch(ctx, sale, dibs.CampaignPatch{Title: &title})
	must(t, err)
	for m := p.next("campaign"); m["title"] != title; m = p.next("campaign") {
		if m["event"] != "stock" && m["event"] != "changed" {
			t.Errorf("%v", m)
		}
	}
	_, err = shared.Service.Campaigns.End(ctx, sale)
	must(t, err)
	last := expect(dibs.PhaseEnded, "ended")
	other.send(message{"type": "subscribe", "campaign_id": sale, "after": last["mark"]})
	other.next("subscribed")
	other.send(message{"type": "ping", "id": "nothing-before"})
	other.next("pong")
	p.send(message{"type": "unsubscribe", "campaign_id": sale})
	p.next("unsubscribed")
	p.send(message{"type": "subscribe", "campaign_id": "none"})
	if m := p.next("error"); m["reason"] != "not_found" || m["campaign_id"] != "none" {
		t.Errorf("%v", m)
	}
}

// Changes made through one node are told by the other one, and a ticket of one
// opens a connection to the other, once for both.
func TestNodes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(redis.Kill)
	ledger := "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")
	var rigs [2]*rig
	var nodes [2]*node.Node
	for i := range nodes {
		nodes[i], err = node.Open(ctx, node.Config{Engine: redis.URL(), Ledger: ledger, Migrate: true})
		must(t, err)
		t.Cleanup(func() { must(t, nodes[i].Close(ctx)) })
		rigs[i] = startOn(t, nodes[i], gateway.Config{Tickets: nodes[i].Engine.Abilities().Store})
	}
	here, there := nodes[0].Service, rigs[1]
	sale := rigs[0].saleAt(nodes[0], 1, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	p := there.join("43")
	await(t, "the other node has the campaign", func() bool {
		_, err := nodes[1].Service.Live.Snapshots.Get(ctx, sale)
		return err == nil
	})
	p.send(message{"type": "subscribe", "campaign_id": sale})
	p.next("subscribed")
	p.until(dibs.PhaseOpen)
	for _, step := range []struct {
		do    func() error
		phase dibs.Phase
	}{
		{func() error { _, err := here.Campaigns.Pause(ctx, sale); return err }, dibs.PhasePaused},
		{func() error { _, err := here.Campaigns.Resume(ctx, sale); return err }, dibs.PhaseOpen},
		{func() error {
			_, err := here.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: sale, UserID: "42"})
			return err
		}, dibs.PhaseSoldOut},
		{func() error {
			_, err := here.Campaigns.ChangeStock(ctx, sale, dibs.StockChange{Delta: 1}, "more")
			return err
		}, dibs.PhaseOpen},
		{func() error { _, err := here.Campaigns.End(ctx, sale); return err }, dibs.PhaseEnded},
	} {
		begun := time.Now()
		must(t, step.do())
		p.until(step.phase)
		t.Logf("%s was heard after %v", step.phase, time.Since(begun).Round(time.Millisecond))
	}
	ticket, _, err := rigs[0].hub.Ticket(ctx, tokens.Token{User: "42"})
	must(t, err)
	ws, _ := there.try("/v1/ws?ticket=" + ticket)
	if ws == nil {
		t.Fatal("a ticket of another node is not taken")
	}
	if w := (&peer{rig: there, ws: ws}).next("welcome"); w["user_id"] != "42" {
		t.Errorf("%v", w)
	}
	if ws, resp := rigs[0].try("/v1/ws?ticket=" + ticket); ws != nil || resp.StatusCode != 401 {
		t.Errorf("a ticket was taken by both nodes: %v", resp.Status)
	}
}

// A follower who is connected to one node hears what another one announces, and
// nobody else does.
func TestAnnouncementOnAnotherNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(redis.Kill)
	ledger := "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")
	var rigs [2]*rig
	var nodes [2]*node.Node
	for i := range nodes {
		nodes[i], err = node.Open(ctx, node.Config{Engine: redis.URL(), Ledger: ledger, Migrate: true})
		must(t, err)
		t.Cleanup(func() { must(t, nodes[i].Close(ctx)) })
		rigs[i] = startOn(t, nodes[i], gateway.Config{})
		stop := nodes[i].Service.Announcements.Watch(rigs[i].hub.TellPush)
		t.Cleanup(stop)
	}
	sale := rigs[0].saleAt(nodes[0], 1, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	for _, user := range []string{"41", "42"} {
		must(t, nodes[0].Audiences.Follow(ctx, "shop", gate.Follower{User: user}, true))
	}
	here, there, stranger := rigs[0].join("41"), rigs[1].join("42"), rigs[1].join("7")
	_, err = nodes[0].Service.Announcements.Create(ctx, sale, announce.AnnouncementSpec{ID: "noon", Merchant: "shop", Message: "at noon"})
	must(t, err)
	for user, p := range map[string]*peer{"41": here, "42": there} {
		m := p.next("announcement")
		if m["delivery_id"] != "noon:"+user || m["campaign_id"] != sale || m["message"] != "at noon" || m["title"] != "Sale "+sale {
			t.Errorf("%v", m)
		}
	}
	stranger.send(message{"type": "ping", "id": "1"})
	stranger.next("pong")
}
