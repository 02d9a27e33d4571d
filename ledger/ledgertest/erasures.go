package ledgertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/webhooks"
)

// newErasure is one that the ledger does not know yet. Its pseudonym is made from the
// user, so a test can tell which one it looks at.
func newErasure(user string) *erasure.Erasure {
	return &erasure.Erasure{
		ID: "e-" + user, UserID: user, Pseudonym: erasure.PseudonymPrefix + "x-" + user, State: erasure.ErasureRunning, Step: erasure.EraseClaims,
		RequestedAt: start, UpdatedAt: start, Version: 1,
	}
}

// erasure begins one that the ledger knows.
func (f *fixture) erasure(user string, leave bool) *erasure.Erasure {
	f.t.Helper()
	e := newErasure(user)
	e.LeaveBalance = leave
	f.must(f.ledger().Erasure.InsertErasure(f.t.Context(), e, ""))
	return e
}

// round does all steps of an erasure once. Each part goes on from what another
// node reads: that is what a crash leaves. The number of parts is bounded, so a
// step that never ends fails the test. Lists of audiences are not the ledger's
// to search: that step is passed over.
func (f *fixture) round(e *erasure.Erasure, held map[uint32]bool, now time.Time) {
	f.t.Helper()
	e.Step, e.Cursor, e.Changed = erasure.EraseClaims, "", 0
	for parts := 0; e.Step != erasure.EraseEnd; parts++ {
		if e.Step == erasure.EraseLists {
			e.Advance()
			f.must(f.ledger().Erasure.SaveErasure(f.t.Context(), e))
			continue
		}
		f.must(f.ledger().Erasure.EraseSome(f.t.Context(), e, held, now))
		stored := try(f.ledger().Erasure.ErasureByID(f.t.Context(), e.ID)).must(f.t)
		// The work of the call is stored with the cursor, so another node can go on.
		same(f.t, "the erasure as it is stored", *stored, *e)
		if e = stored; parts > 1000 {
			f.t.Fatalf("the erasure stays at %s %s", e.Step, e.Cursor)
		}
	}
}

// testErasures stores erasures, at most one open for each user, and saves them
// by compare-and-set. Once an erasure is done, neither the user nor the
// pseudonym is left in it, and the user may be erased anew. Two nodes that
// carry out one erasure must notice each other, since each step goes on from a
// cursor.
func testErasures(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	e := f.erasure("ann", false)
	again := *e
	again.ID = "e-other"
	wants(t, "another erasure of the same user", l.Erasure.InsertErasure(ctx, &again, ""), dibs.ErrAlreadyExists)
	got := try(l.Erasure.ErasureOf(ctx, "ann")).must(t)
	same(t, "the user's erasure", *got, *e)
	wants(t, "the erasure of no user", errOf(l.Erasure.ErasureOf(ctx, "bob")), dibs.ErrNotFound)
	// The state that another node had read before this one went on.
	stale := got.Clone()
	got.Note(erasure.EraseClaims, 7)
	got.State, got.WaitsFor = erasure.ErasureWaiting, []string{"campaign phone"}
	f.must(l.Erasure.SaveErasure(ctx, got))
	wants(t, "an erasure that has gone on", l.Erasure.SaveErasure(ctx, stale), dibs.ErrConflict)
	wants(t, "a step of it", l.Erasure.EraseSome(ctx, stale, nil, start), dibs.ErrConflict)
	same(t, "what it is after a conflict", stale.Step, erasure.EraseClaims)
	same(t, "the erasure", *try(l.Erasure.ErasureByID(ctx, e.ID)).must(t), *got)

	// From here on nothing may tell who was erased.
	got.State, got.DoneAt = erasure.ErasureDone, start.Add(time.Hour)
	f.must(l.Erasure.SaveErasure(ctx, got))
	stored := try(l.Erasure.ErasureByID(ctx, e.ID)).must(t)
	same(t, "the user and the pseudonym, once it is done", stored.UserID+stored.Pseudonym, "")
	same(t, "it, as the caller has it", *got, *stored)
	wants(t, "the erasure of a user who is erased", errOf(l.Erasure.ErasureOf(ctx, "ann")), dibs.ErrNotFound)
	f.must(l.Erasure.InsertErasure(ctx, &again, ""))
	// Two erasures of ann by now: the one that is done, and the new one.
	open := try(l.Erasure.ErasureList(ctx, true, dibs.Page{})).must(t)
	same(t, "open erasures", fmt.Sprint(len(open.Items), " ", open.Items[0].ID), "1 e-other")
	page := try(l.Erasure.ErasureList(ctx, false, dibs.Page{Limit: 1})).must(t)
	rest := try(l.Erasure.ErasureList(ctx, false, dibs.Page{Limit: 1, Cursor: page.NextCursor})).must(t)
	same(t, "all erasures", []string{page.Items[0].ID, rest.Items[0].ID, rest.NextCursor}, []string{"e-other", "e-ann", ""})
}

