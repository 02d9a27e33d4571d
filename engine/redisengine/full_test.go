package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/node"
)

// fill has users claim until Redis is full, and returns those who were granted
// something.
func (f *fleet) fill(n *member, id string) (granted []string) {
	f.Helper()
	for i, full := 0, 0; full < 20; i++ {
		user := fmt.Sprint("filler-", i)
		res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: id, UserID: user, Key: "press"})
		switch {
		case err == nil && res.Outcome == dibs.Granted:
			granted = append(granted, user)
		case err != nil && strings.Contains(err.Error(), "OOM"):
			full++
		default:
			f.Fatalf("the claim of %s: %v, %v", user, res.Outcome, err)
		}
		if i > 200_000 {
			f.Fatal("Redis is not full after 200,000 claims")
		}
	}
	return granted
}

// setRoom bounds what Redis may use, in bytes beyond what it uses now.
func (f *fleet) setRoom(bytes int) {
	f.Helper()
	info, err := f.redis.Info(f.Context(), "memory")
	must(f, err)
	used, err := strconv.Atoi(info["used_memory"])
	must(f, err)
	redisDo(f.T, f, "CONFIG", "SET", "maxmemory", strconv.Itoa(used+bytes))
}

// die ends a node that can say goodbye to nobody: its leases stay.
func (f *fleet) die(n *member, wire *cable) {
	f.Helper()
	wire.sever()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := n.Close(gone); err == nil {
		f.Error("a node that is cut off has settled what it granted")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f.Logf("the dead node's engine closes with: %v", n.engine.Close(ctx))
	must(f, n.ledger.Close())
	n.Service = nil
}

// settledAll waits until the ledger has so many grants of the first campaign.
func (f *fleet) settledAll(n *member, want int) {
	f.Helper()
	f.until(fmt.Sprintf("%d grants in the ledger", want), func() bool {
		totals, err := n.ledger.Totals(f.Context(), dibs.ShardID{Campaign: 1})
		return err == nil && totals.Confirmed == int64(want)
	})
}

// Redis is full when the node dies that settles: the next one settles what was
// granted and trims the journal, and with the memory that this gives back claims
// go on, without anybody's help. It makes no difference whether that node was there
// before, or joins a server that is full.
func TestFullRedisRecovers(t *testing.T) {
	for name, before := range map[string]bool{"by a node that joins": false, "by a node that runs": true} {
		t.Run(name, func(t *testing.T) { fullRedisRecovers(t, before) })
	}
}

func fullRedisRecovers(t *testing.T, before bool) {
	f, wire := newFleet(t, 0), &cable{}
	f.tune = node.ServiceConfig{JournalKeep: 100 * time.Millisecond, TidyEvery: 100 * time.Millisecond}
	f.engine.Dial = wire.dial
	dead := f.join()
	f.engine.Dial = nil
	f.publish("phone", 1_000_000)
	// The one that is there first has the shard's lease.
	f.wants(dead, dibs.Granted, "phone", "first", "press")
	f.settledAll(dead, 1)
	var n *member
	if before {
		n = f.join()
	}
	release := f.holdLedger()
	f.setRoom(1_500_000)
	granted := f.fill(dead, "phone")
	f.die(dead, wire)
	release()
	// The memory of its connections is free now: Redis is as full as before.
	f.setRoom(-100_000)

	if !before {
		n = f.join()
	}
	f.settledAll(n, 1+len(granted))
	f.until("a trimmed journal", func() bool {
		m, err := f.redis.Do(t.Context(), "XLEN", "dibs:{1:0}:journal")
		must(t, err)
		left, err := m.ToInt64()
		must(t, err)
		return left == 0
	})
	f.until("a grant", func() bool {
		res, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "after", Key: "press"})
		return err == nil && res.Outcome == dibs.Granted
	})
	if res := f.wants(n, dibs.Granted, "phone", granted[0], "press"); !res.Replayed {
		t.Errorf("the repeat is granted anew: %+v", res.Claim)
	}
	t.Logf("%d granted until Redis was full", len(granted))
	f.verify()
}

