package gateway_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// What happens through one node is told by the other one, and a ticket of one
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
		rigs[i] = startOn(t, nodes[i], gateway.Config{Tickets: nodes[i].Engine.(gateway.Tickets)})
	}
	here, there := nodes[0].Service, rigs[1]
	sale := rigs[0].saleAt(nodes[0], 1, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	p := there.join("43")
	await(t, "the other node has the campaign", func() bool {
		_, err := nodes[1].Service.Live.Situations.Get(ctx, sale)
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
	ticket, _, err := rigs[0].hub.Ticket(ctx, "42", time.Time{})
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
