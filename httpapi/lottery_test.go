package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/gate"
)

// slowLists is a lottery whose lists are sent when they are let go.
type slowLists struct {
	gate.Lotteries
	reached, free chan struct{}
}

func (*slowLists) Lottery(context.Context, *dibs.Campaign) (gate.LotteryView, error) {
	return gate.LotteryView{ListHash: "5e5e"}, nil
}

func (s *slowLists) WriteEntries(_ context.Context, _ *dibs.Campaign, w io.Writer) error {
	s.reached <- struct{}{}
	<-s.free
	_, err := io.WriteString(w, "an entry\n")
	return err
}

// Anyone may ask for a list, which is read from its start to its end: a few are sent
// at once, and none to a client that has it already.
func TestListsAreBounded(t *testing.T) {
	svc := newService(t)
	lists := &slowLists{reached: make(chan struct{}, 10), free: make(chan struct{})}
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Lotteries: lists})
	must(t, err)
	s := serve(t, svc, h)
	units, now := int64(5), time.Now()
	_, err = svc.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "draw", Kind: dibs.Sale, Title: "T", StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour), Stock: dibs.StockSpec{Units: &units},
		Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: now.Add(time.Minute)}},
	})
	must(t, err)
	_, err = svc.Campaigns.Publish(t.Context(), "draw")
	must(t, err)
	const path, atOnce = "/v1/campaigns/draw/lottery/entries", 4
	answers := make(chan answer, atOnce)
	var all sync.WaitGroup
	defer all.Wait()
	let := sync.OnceFunc(func() { close(lists.free) })
	defer let()
	for range atOnce {
		all.Go(func() { answers <- s.ask("GET", path, "") })
		<-lists.reached
	}
	if a := s.ask("GET", path, ""); a.status != 503 || a.header.Get("Retry-After") == "" || fmt.Sprint(a.json["reason"]) != "overloaded" {
		t.Errorf("one too many: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", path, "", `If-None-Match: "5e5e"`); a.status != 304 || a.body != "" {
		t.Errorf("who has it: %d %s", a.status, a.body)
	}
	let()
	for range atOnce {
		if a := <-answers; a.status != 200 || a.body != "an entry\n" || a.header.Get("ETag") != `"5e5e"` {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
	}
	if a := s.ask("GET", path, ""); a.status != 200 {
		t.Errorf("when there is room again: %d %s", a.status, a.body)
	}
}

func TestALotteryOverHTTP(t *testing.T) {
	s := newGated(t)
	ctx := t.Context()
	closes := time.Now().Add(30 * time.Minute)
	s.gated("draw", time.Hour, dibs.GateSpec{Room: &dibs.RoomSpec{
		Mode: dibs.Lottery, Winners: 1, RegistrationClosesAt: closes, PublicValue: "a number",
	}})
	users := []*client.Client{s.admin.WithToken("dev_ann"), s.admin.WithToken("dev_bob")}
	for _, u := range users {
		first, err := u.Register(ctx, "draw")
		must(t, err)
		again, err := u.Register(ctx, "draw")
		if err != nil || again != first || first.Result != gate.LotteryPending {
			t.Fatalf("%+v, %+v, %v", first, again, err)
		}
	}
	_, err := users[0].LotteryEntries(ctx, "draw")
	wants(t, err, "invalid_state", "once registration is closed")
	before, err := users[0].Lottery(ctx, "draw")
	if err != nil || before.State != gate.LotteryOpen || before.SeedHash == "" || before.Seed != "" {
		t.Fatalf("%+v, %v", before, err)
	}
	s.ahead.Store(int64(30 * time.Minute))
	waitFor(t, func() bool {
		v, err := users[0].Lottery(ctx, "draw")
		must(t, err)
		return v.ListHash != ""
	})
	_, err = s.admin.TellPublicValue(ctx, "draw", "7")
	must(t, err)
	waitFor(t, func() bool {
		v, err := users[0].Lottery(ctx, "draw")
		must(t, err)
		return v.State == gate.LotteryDrawn
	})
	list, err := users[0].LotteryEntries(ctx, "draw")
	must(t, err)
	text, err := io.ReadAll(list)
	must(t, err)
	must(t, list.Close())
	if len(text) != 2*65 {
		t.Errorf("the list is %q", text)
	}
	results := map[gate.LotteryResult]int{}
	for _, u := range users {
		v, err := u.LotteryResult(ctx, "draw")
		must(t, err)
		results[v.Result]++
	}
	if results[gate.LotteryWon] != 1 || results[gate.LotteryLost] != 1 {
		t.Errorf("results %v", results)
	}
}
