package redisengine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/node"
)

// Redis does not forget a campaign that goes on by its own clock, whoever says
// that it is over.
func TestRedisClockDecidesWhatIsOver(t *testing.T) {
	e := openEngine(t, redisengine.Config{URL: startRedis(t).URL()})
	for i, c := range []struct {
		ends  time.Duration
		state dibs.State
		want  error
	}{
		{time.Hour, dibs.Published, dibs.ErrInvalidState},
		{time.Hour, dibs.PausedState, dibs.ErrInvalidState},
		{-10 * time.Second, dibs.Published, dibs.ErrInvalidState},
		{-2 * time.Minute, dibs.Published, nil},
		{time.Hour, dibs.EndedState, nil},
	} {
		shard := dibs.ShardID{Campaign: uint32(i + 1)}
		sale := bigSale(shard.Campaign, 5)
		sale.EndsAt, sale.State = time.Now().Add(c.ends), c.state
		must(t, e.Open(t.Context(), sale, shard, &dibs.ShardLoad{Epoch: 1, StockLeft: 5}))
		err := e.Retire(t.Context(), shard)
		_, open := e.Stats(t.Context(), shard)
		if !errors.Is(err, c.want) || (open == nil) != (c.want != nil) {
			t.Errorf("%s, with %s to go: retired with %v, then %v", c.state, c.ends, err, open)
		}
	}
	// A halted shard serves nobody: it is loaded again when it is needed.
	halted := dibs.ShardID{Campaign: 99}
	sale := bigSale(halted.Campaign, 5)
	sale.EndsAt = time.Now().Add(time.Hour)
	must(t, e.Open(t.Context(), sale, halted, &dibs.ShardLoad{Epoch: 1, StockLeft: 5}))
	must(t, e.Halt(t.Context(), halted))
	must(t, e.Retire(t.Context(), halted))
}

// A node whose clock is an hour ahead takes a campaign for over, and has the
// fleet lease: the campaign goes on, on that node and on the others.
func TestANodesClockIsAhead(t *testing.T) {
	f := newFleet(t, 0)
	var ahead atomic.Int64
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	wrong := f.join()
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond}
	right := f.join()
	f.publish("phone", 1000)
	f.wants(right, dibs.Granted, "phone", "first", "k")
	ahead.Store(int64(66 * time.Minute))
	before := f.calls()["xlen"]
	for n := 0; f.calls()["xlen"] < before+5; n++ {
		for i, nd := range []*member{wrong, right} {
			f.wants(nd, dibs.Granted, "phone", fmt.Sprint("u", i, "-", n%400), "k")
		}
	}
	st, err := right.engine.Stats(t.Context(), dibs.ShardID{Campaign: 1})
	if err != nil || st.Head.Epoch != 1 {
		t.Errorf("the campaign was loaded again: %+v, %v", st, err)
	}
}

// A node whose clock is an hour ahead sends no money home: the shares of a red
// packet that goes on by Redis' clock are granted on.
func TestANodesClockEndsNoRedPacket(t *testing.T) {
	f := newFleet(t, 0)
	var ahead atomic.Int64
	f.tune = node.ServiceConfig{
		CreditEvery: 5 * time.Millisecond,
		Split:       func(p dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(p, nil) },
	}
	right := f.join()
	f.tune.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	f.join()
	spec := dibs.CampaignSpec{
		ID: "rain", Kind: dibs.RedPacket, Title: "rain", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 10_000, Currency: "CNY"}, Count: 100}},
	}
	_, err := right.Campaigns.Create(f.Context(), spec)
	must(t, err)
	_, err = right.Campaigns.Publish(f.Context(), "rain")
	must(t, err)
	f.wants(right, dibs.Granted, "rain", "first", "k")
	ahead.Store(int64(66 * time.Minute))
	for i := range 60 {
		f.wants(right, dibs.Granted, "rain", fmt.Sprint("u", i), "k")
		pause(f.Context(), 20*time.Millisecond)
	}
}
