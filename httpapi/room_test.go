package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/gate"
)

// gatedStack is a node with its gates behind HTTP, by a clock that can be set.
type gatedStack struct {
	*stack
	ahead atomic.Int64
}

func (s *gatedStack) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func newGated(t *testing.T) *gatedStack {
	t.Helper()
	s := &gatedStack{}
	nd, err := node.Open(t.Context(), node.Config{Dir: freshFolder(t), Now: s.now})
	must(t, err)
	t.Cleanup(func() { must(t, nd.Close(context.Background())) })
	_, err = nd.Service.Access.EnsureKey(t.Context(), "tests", adminKey)
	must(t, err)
	h, err := httpapi.New(httpapi.Config{
		Services: httpapi.ServicesOf(nd.Service), Places: nd.Rooms, Lotteries: nd.Rooms, Tickets: nd.Tickets,
		JWTSecret: []byte(jwtSecret), AllowDevTokens: true, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	admin, err := client.New(server.URL, client.Options{AdminKey: adminKey})
	must(t, err)
	t.Cleanup(admin.CloseIdle)
	s.stack = &stack{t: t, service: nd.Service, url: server.URL, admin: admin}
	return s
}

// gated drafts and publishes a campaign with a gate, that begins after a while.
func (s *gatedStack) gated(id string, begins time.Duration, gate dibs.GateSpec) {
	s.t.Helper()
	units, now := int64(10), time.Now()
	_, err := s.admin.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(begins), EndsAt: now.Add(begins + time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Gate: &gate,
	}, "")
	must(s.t, err)
	_, err = s.admin.Campaigns.Publish(context.Background(), id)
	must(s.t, err)
}

// wants checks the reason of a client's error.
func wants(t *testing.T, err error, reason string, inDetail string) {
	t.Helper()
	refusalIs(t, err, reason, inDetail)
}

// refusalIs is wants for those who look at the rest of the error too.
func refusalIs(t *testing.T, err error, reason string, inDetail string) (e *client.Error) {
	t.Helper()
	if !errors.As(err, &e) || e.Reason != reason || !strings.Contains(e.Detail, inDetail) {
		t.Fatalf("%v, want %s with %q", err, reason, inDetail)
	}
	return e
}

func TestAQueueOverHTTP(t *testing.T) {
	s := newGated(t)
	ctx := t.Context()
	s.gated("phone", 0, dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(time.Hour), Burst: 1}})
	ann, bob := s.admin.WithToken("dev_ann"), s.admin.WithToken("dev_bob")
	_, err := ann.Rooms.Place(ctx, "phone")
	wants(t, err, "not_found", "no place")
	_, _, err = ann.Claim(ctx, "phone", 1, "tap")
	if e := refusalIs(t, err, "waiting", "queue"); e.RetryAfter <= 0 || e.Code != 30013 || e.Status != 409 {
		t.Errorf("%+v", e)
	}
	first, err := ann.Rooms.Join(ctx, "phone")
	must(t, err)
	second, err := bob.Rooms.Join(ctx, "phone")
	must(t, err)
	if first.State != gate.PlaceAdmitted || first.Admission == "" || second.State != gate.PlaceWaiting || second.Position != 1 || second.Place != 2 {
		t.Fatalf("%+v, %+v", first, second)
	}
	_, _, err = bob.WithAdmission(first.Admission).Claim(ctx, "phone", 1, "tap")
	wants(t, err, "waiting", "no admission of yours")
	_, _, err = bob.Claim(ctx, "phone", 1, "tap")
	if e := refusalIs(t, err, "waiting", "not your turn"); e.Position == nil || *e.Position != 1 {
		t.Errorf("%+v", e)
	}
	claim, _, err := ann.WithAdmission(first.Admission).Claim(ctx, "phone", 1, "tap")
	must(t, err)
	// The repeat of a yes needs no admission.
	again, replayed, err := ann.Claim(ctx, "phone", 1, "tap")
	if err != nil || !replayed || again.ID != claim.ID {
		t.Errorf("the repeat: %+v, %v, %v", again, replayed, err)
	}
	must(t, bob.Rooms.Leave(ctx, "phone"))
	_, err = bob.Rooms.Place(ctx, "phone")
	wants(t, err, "not_found", "no place")
	_, err = ann.Rooms.Join(ctx, "nothing")
	wants(t, err, "not_found", "no such campaign")
	_, err = ann.Lotteries.Get(ctx, "phone")
	wants(t, err, "not_found", "no lottery")
	_, err = ann.Tickets.Get(ctx, "phone", gate.TicketRequest{})
	wants(t, err, "not_found", "no tickets")

	s.gated("later", time.Hour, dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Shuffle, Rate: 1, OpensAt: time.Now().Add(time.Minute)}})
	_, err = ann.Rooms.Join(ctx, "later")
	if e := refusalIs(t, err, "not_started", "the waiting room opens"); e.StartsAt == nil || time.Until(*e.StartsAt) > time.Minute {
		t.Errorf("%+v", e)
	}
}