// testEraseClaims erases a user with claims in three sales. A sale that goes
// on, or that an engine still holds, keeps the user: the engine decides by the
// name, and would grant anew to one that it does not know. Those are listed as
// what the erasure waits for, and done in a later round. In a sale that is over
// the name becomes the pseudonym and the shipment's texts go, while claims,
// sums and the claims of other users stay as they were.
func testEraseClaims(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	names := []string{"over", "live", "held"}
	campaigns := map[string]*dibs.Campaign{}
	places := map[string]dibs.Position{}
	for _, id := range names {
		c := campaign(id, 10)
		if id != "live" {
			c.EndsAt = start.Add(time.Minute)
		}
		_, s := f.loaded(c)
		s.grant("bob", 1)
		places[id] = s.grant("ann", 2)
		f.settle(s)
		campaigns[id] = c
	}
	over := campaigns["over"]
	// The shipment of the finished sale names its parcel.
	moved := try(l.Orders.Move(ctx, [][]dibs.Move{{{
		Campaign: over, Position: places["over"], Step: dibs.StepShip, At: start, EventFacts: dibs.EventFacts{Carrier: "post", TrackingNo: "T-1 of ann"},
	}}})).must(t)
	f.must(moved[0][0].Err)
	before := f.clean(over)

	// held are the campaigns that an engine has in memory, by their numbers.
	held := map[uint32]bool{campaigns["held"].Number: true}
	now := start.Add(time.Hour)
	e := f.erasure("ann", false)
	f.round(e, held, now)
	same(t, "what it waits for", fmt.Sprint(f.stored(e).WaitsFor), "[campaign live campaign held]")
	for id, want := range map[string]string{"over": e.Pseudonym, "live": "ann", "held": "ann"} {
		c := try(l.Claims.Claim(ctx, places[id])).must(t)
		same(t, "whose the claim of "+id+" is", c.UserID, want)
		if id == "over" && (c.Shipment == nil || c.Shipment.TrackingNo+c.Shipment.Carrier != "") {
			t.Errorf("the shipment is %+v", c.Shipment)
		}
	}
	// Erasing moves no stock and no money.
	after := f.clean(over)
	same(t, "the audit's numbers", []int64{after.Held, after.StockLeft, after.Claims}, []int64{before.Held, before.StockLeft, before.Claims})
	// The user's own data no longer has the erased claim.
	r := try(l.Erasure.UserRecord(ctx, "ann")).must(t)
	same(t, "what there is about her", r.Campaigns, []erasure.UserClaims{{CampaignID: "held", Claims: 1}, {CampaignID: "live", Claims: 1}})

	// A day later the engine holds none of them, and all are over.
	e = f.stored(e)
	f.round(e, nil, now.Add(24*time.Hour))
	e = f.stored(e)
	same(t, "what it waits for in the end", len(e.WaitsFor), 0)
	same(t, "claims", e.Erased["claims"], int64(3))
	for _, id := range names {
		c := try(l.Claims.Claim(ctx, places[id])).must(t)
		same(t, "whose the claim of "+id+" is in the end", c.UserID, e.Pseudonym)
		f.clean(campaigns[id])
		list := try(l.Claims.ClaimList(ctx, dibs.ClaimFilter{UserID: "bob", Campaign: campaigns[id].Number}, dibs.Page{})).must(t)
		same(t, "bob's claims", len(list.Items), 1)
	}
	// A round with nothing left to do is harmless: rounds are repeated after
	// crashes.
	f.round(e, nil, now.Add(25*time.Hour))
	same(t, "what another round changes", f.stored(e).Changed, int64(0))
}

// stored reads an erasure anew.
func (f *fixture) stored(e *erasure.Erasure) *erasure.Erasure {
	f.t.Helper()
	got := try(f.ledger().Erasure.ErasureByID(f.t.Context(), e.ID)).must(f.t)
	return got
}