// A full Redis that was restarted is loaded from the ledger: the load takes the
// memory that the shard had before.
func TestFullRedisIsLoadedAgain(t *testing.T) {
	f := newFleet(t, 0)
	n := f.join()
	f.publish("phone", 1_000_000)
	f.setRoom(500_000)
	granted := f.fill(n, "phone")
	n.close(t)
	f.redis.Kill()
	must(t, f.redis.Start())
	redisDo(t, f, "CONFIG", "SET", "maxmemory", "1")

	n = f.join()
	f.settledAll(n, len(granted))
	for _, user := range []string{granted[0], granted[len(granted)-1]} {
		if res := f.wants(n, dibs.Granted, "phone", user, "press"); !res.Replayed {
			t.Errorf("the repeat of %s is granted anew: %+v", user, res.Claim)
		}
	}
	if _, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "after"}); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("a new claim on a full Redis is %v", err)
	}
	if _, err := n.Campaigns.End(t.Context(), "phone"); err != nil {
		t.Errorf("a campaign on a full Redis cannot be ended: %v", err)
	}
	f.wants(n, dibs.Ended, "phone", "late", "")
	f.verify()
}

// The steps that free a full Redis need no memory that is not there, and those that
// would make it fuller are refused with no effect.
func TestFullRedisTakesNoMore(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	c := connect(t, r)
	e := openEngine(t, redisengine.Config{URL: r.URL(), KeepRetired: time.Millisecond})
	must(t, e.Abilities().Bind(t.Context(), "ours"))
	shard := openSale(t, e, 100, nil)
	_, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "ann", Key: 1, Quantity: 1})
	must(t, err)
	full := c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", "1").Build()).Error()
	must(t, full)

	_, err = e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "bob", Key: 1, Quantity: 1})
	refusedFull(t, "a claim", err)
	refusedFull(t, "a restock", e.Adjust(t.Context(), dibs.Adjustment{Shard: shard, Epoch: 1, Ref: "more", Delta: 5}))
	other := dibs.ShardID{Campaign: 2}
	refusedFull(t, "the load of another campaign", e.Open(t.Context(), bigSale(2, 10), other, &dibs.ShardLoad{
		Epoch: 1, StockLeft: 10, Refs: []string{"a withdrawal"},
	}))

	must(t, e.Abilities().Bind(t.Context(), "ours"))
	for _, id := range []dibs.ShardID{{}, shard} {
		if held, err := e.Lease(t.Context(), id, dibs.Cursor{Epoch: 1, Seq: 1}); err != nil || !held {
			t.Fatalf("the lease of %s: %v, %v", id, held, err)
		}
	}
	for epoch := range uint16(3) {
		must(t, e.Open(t.Context(), bigSale(1, 100), shard, &dibs.ShardLoad{Epoch: epoch + 2, StockLeft: 100}))
		d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "ann", Key: 1, Quantity: 1})
		if err != nil || !d.Replayed {
			t.Fatalf("loaded on a full Redis, the repeat is %+v, %v", d, err)
		}
	}
	must(t, e.Halt(t.Context(), shard))
	_, err = e.Stats(t.Context(), shard)
	if !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("the stats of a shard that was halted on a full Redis: %v", err)
	}
	must(t, e.Open(t.Context(), bigSale(1, 100), shard, &dibs.ShardLoad{Epoch: 5, StockLeft: 100}))
	s, err := e.Stats(t.Context(), shard)
	must(t, err)
	must(t, e.TrimJournal(t.Context(), shard, s.Head, time.Now().Add(time.Hour)))
	retire(t, e, shard)
	until(t, "an empty list of shards", func() bool {
		// The other campaign's load was broken off: it is there until it is retired.
		list, err := e.JournalShards(t.Context())
		must(t, err)
		return len(list) == 1 && list[0] == other
	})
}

// refusedFull expects the refusal of a full Redis.
func refusedFull(t *testing.T, what string, err error) {
	t.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != dibs.Unavailable || e.Effect != dibs.EffectNone || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("%s on a full Redis: %v, want unavailable, effect none, since OOM", what, err)
	}
}
