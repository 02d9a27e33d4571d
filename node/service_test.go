package node_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// A crowd in a waiting room, with tickets: nobody gets anything whose turn it is
// not, stock and limits are exact, and a restart changes nothing.
func TestACrowdInAWaitingRoom(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("phone", 15)
	spec.StartsAt = r.Now().Add(time.Minute)
	spec.Gate = &dibs.GateSpec{
		Room:   &dibs.RoomSpec{Mode: dibs.Shuffle, Rate: 1, Per: dibs.Duration(time.Hour), Burst: 20},
		Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Hour)},
	}
	r.Publish(spec)
	const people = 60
	each := func(f func(c *dibs.Campaign, user string)) {
		t.Helper()
		c, err := r.Node.Live.Registry.Get(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range people {
			all.Go(func() { f(c, fmt.Sprint("u", i)) })
		}
		all.Wait()
	}
	each(func(c *dibs.Campaign, user string) {
		if _, err := r.Node.Rooms.Join(t.Context(), c, user); err != nil {
			t.Error(err)
		}
	})
	r.Reopen()
	r.Pass(time.Minute)
	outcomes := func(wantGranted, wantWaiting int64) {
		t.Helper()
		var granted, waiting, other atomic.Int64
		each(func(c *dibs.Campaign, user string) {
			place, err := r.Node.Rooms.Join(t.Context(), c, user)
			if err != nil {
				t.Error(err)
			}
			ticket, err := r.Node.Tickets.Ticket(t.Context(), c, user, gate.TicketRequest{})
			if err != nil {
				t.Error(err)
			}
			for range 3 {
				res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{
					CampaignID: "phone", UserID: user, Ticket: ticket.Ticket, Admission: place.Admission,
				})
				switch {
				case err != nil:
					t.Error(err)
				case res.Outcome == dibs.Granted:
					granted.Add(1)
				case res.Outcome == dibs.Waiting:
					waiting.Add(1)
				default:
					other.Add(1)
				}
			}
		})
		if granted.Load() != wantGranted || waiting.Load() != wantWaiting || granted.Load()+waiting.Load()+other.Load() != 3*people {
			t.Errorf("granted %d, waiting %d, other %d; want %d and %d", granted.Load(), waiting.Load(), other.Load(), wantGranted, wantWaiting)
		}
	}
	// Twenty are let in; fifteen units are there.
	outcomes(15, 3*(people-20))
	r.Wants(dibs.TicketRequired, "phone", "u1", "")
	if st := r.Stats("phone"); st.Granted != 15 || st.Remaining != 0 {
		t.Errorf("%+v", st)
	}
	r.Verify()
}
