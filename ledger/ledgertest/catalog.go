package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// testProducts stores, changes and lists products. A change raises the version
// and needs the version that was read; one of an older version is ErrConflict
// and changes nothing. Two admins who edit one product at the same time must
// not undo each other's change without notice.
func testProducts(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	p := &dibs.Product{
		Status: dibs.OnSale,
		ID:     "phone", Name: "Phone 手机", Thumbnail: "https://example.com/p.png", Price: &dibs.Money{Amount: 99900, Currency: "CNY"},
		Description: "a phone", Comment: "c", Stock: 100, StockLeft: 100, PayWithin: time.Minute, LatePayment: dibs.RefundDue, Version: 1, CreatedAt: start, UpdatedAt: start,
	}
	f.must(l.Campaigns.InsertProduct(ctx, p))
	wants(t, "insert a product twice", l.Campaigns.InsertProduct(ctx, p), dibs.ErrAlreadyExists)
	got := try(l.Campaigns.Product(ctx, "phone")).must(t)
	same(t, "price", *got.Price, *p.Price)
	got.Price = p.Price
	same(t, "the stored product", *got, *p)
	wants(t, "an unknown product", errOf(l.Campaigns.Product(ctx, "none")), dibs.ErrNotFound)

	// A copy of version 1, for a change that comes too late.
	stale := *p
	p.Name, p.Price, p.Stock, p.UpdatedAt = "Phone 2", nil, 120, start.Add(time.Second)
	p.PayWithin, p.LatePayment = 0, dibs.Reclaim
	f.must(l.Campaigns.UpdateProduct(ctx, p))
	same(t, "what is left after a change", p.StockLeft, int64(120))
	same(t, "the version after a change", p.Version, int64(2))
	same(t, "the changed product", *try(l.Campaigns.Product(ctx, "phone")).must(t), *p)
	wants(t, "a change of an older version", l.Campaigns.UpdateProduct(ctx, &stale), dibs.ErrConflict)
	same(t, "the version after a refused change", stale.Version, int64(1))
	wants(t, "a change of an unknown product", l.Campaigns.UpdateProduct(ctx, &dibs.Product{ID: "none", Version: 1}), dibs.ErrNotFound)

	// 25 products in pages of 10: the last page is not full.
	for i := range 24 {
		f.must(l.Campaigns.InsertProduct(ctx, &dibs.Product{ID: fmt.Sprintf("a%02d", i), Name: "n", Status: dibs.OnSale, Version: 1, CreatedAt: start, UpdatedAt: start}))
	}
	var ids []string
	collect(t, 10, func(page dibs.Page) (dibs.List[dibs.Product], error) { return l.Campaigns.Products(ctx, page) },
		func(p dibs.Product) { ids = append(ids, p.ID) })
	same(t, "products listed", len(ids), 25)
	same(t, "the first and last product", []string{ids[0], ids[24]}, []string{"a00", "phone"})
	badCursor(t, func(page dibs.Page) error { _, err := l.Campaigns.Products(ctx, page); return err })
}

// collect reads a list page by page, at most limit a page. An empty page with a
// cursor would make a caller read without end.
func collect[T any](t *testing.T, limit int, list func(dibs.Page) (dibs.List[T], error), see func(T)) {
	t.Helper()
	page := dibs.Page{Limit: limit}
	for {
		got, err := list(page)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Items) > limit {
			t.Fatalf("a page of %d rows, asked for at most %d", len(got.Items), limit)
		}
		for _, v := range got.Items {
			see(v)
		}
		if got.NextCursor == "" {
			return
		}
		if len(got.Items) == 0 {
			t.Fatal("an empty page with a cursor")
		}
		page.Cursor = got.NextCursor
	}
}

// badCursor checks that a cursor that was never given out is bad input. Cursors
// come from outside: a ledger must neither fail on one nor read another list by
// it.
func badCursor(t *testing.T, list func(dibs.Page) error) {
	t.Helper()
	wants(t, "a forged cursor", list(dibs.Page{Cursor: "!"}), dibs.ErrInvalid)
	wants(t, "a cursor of another list", list(dibs.Page{Cursor: "eyJub3QiOiJtaW5lIn0x"}), dibs.ErrInvalid)
}