// testEraseMoney erases the sender of a red packet who also has a share of it.
// Money that is owed or held stops the erasure until it is settled or given up
// by LeaveBalance; then entries and balance go over to the pseudonym, so that
// the books still sum to zero.
func testEraseMoney(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.deposit("ann", "d1", 1000)
	f.deposit("bob", "d2", 50)
	c := f.published("rain", "ann", 100, 200, 300)
	_, s := f.load(c, 0)
	// Shares of 100, 200 and 300: ann, bob, and one that is given up at the end.
	s.grant("ann", 1, 0)
	s.grant("bob", 1, 1)
	s.adjust("end", -1, 2)
	f.settle(s)
	now := c.EndsAt.Add(time.Hour)
	e := f.erasure("ann", false)
	f.round(e, nil, now)
	same(t, "what it waits for before the end", fmt.Sprint(f.stored(e).WaitsFor), "[red packet rain money in CNY on the account]")
	// The packet comes to its end: shares credited, the rest returned to its
	// sender.
	f.credit(c, 10)
	f.end(c)
	f.comesHome(c, true)
	f.has("ann", 800)
	e = f.stored(e)
	f.round(e, nil, now)
	same(t, "what it waits for with money", fmt.Sprint(f.stored(e).WaitsFor), "[money in CNY on the account]")
	f.has("ann", 800)

	e = f.stored(e)
	// An administrator decided that the user gives the balance up.
	e.LeaveBalance = true
	f.round(e, nil, now)
	e = f.stored(e)
	same(t, "what it waits for in the end", len(e.WaitsFor), 0)
	f.has("ann", 0)
	f.has(e.Pseudonym, 800)
	f.has("bob", 250)
	f.funds(c, 300, 300, 0)
	// Renaming an account must not break the books.
	same(t, "what is at odds", len(try(l.Audit.AuditAccounts(ctx, "CNY")).must(t)), 0)
	same(t, "entries of ann", len(try(l.Funds.Postings(ctx, "ann", dibs.Page{})).must(t).Items), 0)
	r := try(l.Erasure.UserRecord(ctx, "ann")).must(t)
	same(t, "what there is about ann", fmt.Sprint(len(r.Sent), len(r.Campaigns), len(r.Balances)), "0 0 0")
	same(t, "the sender", try(l.Live.CampaignByNumber(ctx, c.Number)).must(t).SenderID, e.Pseudonym)

	// What comes in before the erasure is done goes over too, to the accounts that the pseudonym has by then.
	f.deposit("ann", "d3", 40)
	f.round(f.stored(e), nil, now)
	f.has("ann", 0)
	f.has(e.Pseudonym, 840)
	same(t, "what is at odds in the end", len(try(l.Audit.AuditAccounts(ctx, "CNY")).must(t)), 0)
}

// testEraseFollows erases a follower. Nodes keep followers in memory and read
// changes by number, so the row stays for FollowerRest as a change that says
// "follows no longer"; only then is it removed. An implementation that deletes
// it at once leaves the user in the memory of every node.
func testEraseFollows(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	for _, shop := range []string{"a", "b"} {
		f.must(errOf(l.Audiences.Follow(ctx, shop, []gate.Follower{{User: "ann", Since: start}, {User: "bob", Since: start}}, true)))
	}
	e := f.erasure("ann", false)
	f.round(e, nil, start)
	m := try(l.Audiences.Merchant(ctx, "a")).must(t)
	same(t, "followers", *m, gate.Merchant{ID: "a", Followers: 1, Seq: 3})
	// A node that knows change 2 reads that ann follows no longer.
	changes := try(l.Audiences.FollowerChanges(ctx, "a", 2, 10)).must(t)
	same(t, "the changes that nodes read", changes, []gate.FollowerChange{{User: "ann", Seq: 3}})
	same(t, "what it waits for", len(f.stored(e).WaitsFor), 2)
	// The rest is over: the rows go, and no further change is told.
	e = f.stored(e)
	f.round(e, nil, start.Add(erasure.FollowerRest))
	same(t, "what it waits for in the end", len(f.stored(e).WaitsFor), 0)
	changes = try(l.Audiences.FollowerChanges(ctx, "a", 0, 10)).must(t)
	same(t, "what is left", changes, []gate.FollowerChange{{User: "bob", Follows: true, Seq: 2}})
	same(t, "followers in the end", try(l.Audiences.Merchant(ctx, "a")).must(t).Followers, int64(1))
}

