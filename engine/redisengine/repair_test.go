package redisengine_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
)

// redisDo sends a command behind the engine's back.
func redisDo(t *testing.T, f *fleet, command ...string) {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{f.redis.Addr()}, DisableCache: true})
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), c.B().Arbitrary(command...).Build()).Error())
}

// broken lists the promises that a node's report says are broken.
func (f *fleet) broken(n *member) (list []string) {
	f.Helper()
	report, err := n.Audit.Verify(f.Context())
	must(f.T, err)
	for _, c := range report.Campaigns {
		for _, p := range c.Promises {
			if !p.Held {
				list = append(list, p.Promise+": "+p.Detail)
			}
		}
	}
	return list
}

// Numbers that somebody changed in Redis are found, and the shard is loaded
// anew, through a node that need not be the one that settles it.
func TestNodesRepairRedis(t *testing.T) {
	for name, damage := range map[string][]string{
		"units that vanished":    {"HINCRBY", "dibs:{1:0}:meta", "left", "-7"},
		"units out of nowhere":   {"HINCRBY", "dibs:{1:0}:meta", "left", "7"},
		"grants that were not":   {"HINCRBY", "dibs:{1:0}:meta", "granted", "3"},
		"holdings that are gone": {"DEL", "dibs:{1:0}:holdings"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.publish("phone", 60)
			if n := f.rush("phone", 40); n != 40 {
				t.Fatalf("%d were granted", n)
			}
			f.verify()
			redisDo(t, f, damage...)
			if len(f.broken(f.nodes[0])) == 0 {
				t.Fatal("nobody sees the damage")
			}
			r, err := f.nodes[1].Audit.Repair(t.Context(), audit.RepairRequest{})
			must(t, err)
			if !r.OK || len(r.Steps) != 1 || !strings.Contains(r.Steps[0].What, "loaded anew from the ledger: shard 1/0") {
				t.Fatalf("the repair: %+v", r)
			}
			f.until("both nodes in the new epoch", func() bool {
				for _, n := range f.nodes {
					if v, err := n.Stats(t.Context(), "phone"); err != nil || v.Remaining != 20 {
						return false
					}
				}
				return true
			})
			f.verify()
			if n := f.rush("phone", 100); n != 60 {
				t.Errorf("%d have a yes of 60", n)
			}
			f.verify()
		})
	}
}

// poisonGrant is a grant of one item, as lua/claim.lua writes it.
func poisonGrant(user string, item uint32) (payload, claims string) {
	b := []byte{2, byte(dibs.EntryGrant)}
	ms := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli()))
	b = append(b, ms[2:]...)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = append(b, "by hand "...)
	b = append(b, 0, 0, 0, 0, 0, 0, 1, 0)
	payload = string(binary.BigEndian.AppendUint32(b, item))
	b = append([]byte{0xdc, 0, 1, 0xa0 | byte(1+len(user)+1+8), byte(len(user))}, user...)
	return payload, string(binary.BigEndian.AppendUint64(append(b, 1), 77))
}

// A grant that somebody wrote into the stream, of an item that does not exist,
// is set aside; what follows it is settled, and it counts after Redis lost
// everything.
func TestNodesSetPoisonAside(t *testing.T) {
	f := newFleet(t, 2)
	now := time.Now()
	spec := dibs.CampaignSpec{ID: "seats", Kind: dibs.Sale, Title: "seats", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour)}
	for i := range 10 {
		spec.Stock.Items = append(spec.Stock.Items, fmt.Sprint("seat-", i))
	}
	_, err := f.nodes[0].Campaigns.Create(t.Context(), spec)
	must(t, err)
	_, err = f.nodes[0].Campaigns.Publish(t.Context(), "seats")
	must(t, err)
	last := f.wants(f.nodes[0], dibs.Granted, "seats", "u0", "k").Claim.Position.Cursor
	f.verify()

	meta := "dibs:{1:0}:meta"
	payload, claims := poisonGrant("ghost", 99)
	redisDo(t, f, "XADD", "dibs:{1:0}:journal", fmt.Sprintf("%d-%d", last.Epoch, last.Seq+1), "p", payload, "c", claims)
	for field, by := range map[string]string{"seq": "1", "left": "-1", "granted": "1"} {
		redisDo(t, f, "HINCRBY", meta, field, by)
	}
	for i := range 4 {
		f.wants(f.nodes[i%2], dibs.Granted, "seats", fmt.Sprint("after-", i), "k")
	}
	for i, n := range f.nodes {
		list := f.broken(n)
		if len(list) != 1 || !strings.Contains(list[0], "in quarantine: 1") || !strings.Contains(list[0], "to user ghost") {
			t.Errorf("node %d says %q", i, list)
		}
	}
	flush(t, f.redis.Addr())
	f.until("a rebuild", func() bool {
		res, err := f.nodes[1].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "seats", UserID: "after-0", Key: "k"})
		return err == nil && res.Replayed
	})
	f.wants(f.nodes[0], dibs.LimitReached, "seats", "ghost", "another")
	for i := range 4 {
		f.wants(f.nodes[i%2], dibs.Granted, "seats", fmt.Sprint("late-", i), "k")
	}
	f.wants(f.nodes[0], dibs.SoldOut, "seats", "too-late", "k")
	for i, n := range f.nodes {
		if list := f.broken(n); len(list) != 1 || !strings.Contains(list[0], "in quarantine: 1") {
			t.Errorf("node %d says %q", i, list)
		}
	}
}
