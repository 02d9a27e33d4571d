package memengine

import (
	"testing"

	"github.com/dibs-dev/dibs"
)

// A product is kept while one of its shards is open or being opened, and forgotten with
// the last one: then nothing is counted of it.
func TestProductsAreForgotten(t *testing.T) {
	e := &Engine{products: make(map[productKey]*product)}
	phone := &dibs.Campaign{Number: 1, ProductID: "phone", LimitPerProduct: 2}
	first, second := dibs.ShardID{Campaign: 1}, dibs.ShardID{Campaign: 2}
	p := e.enter(phone, first)
	if e.enter(phone, second) != p || e.enter(phone, dibs.ShardID{Campaign: 3, Shard: 1}) == p || e.enter(&dibs.Campaign{ProductID: "phone"}, first) != nil {
		t.Fatal("shards of one number share a product, and no others")
	}
	s := newShard(first, &dibs.ShardLoad{Epoch: 1}, p)
	p.count(s, []uint32{2})
	p.keep(s)
	counted, err := e.counts(t.Context(), first)
	if err != nil || !counted {
		t.Errorf("a retired shard counts: %v, %v", counted, err)
	}
	if _, missing := p.uncounted[2]; !missing {
		t.Error("a campaign that was not opened is counted")
	}
	e.leave(p)
	if e.enter(phone, first) != p {
		t.Error("a product is forgotten while a shard of it is open")
	}
	e.leave(p)
	e.leave(p)
	counted, err = e.counts(t.Context(), first)
	if err != nil || counted || e.enter(phone, first) == p {
		t.Errorf("a product is not forgotten with its last shard: %v, %v", counted, err)
	}
}