// waitFor waits for a condition, for as long as a loaded machine may need.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be")
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestFaultsOfGates(t *testing.T) {
	s := newGated(t)
	units, now := int64(1), time.Now()
	for want, gate := range map[string]dibs.GateSpec{
		"/gate/room/mode":                   {Room: &dibs.RoomSpec{Mode: "random", Rate: 1}},
		"/gate/room/rate":                   {Room: &dibs.RoomSpec{Mode: dibs.FIFO}},
		"/gate/room/per":                    {Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(time.Millisecond)}},
		"/gate/room/burst":                  {Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: -1}},
		"/gate/room/max":                    {Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Max: 1e9}},
		"/gate/room/admit_for":              {Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, AdmitFor: 1}},
		"/gate/room/opens_at":               {Room: &dibs.RoomSpec{Mode: dibs.Shuffle, Rate: 1, OpensAt: now.Add(time.Hour)}},
		"/gate/room/winners":                {Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Winners: 1}},
		"/gate/room/registration_closes_at": {Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: now.Add(-time.Hour), RegistrationOpensAt: now}},
		"/gate/room/public_value":           {Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: now, PublicValue: "two\nlines"}},
		"/gate/ticket/lifetime":             {Ticket: &dibs.TicketSpec{Lifetime: 1}},
		"/gate/ticket/work_bits":            {Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 64}},
		"/gate/ticket/human_check":          {Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), HumanCheck: "javascript:alert(1)"}},
	} {
		_, err := s.service.Campaigns.Create(t.Context(), dibs.CampaignSpec{
			Kind: dibs.Sale, Title: "x", StartsAt: now.Add(time.Minute), EndsAt: now.Add(2 * time.Hour), Stock: dibs.StockSpec{Units: &units}, Gate: &gate,
		})
		var e *dibs.Error
		if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Field != want || e.Faults[0].Problem.ZH == "" {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// notedLookups notes as whose call a campaign was looked up.
type notedLookups struct {
	httpapi.PublicCampaigns
	as *atomic.Value
}

func (n notedLookups) Public(ctx context.Context, id string) (*dibs.Campaign, error) {
	n.as.Store("a stranger's")
	return n.PublicCampaigns.Public(ctx, id)
}

func (n notedLookups) ForCaller(ctx context.Context, id string) (*dibs.Campaign, error) {
	n.as.Store("a caller's")
	return n.PublicCampaigns.ForCaller(ctx, id)
}

// TestLookupsOfCallers: the gates of users and administrators look campaigns up in the places of callers, those that
// everyone may see in the places of strangers, whose calls could be anyone's.
func TestLookupsOfCallers(t *testing.T) {
	as := &atomic.Value{}
	s := newStack(t, func(s *httpapi.Services) { s.PublicCampaigns = notedLookups{s.PublicCampaigns, as} })
	for _, c := range []struct{ method, path, body, credentials, want string }{
		{"GET", "/queue", "", asUser, "a caller's"},
		{"DELETE", "/queue", "", asUser, "a caller's"},
		{"POST", "/tickets", "{}", asUser, "a caller's"},
		{"GET", "/lottery/result", "", asUser, "a caller's"},
		{"POST", "/lottery/public-value", `{"value":"1"}`, asAdmin, "a caller's"},
		{"GET", "/lottery", "", "Accept: */*", "a stranger's"},
		{"GET", "/lottery", "", asUser, "a stranger's"},
		{"GET", "/lottery/entries", "", "Accept: */*", "a stranger's"},
	} {
		as.Store("no one's")
		if a := s.ask(c.method, "/v1/campaigns/none"+c.path, c.body, c.credentials); a.status != 404 || as.Load() != c.want {
			t.Errorf("%s %s: %d, looked up as %s, want %s: %s", c.method, c.path, a.status, as.Load(), c.want, a.body)
		}
	}
}
