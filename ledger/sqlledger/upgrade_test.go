package sqlledger_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

// TestUpgradeOrders: a ledger of before references, comments and ends keeps what it has.
// Its products are on sale, its campaigns that were ended have a time for it, and the
// others none.
func TestUpgradeOrders(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
		campaign := func(id string, state dibs.State) *dibs.Campaign {
			return &dibs.Campaign{
				ID: id, Kind: dibs.Sale, Title: id, StartsAt: at, EndsAt: at.Add(time.Hour), State: state, Stock: dibs.Stock{Kind: dibs.Units, Total: 5},
				LimitPerUser: 1, LatePayment: dibs.Reclaim, Shards: 1, Version: 1, CreatedAt: at, UpdatedAt: at.Add(time.Minute),
			}
		}
		for _, c := range []*dibs.Campaign{campaign("ended", dibs.EndedState), campaign("live", dibs.Published)} {
			if err := l.InsertCampaign(ctx, c, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.InsertProduct(ctx, &dibs.Product{ID: "p", Name: "p", Stock: 5, Version: 1, CreatedAt: at, UpdatedAt: at}); err != nil {
			t.Fatal(err)
		}
		closeAll(t, l)
		raw(migrationsDown(t, url, 20)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		checkUpgraded(t, ctx, l, at.Add(time.Minute))
	})
}

// TestUpgradePackets: a red packet of before several shards is credited on where it was.
func TestUpgradePackets(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
		total := dibs.Money{Amount: 7, Currency: "CNY"}
		packet := dibs.RedPacketSpec{Total: total, Count: 3}.WithDefaults()
		c := &dibs.Campaign{
			ID: "rain", Kind: dibs.RedPacket, Title: "rain", StartsAt: at, EndsAt: at.Add(time.Hour), State: dibs.Draft, Stock: dibs.Stock{Kind: dibs.Shares, Total: 3},
			Packet: &packet, LimitPerUser: 1, LatePayment: dibs.Reclaim, Shards: 1, Version: 1, CreatedAt: at, UpdatedAt: at,
		}
		err := l.InsertCampaign(ctx, c, []string{"1:1", "2:2", "3:4"})
		if c.State = dibs.Published; err == nil {
			err = l.FundCampaign(ctx, c)
		}
		shard := dibs.ShardID{Campaign: c.Number}
		if err == nil {
			_, err = l.LoadShard(ctx, c, shard, live.Opener{})
		}
		if err != nil {
			t.Fatal(err)
		}
		b := live.Batch{Campaign: c, Shard: shard, Fence: 1, To: dibs.Cursor{Epoch: 1, Seq: 3}, Entries: []dibs.Entry{
			{Cursor: dibs.Cursor{Epoch: 1, Seq: 1}, Kind: dibs.EntryOpen},
			{Cursor: dibs.Cursor{Epoch: 1, Seq: 2}, Kind: dibs.EntryGrant, UserID: "u", Quantity: 1, Items: []uint32{0}},
			{Cursor: dibs.Cursor{Epoch: 1, Seq: 3}, Kind: dibs.EntryGrant, UserID: "v", Quantity: 1, Items: []uint32{2}},
		}}
		if err := l.Settle(ctx, []live.Batch{b}); err != nil {
			t.Fatal(err)
		}
		credit := func(most, want int) {
			t.Helper()
			if n, err := l.CreditClaims(ctx, c, at, most); n != want || err != nil {
				t.Errorf("%d claims are credited, want %d: %v", n, want, err)
			}
		}
		credit(1, 1)
		closeAll(t, l)
		raw(migrationsDown(t, url, 22)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		credit(10, 1)
		credit(10, 0)
		if a, err := l.Audit(ctx, c); err != nil || len(a.Packet.Bad) > 0 || a.Packet.Credited != 5 || a.Packet.Waiting != 0 {
			t.Errorf("the money after the upgrade: %+v, %v", a.Packet, err)
		}
	})
}

