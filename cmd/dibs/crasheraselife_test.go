package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/orders"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/webhooks"

	"github.com/dibs-dev/dibs/gate"
)

// past is a node that runs some days ago.
type past struct {
	*erasures
	node *node.Node
	now  func() time.Time
}

func (p *past) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *past) await(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(clitest.Patience); !is(); <-tick.C {
		if time.Now().After(until) {
			p.t.Fatalf("it is not so: %s", what)
		}
	}
}

// publish opens a campaign for an hour.
func (p *past) publish(spec dibs.CampaignSpec) {
	p.t.Helper()
	spec.Title, spec.StartsAt, spec.EndsAt = spec.ID, p.now().Add(-time.Minute), p.now().Add(time.Hour)
	_, err := p.node.Service.Campaigns.Create(p.t.Context(), spec)
	p.must(err)
	_, err = p.node.Service.Campaigns.Publish(p.t.Context(), spec.ID)
	p.must(err)
}

// claim has a user claim.
func (p *past) claim(campaign, user string) string {
	p.t.Helper()
	r, err := p.node.Service.Claims.Claim(p.t.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: user, Key: "k"})
	p.must(err)
	if r.Outcome != dibs.Granted {
		p.t.Fatalf("%s claims %s: %s", user, campaign, r.Outcome)
	}
	return r.Claim.ID
}

// sell makes every user buy, order, use a coupon and get a share of a red packet.
func (p *past) sell(users []string) {
	p.t.Helper()
	ctx, s := p.t.Context(), p.node.Service
	all := append([]string{"somebody-else"}, users...)
	units, cny := int64(len(all)), func(n int64) dibs.Money { return dibs.Money{Amount: n, Currency: "CNY"} }
	for i := range 12 {
		id := fmt.Sprintf("sale-%d", i)
		p.publish(dibs.CampaignSpec{ID: id, Kind: dibs.Sale, Stock: dibs.StockSpec{Units: &units}})
		for _, user := range all {
			claim := p.claim(id, user)
			_, _, err := s.Orders.Ship(ctx, claim, dibs.ShipmentSpec{Carrier: "SF", TrackingNo: "T-" + claim})
			p.must(err)
		}
	}
	p.publish(dibs.CampaignSpec{ID: "spring", Kind: dibs.Coupon, Stock: dibs.StockSpec{Codes: &dibs.CodesSpec{Count: units}}})
	_, _, err := s.Funds.Deposit(ctx, all[0], funds.DepositSpec{Amount: cny(1000 * units), Ref: "d"})
	p.must(err)
	p.publish(dibs.CampaignSpec{
		ID: "rain", Kind: dibs.RedPacket, SenderID: all[0], Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: cny(1000 * units), Count: units}},
	})
	_, err = s.Products.Create(ctx, dibs.ProductSpec{ID: "tea", Name: "tea", Stock: 100 * units})
	p.must(err)
	for _, user := range all {
		_, _, err := s.Orders.Redeem(ctx, p.claim("spring", user), dibs.RedeemSpec{Ref: "used", UserID: user})
		p.must(err)
		p.claim("rain", user)
		for i := range 5 {
			r, err := s.Orders.Place(ctx, orders.Request{ProductID: "tea", UserID: user, Key: fmt.Sprint("tea-", i)})
			p.must(err)
			_, _, err = s.Orders.Ship(ctx, r.Claim.ID, dibs.ShipmentSpec{Carrier: "SF", TrackingNo: "T-" + user})
			p.must(err)
		}
	}
	_, err = s.Campaigns.End(ctx, "rain")
	p.must(err)
	p.await("all shares are on accounts", func() bool {
		st, err := s.Stats(ctx, "rain")
		p.must(err)
		return st.Funds.ReturnedAt != nil
	})
}

// follow puts every user on a list, and announces a campaign to them as followers, who
// then stop following.
func (p *past) follow(users []string) {
	p.t.Helper()
	ctx, l := p.t.Context(), p.node.Ledger
	_, err := audience.Import(ctx, l, "vip", strings.NewReader("somebody-else\n"+strings.Join(users, "\n")+"\n"), nil)
	p.must(err)
	followers := []gate.Follower{{User: "somebody-else", Since: p.now()}}
	for _, user := range users {
		followers = append(followers, gate.Follower{User: user, Since: p.now()})
	}
	_, err = l.Follow(ctx, "shop", followers, true)
	p.must(err)
	a, err := p.node.Service.Announcements.Create(ctx, "sale-0", announce.AnnouncementSpec{Merchant: "shop", Message: "at noon"})
	p.must(err)
	p.await("all are told", func() bool {
		v, err := p.node.Service.Announcements.Get(ctx, a.ID)
		p.must(err)
		return v.State == announce.AnnouncementDone
	})
	_, err = l.Follow(ctx, "shop", followers[1:], false)
	p.must(err)
}

// record leaves so many admin actions, stored answers and deliveries that name every user
// that erasing them takes a while.
func (p *past) record(users []string) {
	p.t.Helper()
	ctx, l := p.t.Context(), p.node.Ledger
	p.must(l.InsertEndpoint(ctx, &webhooks.WebhookEndpoint{ID: "hook", URL: "https://192.0.2.1/", Secret: "s", Version: 1, CreatedAt: p.now(), UpdatedAt: p.now()}))
	for n, user := range users {
		body := fmt.Sprintf(`{"user_id":%q,"items":["C-1"],"carrier":"SF","tracking_no":"T"}`, user)
		var deliveries []webhooks.WebhookDelivery
		for part := range 10 {
			var acts []*access.AdminAction
			for i := range 60 {
				at := p.now()
				acts = append(acts, &access.AdminAction{
					ID: access.NewAdminActionID(at), At: at, Key: "k", Action: "deposit", Target: "/v1/accounts/" + user + "/deposits", Status: 200, After: []byte(body),
				})
				deliveries = append(deliveries, webhooks.WebhookDelivery{
					Endpoint: "hook", EventID: fmt.Sprint("e-", n, "-", part, "-", i), Type: "t", Subject: "s", Body: []byte(body), Status: webhooks.DeliveryPending,
					NextAt: time.Now().Add(time.Hour), CreatedAt: p.now(), UpdatedAt: p.now(),
				})
			}
			p.must(l.SaveAdminActions(ctx, acts))
			p.must(l.SaveRequest(ctx, &access.StoredRequest{Caller: "k", Key: fmt.Sprint("r-", n, "-", part), Hash: []byte("h"), Status: 200, Body: []byte(body), At: time.Now()}))
		}
		p.must(l.QueueDeliveries(ctx, nil, deliveries))
	}
}