// testCampaigns stores campaigns and reads every field back, by id and by
// number. Numbers are given once, within the range that claim ids can carry. A
// claim's id carries the number in 28 bits.
func testCampaigns(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("phone-noon", 200)
	c.ProductID, c.Comment = "phone", "first"
	c.Price, c.PayWithin, c.LatePayment = &dibs.Money{Amount: 0, Currency: "CNY"}, 15*time.Minute, dibs.RefundDue
	c.Shards, c.Stock.Pattern = 3, "XX"
	c.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 100}}
	c.Tiers = []dibs.Tier{{FromUnit: 2, Percent: 50}, {FromUnit: 3, Percent: 0}}
	f.insert(c)
	if c.Number < 1 || c.Number > dibs.MaxCampaignNumber {
		t.Fatalf("the campaign's number is %d", c.Number)
	}
	again := *c
	wants(t, "insert a campaign twice", l.Campaigns.InsertCampaign(ctx, &again, nil), dibs.ErrAlreadyExists)

	// The price and the gate are pointers, and are compared apart.
	for what, read := range map[string]func() (*dibs.Campaign, error){
		"by id":     func() (*dibs.Campaign, error) { return l.Live.Campaign(ctx, "phone-noon") },
		"by number": func() (*dibs.Campaign, error) { return l.Live.CampaignByNumber(ctx, c.Number) },
	} {
		got := try(read()).must(t)
		same(t, "price "+what, *got.Price, *c.Price)
		same(t, "gate "+what, *got.Gate.Room, *c.Gate.Room)
		got.Price, got.Gate = c.Price, c.Gate
		same(t, "the campaign "+what, *got, *c)
	}
	wants(t, "an unknown campaign", errOf(l.Live.Campaign(ctx, "none")), dibs.ErrNotFound)
	wants(t, "an unknown number", errOf(l.Live.CampaignByNumber(ctx, c.Number+1)), dibs.ErrNotFound)

	other := f.insert(campaign("other", 1))
	if other.Number == c.Number {
		t.Errorf("two campaigns have number %d", c.Number)
	}
	got := try(l.Live.Campaign(ctx, "other")).must(t)
	if got.Price != nil {
		t.Errorf("a campaign without a price has %v", *got.Price)
	}
	refuses(t, "a campaign of items without items", l.Campaigns.InsertCampaign(ctx, &dibs.Campaign{
		ID: "x", Stock: dibs.Stock{Kind: dibs.Items, Total: 2}, LimitPerUser: 1, Shards: 1, Version: 1,
	}, nil))
}

