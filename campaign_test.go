package dibs

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A campaign grants from its start until its end, to the nanosecond, and only while it
// is published.
func TestWhenACampaignIsClosed(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		state  State
		at     time.Duration // from the start; the campaign lasts an hour
		reason Reason
	}{
		{Draft, 0, NotFound},
		{Published, -1, NotStarted},
		{Published, 0, Granted},
		{Published, time.Hour - 1, Granted},
		{Published, time.Hour, Ended},
		{PausedState, 0, Paused},
		{PausedState, -1, Paused},
		{EndedState, -1, Ended},
	} {
		campaign := &Campaign{State: c.state, StartsAt: noon, EndsAt: noon.Add(time.Hour)}
		if reason, closed := campaign.Closed(noon.Add(c.at)); reason != c.reason || closed != (c.reason != Granted) {
			t.Errorf("%s, %s after the start: %s, %t; want %s", c.state, c.at, reason, closed, c.reason)
		}
	}
}

// The shard of a user never changes: an id that moved to another shard would have
// the limit twice. The places are stored, so the hash is part of the data's format.
func TestUsersStayWithTheirShard(t *testing.T) {
	c := &Campaign{Number: 7, Shards: 6}
	for user, want := range map[string]uint8{"42": 5, "ann": 3, "bob": 0, "": 1} {
		if got := c.ShardOf(user); got != (ShardID{Campaign: 7, Shard: want}) {
			t.Errorf("%q is of shard %s, want %d", user, got, want)
		}
	}
	var users [6]int
	for i := range 6000 {
		users[c.ShardOf(fmt.Sprint("user-", i)).Shard]++
	}
	for shard, n := range users {
		if n < 850 || n > 1150 {
			t.Errorf("shard %d has %d of 6,000 users", shard, n)
		}
	}
	c.Shards = 1
	if got := c.ShardOf("ann"); got.Shard != 0 {
		t.Errorf("with one shard: %s", got)
	}
}

// A coupon is valid for a time from its grant, or until a time, or for ever.
func TestHowLongACouponIsValid(t *testing.T) {
	granted := &Claim{CreatedAt: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)}
	until := granted.CreatedAt.AddDate(0, 1, 0)
	if got := (&Campaign{ValidFor: time.Hour, ValidUntil: until}).ValidUntilFor(granted); !got.Equal(granted.CreatedAt.Add(time.Hour)) {
		t.Errorf("for an hour: until %s", got)
	}
	if got := (&Campaign{ValidUntil: until}).ValidUntilFor(granted); !got.Equal(until) {
		t.Errorf("until a time: until %s", got)
	}
	if got := (&Campaign{}).ValidUntilFor(granted); !got.IsZero() {
		t.Errorf("for ever: until %s", got)
	}
}

// A user who claimed by any of the numbers of shards that a campaign had is found: on the
// shard of now, or on one of those that are asked first, each of which is asked once.
func TestEarlierShards(t *testing.T) {
	history := []int{1, 3, 4, 16}
	moved := 0
	for last := range history {
		now := Campaign{Number: 7, Shards: history[last], EarlierShards: history[:last]}
		for i := range 500 {
			user := fmt.Sprint("user-", i)
			asked := append(now.EarlierShardsOf(user), now.ShardOf(user))
			for _, shards := range history[:last+1] {
				then := Campaign{Number: 7, Shards: shards}
				if !slices.Contains(asked, then.ShardOf(user)) {
					t.Fatalf("%s was on %v of %d, and with %d %v are asked", user, then.ShardOf(user), shards, now.Shards, asked)
				}
			}
			slices.SortFunc(asked, func(a, b ShardID) int { return int(a.Shard) - int(b.Shard) })
			if len(slices.Compact(slices.Clone(asked))) != len(asked) {
				t.Fatalf("%s is asked for twice on %v", user, asked)
			}
			moved += len(asked) - 1
		}
		if got := now.FirstShards(); got != 1 {
			t.Errorf("it began with %d shards", got)
		}
	}
	if moved == 0 {
		t.Error("no user is looked for on a shard of before")
	}
}

// The number of shards may rise, up to 64, six times; it is what the campaign began with
// that its history begins with.
func TestShardsRise(t *testing.T) {
	c := Campaign{State: Published, Shards: 2}
	patch := func(shards int) (refused bool) {
		p := CampaignPatch{Shards: &shards}
		if refused = len(p.Faults(&c)) > 0; !refused {
			p.Apply(&c)
		}
		return refused
	}
	for _, shards := range []int{1, 0, -1, 65} {
		if !patch(shards) {
			t.Errorf("%d shards after 2 are not refused", shards)
		}
	}
	if patch(2) || c.EarlierShards != nil {
		t.Errorf("the same number changes the campaign: %v", c.EarlierShards)
	}
	for shards := 3; shards < 9; shards++ {
		if patch(shards) {
			t.Errorf("%d shards are refused", shards)
		}
	}
	if !slices.Equal(c.EarlierShards, []int{2, 3, 4, 5, 6, 7}) || c.Shards != 8 {
		t.Errorf("%d shards, and before %v", c.Shards, c.EarlierShards)
	}
	if !patch(9) {
		t.Error("they rise a seventh time")
	}
	c = Campaign{State: Draft, Shards: 2}
	for shards := 3; shards < 20; shards++ {
		if patch(shards) {
			t.Errorf("%d shards of a draft are refused", shards)
		}
	}
	if !slices.Equal(c.EarlierShards, []int{2}) || c.Shards != 19 {
		t.Errorf("a draft has %d shards, and before %v", c.Shards, c.EarlierShards)
	}
	for what, of := range map[string]Campaign{
		"after the end":          {State: EndedState, Shards: 2},
		"beyond the stock":       {State: Published, Shards: 2, Stock: Stock{Total: 2}},
		"beside a product limit": {State: Published, Shards: 2, ProductID: "mug", LimitPerProduct: 1},
	} {
		if c = of; !patch(3) {
			t.Errorf("they rise %s", what)
		}
	}
	if c = (Campaign{State: Draft, Shards: 2, ProductID: "mug", LimitPerProduct: 1}); patch(3) {
		t.Error("those of a draft do not rise beside a product limit")
	}
}