// TestUpgradeSharing: the campaigns of a ledger of before limits per product have none,
// and one that has it can be made beside them.
func TestUpgradeSharing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
		campaign := func(id string, limit int64) *dibs.Campaign {
			return &dibs.Campaign{
				ID: id, Kind: dibs.Sale, Title: id, ProductID: "p", StartsAt: at, EndsAt: at.Add(time.Hour), State: dibs.Published,
				Stock: dibs.Stock{Kind: dibs.Units, Total: 5}, LimitPerUser: 1, LimitPerProduct: limit, LatePayment: dibs.Reclaim, Shards: 1,
				Version: 1, CreatedAt: at, UpdatedAt: at,
			}
		}
		if err := l.InsertCampaign(ctx, campaign("old", 0), nil); err != nil {
			t.Fatal(err)
		}
		closeAll(t, l)
		raw(migrationsDown(t, url, 23)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		if err := l.InsertCampaign(ctx, campaign("new", 2), nil); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]int64{"old": 0, "new": 2} {
			if c, err := l.Campaign(ctx, id); err != nil || c.LimitPerProduct != want {
				t.Errorf("the limit of %s is %d, want %d: %v", id, c.LimitPerProduct, want, err)
			}
		}
	})
}

func checkUpgraded(t *testing.T, ctx context.Context, l *sqlledger.Ledger, ended time.Time) {
	t.Helper()
	if p, err := l.Product(ctx, "p"); err != nil || p.Status != dibs.OnSale {
		t.Errorf("the product: %+v, %v", p, err)
	}
	for id, want := range map[string]time.Time{"ended": ended, "live": {}} {
		if c, err := l.Campaign(ctx, id); err != nil || !c.EndedAt.Equal(want) {
			t.Errorf("%s ended at %v, want %v: %v", id, c.EndedAt, want, err)
		}
	}
	placed, err := l.Order(ctx, orders.Order{ProductID: "p", UserID: "u", Quantity: 1, Key: 1, At: ended, Reference: "r"})
	if err != nil || placed.Claim == nil {
		t.Fatalf("%+v, %v", placed, err)
	}
	where := placed.Claim.Position
	if found, err := l.References(ctx, []dibs.Position{where}); err != nil || found[where] != "r" {
		t.Errorf("%v, %v", found, err)
	}
}

// TestUpgradeShards: campaigns of before the number of shards could rise have those that
// they began with, and can have more.
func TestUpgradeShards(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx, at := t.Context(), time.UnixMilli(1_700_000_000_000).UTC()
		l := openAt(t, url)
		old := &dibs.Campaign{
			ID: "old", Kind: dibs.Sale, Title: "old", StartsAt: at, EndsAt: at.Add(time.Hour), State: dibs.Published,
			Stock: dibs.Stock{Kind: dibs.Units, Total: 5}, LimitPerUser: 1, LatePayment: dibs.Reclaim, Shards: 2, Version: 1, CreatedAt: at, UpdatedAt: at,
		}
		if err := l.InsertCampaign(ctx, old, nil); err != nil {
			t.Fatal(err)
		}
		closeAll(t, l)
		raw(migrationsDown(t, url, 28)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		c, err := l.Campaign(ctx, "old")
		if err != nil || c.Shards != 2 || c.EarlierShards != nil {
			t.Fatalf("%d shards, and before %v: %v", c.Shards, c.EarlierShards, err)
		}
		c.EarlierShards, c.Shards = []int{2}, 3
		if err := l.UpdateCampaign(ctx, c); err != nil {
			t.Fatal(err)
		}
		if c, err = l.Campaign(ctx, "old"); err != nil || c.Shards != 3 || !slices.Equal(c.EarlierShards, []int{2}) {
			t.Errorf("%d shards, and before %v: %v", c.Shards, c.EarlierShards, err)
		}
		for shard, want := range []int64{3, 2, 0} {
			if got, err := l.Totals(ctx, dibs.ShardID{Campaign: c.Number, Shard: uint8(shard)}); err != nil || got.Stock != want {
				t.Errorf("shard %d has a stock of %d, want %d: %v", shard, got.Stock, want, err)
			}
		}
	})
}
