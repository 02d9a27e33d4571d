package dibs

import (
	"context"
	"net/url"
	"slices"
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
// Methods are called by all claims at once, and make no call over the network
// themselves. Pass may wait in two cases: for the claim's turn in a leaky bucket,
// and after a change of an audience until it is loaded, for 2 s at most.
type Gate interface {
	// Pass reports true when the claim may go on; else the Result is its refusal,
	// unless the claim repeats one that was granted.
	Pass(ctx context.Context, c *Campaign, req *ClaimRequest) (Result, bool)
}

// FollowersOf returns the merchant whose followers alone may claim; empty where there is none.
func (g *GateSpec) FollowersOf() string {
	if g == nil || g.Audience == nil {
		return ""
	}
	return g.Audience.FollowersOf
}

// orNil is nil for a gate that is open to everybody.
func (g *GateSpec) orNil() *GateSpec {
	if g == nil || len(g.Limits) == 0 && g.Audience == nil && g.Room == nil && g.Ticket == nil {
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

// AudienceSpec is who may claim: exactly one field is set.
type AudienceSpec struct {
	// List is the id of an imported list of users.
	List string `json:"list,omitempty" doc:"the id of an imported list of users"`
	// FollowersOf is a merchant, whose followers may claim.
	FollowersOf string `json:"followers_of,omitempty" doc:"a merchant, whose followers may claim"`
}

// faults lists what is wrong with an audience.
func (a *AudienceSpec) faults(field string) []Fault {
	if (a.List == "") == (a.FollowersOf == "") {
		return []Fault{{field, Text{"must have exactly one of list, followers_of", "必须且只能有 list、followers_of 之一"}}}
	}
	return append(zeroOrID(field+"/list", a.List), zeroOrID(field+"/followers_of", a.FollowersOf)...)
}

// TicketSpec makes a claim carry a ticket, which is handed out from the opening
// on. All of it may change after publishing.
type TicketSpec struct {
	// Lifetime is how long a ticket is good for.
	Lifetime Duration `json:"lifetime" doc:"how long a ticket is good for, such as 2m"`
	// WorkBits is how many leading zero bits a client has to find by trying, about
	// 2^WorkBits hashes; 0 for none.
	WorkBits int `json:"work_bits,omitempty" doc:"the proof of work that a ticket costs: about 2 to the power of so many hashes; 0 for none" minimum:"0" maximum:"32"`
	// HumanCheck is the address of a page that tells people from programs and hands
	// out vouchers; empty for none.
	HumanCheck string `json:"human_check,omitempty" doc:"the address of a page that tells people from programs and hands out vouchers; absent: none is asked for"`
}

// Limits of tickets.
const (
	// maxTicketLifetime is the longest that a ticket may be good for.
	maxTicketLifetime = time.Hour
	// maxWorkBits is the most work that a ticket may cost: minutes of a telephone.
	maxWorkBits = 32
)

// faults lists what is wrong with a campaign's tickets.
func (t *TicketSpec) faults(field string) []Fault {
	return slices.Concat(
		within(field+"/lifetime", t.Lifetime.Std(), time.Second, maxTicketLifetime),
		within(field+"/work_bits", t.WorkBits, 0, maxWorkBits),
		unless(t.HumanCheck == "" || isPage(t.HumanCheck), field+"/human_check",
			Text{"must be the address of a page, such as https://check.example/", "必须是页面地址，例如 https://check.example/"}),
	)
}

func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && len(address) <= 2048
}
