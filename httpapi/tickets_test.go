package httpapi_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/ticket"

	"github.com/dibs-dev/dibs/gate"
)

func TestTicketsOverHTTP(t *testing.T) {
	s := newGated(t)
	ctx := t.Context()
	spec := dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 4}
	s.gated("later", time.Hour, dibs.GateSpec{Ticket: &spec})
	s.gated("phone", 0, dibs.GateSpec{Ticket: &spec})
	ann := s.admin.WithToken("dev_ann")
	_, err := ann.Tickets.Get(ctx, "later", gate.TicketRequest{})
	if e := refusalIs(t, err, "not_started", "starts at"); e.StartsAt == nil || time.Until(*e.StartsAt) < time.Minute {
		t.Errorf("%+v", e)
	}
	_, err = ann.Tickets.Challenge(ctx, "later")
	wants(t, err, "not_started", "starts at")
	_, _, err = ann.Claim(ctx, "phone", 1, "tap")
	if e := refusalIs(t, err, "ticket_required", "needs a ticket"); e.Status != 403 || e.Code != 30014 {
		t.Errorf("%+v", e)
	}
	_, err = ann.Tickets.Get(ctx, "phone", gate.TicketRequest{})
	wants(t, err, "ticket_required", "costs work")
	ch, err := ann.Tickets.Challenge(ctx, "phone")
	must(t, err)
	nonce := byte('0')
	for ticket.Work(ch.Challenge, string(nonce)) < ch.Bits {
		nonce++
	}
	v, err := ann.Tickets.Get(ctx, "phone", gate.TicketRequest{Challenge: ch.Challenge, Nonce: string(nonce)})
	must(t, err)
	_, _, err = s.admin.WithToken("dev_bob").WithTicket(v.Ticket).Claim(ctx, "phone", 1, "tap")
	wants(t, err, "ticket_required", "no ticket of yours")
	_, _, err = ann.WithTicket(v.Ticket).Claim(ctx, "phone", 1, "tap")
	must(t, err)
}
