package redisengine

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// A load that a change of the server cuts in two is not opened: this run may
// hold a part of it only.
func TestLoadAcrossAChangeOfTheServer(t *testing.T) {
	b := newBench(t, 10, nil)
	begin := func(epoch uint16) *opening {
		o := &opening{l: b.l, ledger: &b.e.ledger, token: b.e.p.token(), load: &dibs.ShardLoad{Epoch: epoch, StockLeft: 10}, def: format.Define(openCampaign(10)), left: 10}
		o.sum, o.buckets = newOpenLoad(o.load), minBuckets
		if err := o.shut(t.Context()); err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := begin(2)
	b.set("server", "another")
	if err := o.send(t.Context(), b.l.keys.Holdings, "hash", []string{"a", "b"}); err == nil {
		t.Error("a portion is loaded on another run of the server")
	}
	if err := o.begin(t.Context(), dibs.Cursor{Epoch: 1, Seq: 1}); err == nil {
		t.Error("a load is opened on another run of the server")
	}
	if _, err := b.e.Stats(t.Context(), b.shard); err == nil {
		t.Error("the shard is open")
	}
	o = begin(3)
	b.l.loading.Add(1)
	if err := b.e.Retire(t.Context(), b.shard); !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("a shard that is being loaded is retired with %v", err)
	}
	b.l.loading.Add(-1)
	if err := o.begin(t.Context(), dibs.Cursor{Epoch: 1, Seq: 1}); err != nil {
		t.Errorf("a whole load is opened with %v", err)
	}
}