// testEraseTexts erases a user from what is kept as JSON, over several parts,
// and leaves others alone. Users are found in the fields and paths that name
// users, and as whole values: annabel, a campaign named ann and a ref of ann
// have to stay.
func testEraseTexts(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	// One part is not enough, and what is hers is at its end.
	const rows = 203
	endpoint := &webhooks.WebhookEndpoint{ID: "hook", URL: "https://example.com", Secret: "s", Version: 1, CreatedAt: start, UpdatedAt: start}
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint))
	// 203 rows each; only the last one is of ann, all others are of annabel.
	var acts []*access.AdminAction
	var deliveries []webhooks.WebhookDelivery
	// The tracking number has a quotation mark in it, which a search in raw text
	// gets wrong.
	body := func(user string) string {
		return fmt.Sprintf(`{"user_id":%q,"ref":"ann","items":["CODE-1"],"carrier":"post","tracking_no":"T\"1"}`, user)
	}
	for i := range rows {
		user, target := "annabel", "/v1/campaigns/ann/stock"
		if i == rows-1 {
			user, target = "ann", "/v1/accounts/ann/deposits"
		}
		at := start.Add(time.Duration(i) * time.Second)
		acts = append(acts, &access.AdminAction{
			ID: access.NewAdminActionID(at), At: at, Key: "k", Action: "deposit", Target: target, Before: []byte(`{"user":"` + user + `"}`), After: []byte(body(user)),
		})
		deliveries = append(deliveries, webhooks.WebhookDelivery{
			Endpoint: "hook", EventID: fmt.Sprint("e", i), Type: "t", Subject: "s", Body: []byte(body(user)), Status: webhooks.DeliveryPending,
			NextAt: start, CreatedAt: start, UpdatedAt: start,
		})
	}
	f.must(l.Access.SaveAdminActions(ctx, acts))
	f.must(l.Webhooks.QueueDeliveries(ctx, nil, deliveries))
	f.must(l.Access.SaveRequest(ctx, &access.StoredRequest{Caller: "k1", Key: "x", Hash: []byte("h"), Status: 200, Body: []byte(body("ann")), At: start}))
	f.must(l.Access.SaveRequest(ctx, &access.StoredRequest{Caller: "user:ann", Key: "x", Hash: []byte("h"), Status: 200, Body: []byte(`{}`), At: start}))
	// One answer has her in its body, the other one she asked for herself.
	e := f.erasure("ann", false)
	f.round(e, nil, start)
	e = f.stored(e)
	same(t, "what was changed", fmt.Sprint(e.Erased), "map[audit:1 deliveries:1 requests:2]")

	// Carrier and tracking number are emptied; the ref is the merchant's and stays.
	erased := strings.ReplaceAll(`{"user_id":"P","ref":"ann","items":["CODE-1"],"carrier":"","tracking_no":""}`, "P", e.Pseudonym)
	list := try(l.Access.AdminActions(ctx, access.AdminActionFilter{}, dibs.Page{Limit: 2})).must(t)
	hers, other := list.Items[0], list.Items[1]
	same(t, "the act on her", []string{hers.Target, string(hers.Before), string(hers.After)}, []string{
		"/v1/accounts/" + e.Pseudonym + "/deposits", `{"user":"` + e.Pseudonym + `"}`, strings.Replace(erased, `["CODE-1"]`, `[]`, 1),
	})
	same(t, "an act on another", []string{other.Target, string(other.After)}, []string{"/v1/campaigns/ann/stock", body("annabel")})
	due := try(l.Webhooks.DueDeliveries(ctx, "hook", start, rows)).must(t)
	same(t, "her delivery", string(due[rows-1].Body), erased)
	same(t, "another's delivery", string(due[0].Body), body("annabel"))
	same(t, "a remembered answer", string(try(l.Access.Request(ctx, "k1", "x")).must(t).Body), erased)
	wants(t, "her own request", errOf(l.Access.Request(ctx, "user:ann", "x")), dibs.ErrNotFound)
}

