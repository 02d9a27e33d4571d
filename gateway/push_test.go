package gateway_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/announce"

	"github.com/dibs-dev/dibs/gate"
)

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
