package dibs

import (
	"context"
	"time"
)

// GateSpec is what stands between users and the engine of one campaign. Each
// part is absent for a campaign that does without it. After publishing, a part
// may change as far as it says so itself.
type GateSpec struct {
	// Limits bound how often claims are made.
	Limits []LimitSpec `json:"limits,omitempty" doc:"how often claims may be made"`
	// Audience is who may claim at all.
	Audience *AudienceSpec `json:"audience,omitempty" doc:"who may claim; absent: everybody"`
	// Room makes users wait for their turn.
	Room *RoomSpec `json:"room,omitempty" doc:"a waiting room, or a lottery"`
	// Ticket makes users fetch a ticket first.
	Ticket *TicketSpec `json:"ticket,omitempty" doc:"a ticket that a claim has to carry"`
}

// Gate decides which claims of a campaign with a GateSpec reach the engine.
// Methods are called by all claims at once: they ask nothing over the network,
// and wait for nothing but a claim's turn in a leaky bucket.
type Gate interface {
	// Pass reports true when the claim may go on; else the Result is its refusal,
	// unless the claim repeats one that was granted.
	Pass(ctx context.Context, c *Campaign, req *ClaimRequest) (Result, bool)
}

// refuse asks the gates of a campaign that has some.
func (s *Service) refuse(ctx context.Context, c *Campaign, req *ClaimRequest) (no Result, refused bool) {
	if sampled() {
		defer s.stages.gates.Since(time.Now())
	}
	for _, g := range s.cfg.Gates {
		if r, ok := g.Pass(ctx, c, req); !ok {
			r.Campaign = c
			return r, true
		}
	}
	return no, false
}

// empty reports whether the gate is open to everybody.
func (g *GateSpec) empty() bool {
	return len(g.Limits) == 0 && g.Audience == nil && g.Room == nil && g.Ticket == nil
}

// orNil is nil for a gate that is open to everybody.
func (g *GateSpec) orNil() *GateSpec {
	if g == nil || g.empty() {
		return nil
	}
	return g
}

// faults lists what is wrong with the gate of a campaign.
func (g *GateSpec) faults(c *Campaign) []Fault {
	if g == nil {
		return nil
	}
	fs := limitFaults("/gate/limits", g.Limits)
	if g.Audience != nil {
		fs = append(fs, g.Audience.faults("/gate/audience")...)
	}
	if g.Room != nil {
		fs = append(fs, g.Room.faults("/gate/room", c)...)
	}
	if g.Ticket != nil {
		fs = append(fs, g.Ticket.faults("/gate/ticket")...)
	}
	return fs
}

// changeFaults lists what of a published campaign's gate cannot change so.
func (g *GateSpec) changeFaults(c *Campaign) []Fault {
	if g == nil {
		return nil
	}
	var before GateSpec
	if c.Gate != nil {
		before = *c.Gate
	}
	if g.Room.sameButRate(before.Room) {
		return nil
	}
	return []Fault{{"/gate/room", Text{"cannot change after publishing, but for its rate", "发布后除速率外不能修改"}}}
}