// testCampaignLists lists campaigns newest first, by state, and page by page.
// Live campaigns, and their versions by which nodes notice changes, are those
// that are public and not over. Every node asks for the live ones each second,
// so a campaign that is missing there is not sold, and one that is over but
// listed is loaded again and again.
func testCampaignLists(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	states := []dibs.State{dibs.Draft, dibs.Published, dibs.PausedState, dibs.EndedState}
	for i := range 24 {
		c := campaign(fmt.Sprintf("c%02d", i), 10)
		c.State = states[i%len(states)]
		if i%5 == 0 {
			c.ProductID = "phone"
		}
		f.insert(c)
	}
	var ids []string
	list := func(states []dibs.State) {
		ids = nil
		collect(t, 7, func(page dibs.Page) (dibs.List[dibs.Campaign], error) {
			return l.Campaigns.Campaigns(ctx, states, "", page)
		},
			func(c dibs.Campaign) { ids = append(ids, c.ID) })
	}
	list(nil)
	same(t, "all campaigns", len(ids), 24)
	same(t, "the newest and the oldest", []string{ids[0], ids[23]}, []string{"c23", "c00"})
	list([]dibs.State{dibs.PausedState, dibs.EndedState})
	same(t, "paused and ended campaigns", fmt.Sprint(ids), "[c23 c22 c19 c18 c15 c14 c11 c10 c07 c06 c03 c02]")
	ids = nil
	collect(t, 2, func(page dibs.Page) (dibs.List[dibs.Campaign], error) {
		return l.Campaigns.Campaigns(ctx, nil, "phone", page)
	},
		func(c dibs.Campaign) { ids = append(ids, c.ID) })
	same(t, "campaigns of a product", fmt.Sprint(ids), "[c20 c15 c10 c05 c00]")
	of := try(l.Campaigns.Campaigns(ctx, []dibs.State{dibs.Published}, "phone", dibs.Page{})).must(t)
	same(t, "published campaigns of a product", len(of.Items), 1)

	// A campaign is over at its end, not a millisecond before.
	over := try(l.Live.LiveCampaigns(ctx, campaign("ends", 1).EndsAt)).must(t)
	same(t, "live campaigns after their end", len(over), 0)
	open := try(l.Live.LiveCampaigns(ctx, campaign("ends", 1).EndsAt.Add(-time.Millisecond))).must(t)
	same(t, "live campaigns", len(open), 12)
	for _, c := range open {
		if !c.Live() {
			t.Errorf("campaign %s is %s", c.ID, c.State)
		}
	}
	versions := try(l.Live.LiveVersions(ctx, campaign("ends", 1).EndsAt.Add(-time.Millisecond))).must(t)
	same(t, "versions of live campaigns", len(versions), len(open))
	for i, v := range versions {
		same(t, "a live campaign's version", v, live.CampaignVersion{Number: open[i].Number, Version: open[i].Version})
	}
	versions = try(l.Live.LiveVersions(ctx, campaign("ends", 1).EndsAt)).must(t)
	same(t, "versions of campaigns after their end", len(versions), 0)
	// A page has a size of its own when none is asked for, and a bound.
	for limit, want := range map[int]int{0: dibs.DefaultPage, 5: 5, 24: 24, 1000: 24} {
		got := try(l.Campaigns.Campaigns(ctx, nil, "", dibs.Page{Limit: limit})).must(t)
		same(t, fmt.Sprintf("a page with limit %d", limit), len(got.Items), want)
	}
	badCursor(t, func(page dibs.Page) error { _, err := l.Campaigns.Campaigns(ctx, nil, "", page); return err })
}

// testCampaignChanges changes every field that may change. A change needs the
// version that was read, and never moves the stock: that belongs to restocks
// and to settling. An admin's form has the stock of the moment at which it was
// opened: writing it back would undo restocks and sales.
func testCampaignChanges(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	// A copy of version 1, as another admin's form has it.
	stale := *c
	c.Title, c.Comment, c.ProductID, c.State = "new", "comment", "p", dibs.EndedState
	c.StartsAt, c.EndsAt, c.UpdatedAt = start.Add(time.Minute), start.Add(time.Hour), start.Add(time.Second)
	c.LimitPerUser, c.Price, c.PayWithin, c.LatePayment = 7, &dibs.Money{Amount: 5, Currency: "EUR"}, time.Second, dibs.RefundDue
	c.Gate = &dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute)}}
	c.Tiers = []dibs.Tier{{FromUnit: 1, Percent: 90}}
	f.must(l.Campaigns.UpdateCampaign(ctx, c))
	same(t, "the version after a change", c.Version, int64(2))
	got := try(l.Live.Campaign(ctx, "c")).must(t)
	same(t, "the new price", *got.Price, *c.Price)
	same(t, "the new gate", *got.Gate.Ticket, *c.Gate.Ticket)
	got.Price, got.Gate = c.Price, c.Gate
	same(t, "the changed campaign", *got, *c)

	wants(t, "a change of an older version", l.Campaigns.UpdateCampaign(ctx, &stale), dibs.ErrConflict)
	same(t, "the version after a refused change", stale.Version, int64(1))
	wants(t, "a change of an unknown campaign", l.Campaigns.UpdateCampaign(ctx, campaign("none", 1)), dibs.ErrNotFound)

	// The change is taken, and the stock in it is ignored.
	c.Stock.Total = 1_000
	f.must(l.Campaigns.UpdateCampaign(ctx, c))
	got = try(l.Live.Campaign(ctx, "c")).must(t)
	same(t, "the stock after a change of the campaign", got.Stock.Total, int64(10))
}
