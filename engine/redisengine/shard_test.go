package redisengine_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// promoted starts a server that has followed another one until now, and is a master
// itself.
func promoted(t *testing.T, of *servers.Redis) *servers.Redis {
	t.Helper()
	r := startRedis(t, servers.RedisAlways...)
	host, port, _ := strings.Cut(of.Addr(), ":")
	_, err := r.Do(t.Context(), "REPLICAOF", host, port)
	must(t, err)
	(&fleet{T: t}).until("the replica follows", func() bool {
		info, err := r.Info(t.Context(), "replication")
		return err == nil && info["master_link_status"] == "up"
	})
	_, err = r.Do(t.Context(), "REPLICAOF", "NO", "ONE")
	must(t, err)
	return r
}

// A master that was left behind is found although nobody claims anything there: its
// node is not ready, and grants nothing.
func TestALeftBehindMasterIsFound(t *testing.T) {
	f := newFleet(t, 1)
	f.publish("phone", 10)
	f.wants(f.nodes[0], dibs.Granted, "phone", "early", "k")
	f.verify()
	f.redis = promoted(t, f.redis)
	second := f.join()
	f.wants(second, dibs.Granted, "phone", "late", "k")
	left := f.nodes[0]
	f.until("the node that was left behind says so", func() bool { return !left.Health(t.Context()).Ready })
	_, err := left.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "lost", Key: "k"})
	if err == nil {
		t.Error("the node that was left behind answers a claim")
	}
	if said := left.Health(t.Context()).Dependencies["campaigns"].Error; !strings.Contains(said, "another server") {
		t.Errorf("the node that was left behind says %q", said)
	}
	f.wants(second, dibs.Granted, "phone", "later", "k")
	report, err := second.Audit.Verify(t.Context())
	if err != nil || !report.OK {
		t.Errorf("the other node sees %+v, %v", report, err)
	}
}