// testEraseAnnounced erases a follower to whom a campaign was announced, by an
// event that is not taken and by one that waits for a webhook. The user's name
// is in the event's list of recipients and in the ids of deliveries.
func testEraseAnnounced(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("phone", 10)
	f.insert(c)
	f.follow([]string{"annabel", "ann", "bob"})
	f.must(l.Announce.InsertAnnouncement(ctx, announcement("ann", c, 10, 0, 1)))
	f.finish(l, "ann", "node")
	f.must(l.Webhooks.InsertEndpoint(ctx, &webhooks.WebhookEndpoint{ID: "hook", URL: "https://example.com", Secret: "s", Version: 1, CreatedAt: start, UpdatedAt: start}))
	// The announcement is called ann as well: its id must stay in the texts.
	body := `{"announcement_id":"ann","recipients":[{"user_id":"annabel","delivery_id":"ann:annabel"},{"user_id":"ann","delivery_id":"ann:ann"}]}`
	f.must(l.Webhooks.QueueDeliveries(ctx, nil, []webhooks.WebhookDelivery{{
		Endpoint: "hook", EventID: "ann:1", Type: "t", Subject: "s", Body: []byte(body), Status: webhooks.DeliveryPending, NextAt: start, CreatedAt: start, UpdatedAt: start,
	}}))
	e := f.erasure("ann", false)
	f.round(e, nil, start)
	e = f.stored(e)
	pushes, _, err := l.Announce.Pushes(ctx, 0, 10)
	f.must(err)
	same(t, "whom the event tells", pushes[0].Users, []string{"annabel", e.Pseudonym, "bob"})
	same(t, "the delivery", string(try(l.Webhooks.DueDeliveries(ctx, "hook", start, 10)).must(t)[0].Body),
		strings.ReplaceAll(`{"announcement_id":"ann","recipients":[{"user_id":"annabel","delivery_id":"ann:annabel"},{"user_id":"P","delivery_id":"ann:P"}]}`, "P", e.Pseudonym))
	same(t, "what was changed", fmt.Sprint(e.Erased), "map[announced:1 deliveries:1 follows:1]")
}

// testEraseRooms erases a user who registered for a lottery, waited in a room,
// and is in quarantine. The registration's hash stays: the draw is checked
// against a list of hashes that was published.
func testEraseRooms(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	rooms := l.Rooms
	c := f.insert(campaign("draw", 10))
	f.must(errOf(rooms.CommitLottery(ctx, lotteryOf(c.Number))))
	f.must(errOf(rooms.RegisterEntries(ctx, c.Number, []gate.LotteryEntry{entry("ann", 7)}, 10)))
	f.must(rooms.SavePlaces(ctx, gate.SavedRoom{Campaign: c.Number, Tail: 1, Seed: "s", At: start}, []gate.SavedPlace{{Number: 1, UserID: "ann"}}))
	_, s := f.load(c, 0)
	f.settle(s)
	s.grant("ann", 1)
	// Her claim could not be settled: the entry still names her.
	f.must(l.Live.Quarantine(ctx, s.batch(), "a test"))
	r := try(l.Erasure.UserRecord(ctx, "ann")).must(t)
	same(t, "what there is about her", fmt.Sprint(r.Lotteries, r.Rooms, r.Quarantined), "[draw] [draw] 1")

	e := f.erasure("ann", false)
	f.round(e, nil, start)
	same(t, "what it waits for", fmt.Sprint(f.stored(e).WaitsFor), "[campaign draw]")
	// At the campaign's end nothing needs her name any more.
	e = f.stored(e)
	f.round(e, nil, c.EndsAt)
	e = f.stored(e)
	same(t, "what was changed", fmt.Sprint(e.Erased, len(e.WaitsFor)), "map[lotteries:1 places:1 quarantine:1] 0")
	entries := try(rooms.EntriesAfter(ctx, c.Number, "", 10)).must(t)
	same(t, "the registration", fmt.Sprint(len(entries), entries[0].UserID, entries[0].Entry, entries[0].Nonce), fmt.Sprint(1, e.Pseudonym, entry("ann", 7).Entry, ""))
	q := try(l.Live.Quarantined(ctx, live.QuarantineFilter{Campaign: c.Number}, 10)).must(t)
	same(t, "the user in quarantine", q[0].Entry.UserID, e.Pseudonym)
	places := try(rooms.SavedPlaces(ctx, c.Number, 0, 10)).must(t)
	same(t, "the place", places, []gate.SavedPlace{{Number: 1, UserID: e.Pseudonym}})
}
