package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// operation is a call, and the keys of the shard that its script uses.
type operation struct {
	name string
	uses string
	call func(e *redisengine.Engine, shard dibs.ShardID) error
}

const allKeys = "meta holdings places journal free issued refs settler state end"

// textKeys are those that hold a text.
const textKeys = "settler state end"

var operations = []operation{
	{"claim", "meta holdings places journal free issued state", func(e *redisengine.Engine, s dibs.ShardID) error {
		_, err := e.Claim(context.Background(), dibs.EngineClaim{Shard: s, UserID: "new", Key: 9, Quantity: 1})
		return err
	}},
	{"release", "meta holdings places journal free issued state", func(e *redisengine.Engine, s dibs.ShardID) error {
		return e.Release(context.Background(), dibs.Release{Claim: dibs.Position{ShardID: s, Cursor: dibs.Cursor{Epoch: 1, Seq: 2}}, Epoch: 1})
	}},
	{"restock", "meta refs journal free state", func(e *redisengine.Engine, s dibs.ShardID) error {
		return e.Adjust(context.Background(), dibs.Adjustment{Shard: s, Epoch: 1, Ref: "up", Delta: 1, FirstItem: 5, Items: []string{"more"}})
	}},
	{"withdraw", "meta refs journal free state", func(e *redisengine.Engine, s dibs.ShardID) error {
		return e.Adjust(context.Background(), dibs.Adjustment{Shard: s, Ref: "down", Delta: -1})
	}},
	{"configure", "meta state", func(e *redisengine.Engine, s dibs.ShardID) error {
		c := bigSale(s.Campaign, 5)
		c.Version, c.State = 2, dibs.PausedState
		return e.Configure(context.Background(), c)
	}},
	{"stats", "meta", func(e *redisengine.Engine, s dibs.ShardID) error {
		_, err := e.Stats(context.Background(), s)
		return err
	}},
	{"find", "meta holdings places issued", func(e *redisengine.Engine, s dibs.ShardID) error {
		_, _, err := e.Find(context.Background(), dibs.Position{ShardID: s, Cursor: dibs.Cursor{Epoch: 1, Seq: 2}})
		return err
	}},
	{"holdings", "meta holdings places issued", func(e *redisengine.Engine, s dibs.ShardID) error {
		_, err := e.HoldingsOf(context.Background(), "ann")
		return err
	}},
	{"trim", "journal", func(e *redisengine.Engine, s dibs.ShardID) error {
		return e.TrimJournal(context.Background(), s, dibs.Cursor{Epoch: 1, Seq: 9}, time.Now().Add(time.Hour))
	}},
	{"lease", "settler meta", func(e *redisengine.Engine, s dibs.ShardID) error {
		_, err := e.Lease(context.Background(), s, dibs.Cursor{Epoch: 1, Seq: 2})
		return err
	}},
	{"open", "meta holdings places journal free issued refs state", func(e *redisengine.Engine, s dibs.ShardID) error {
		return e.Open(context.Background(), bigSale(s.Campaign, 5), s, &dibs.ShardLoad{Epoch: 2, StockLeft: 5})
	}},
	{"retire", "meta holdings places journal free issued refs settler state end", func(e *redisengine.Engine, s dibs.ShardID) error { return e.Retire(context.Background(), s) }},
}

// keyNamed names a key of a campaign's first shard as an operator sees it.
func keyNamed(campaign uint32, name string) string {
	if name == "state" {
		return fmt.Sprintf("dibs:state:{%d:0}", campaign)
	}
	return fmt.Sprintf("dibs:{%d:0}:%s", campaign, name)
}

// shardKeys names a shard's keys as an operator sees them.
func shardKeys(shard dibs.ShardID) []string {
	names := strings.Fields(allKeys)
	for i, n := range names {
		names[i] = keyNamed(shard.Campaign, n)
	}
	return names
}

// digest is Redis' own sum of all that the keys hold.
func digest(t *testing.T, c rueidis.Client, keys []string) string {
	t.Helper()
	sums, err := c.Do(t.Context(), c.B().Arbitrary("DEBUG", "DIGEST-VALUE").Args(keys...).Build()).AsStrSlice()
	must(t, err)
	return strings.Join(sums, " ")
}

// filled opens a shard of items where every key holds something.
func filled(t *testing.T, e *redisengine.Engine, number uint32) dibs.ShardID {
	t.Helper()
	c := bigSale(number, 5)
	c.Stock.Kind = dibs.Items
	shard := dibs.ShardID{Campaign: number}
	must(t, e.Open(t.Context(), c, shard, &dibs.ShardLoad{
		Epoch: 1, StockLeft: 5, Items: []string{"a", "b", "c", "d", "e"}, FreeItems: []uint32{0, 1, 2, 3, 4},
	}))
	for _, user := range []string{"ann", "bob"} {
		_, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1})
		must(t, err)
	}
	must(t, e.Adjust(t.Context(), dibs.Adjustment{Shard: shard, Ref: "first", Delta: -1}))
	return shard
}

// TestWrongTypesAreRefused plants values of the wrong type, one key at a time:
// whoever uses the key refuses before anything is written.
func TestWrongTypesAreRefused(t *testing.T) {
	r := startRedis(t, "--enable-debug-command", "yes")
	c := connect(t, r)
	e := openEngine(t, redisengine.Config{URL: r.URL()})
	number := uint32(0)
	for _, name := range strings.Fields(allKeys) {
		for _, op := range operations {
			t.Run(name+"/"+op.name, func(t *testing.T) {
				number++
				shard := filled(t, e, number)
				key := keyNamed(number, name)
				plants := []rueidis.Completed{c.B().Zadd().Key(key).ScoreMember().ScoreMember(1, "wrong").Build()}
				if !slices.Contains(strings.Fields(textKeys), name) {
					plants = append(plants, c.B().Set().Key(key).Value("wrong").Build())
				}
				for _, plant := range plants {
					must(t, c.Do(t.Context(), c.B().Del().Key(key).Build()).Error())
					must(t, c.Do(t.Context(), plant).Error())
					before := digest(t, c, shardKeys(shard))
					err := op.call(e, shard)
					uses := slices.Contains(strings.Fields(op.uses), name)
					if uses && !errors.Is(err, dibs.ErrCorrupt) {
						t.Errorf("the answer is %v, want a refusal", err)
					}
					if after := digest(t, c, shardKeys(shard)); uses && after != before {
						t.Errorf("something was written beside a wrong type:\n%s\n%s", before, after)
					}
				}
				must(t, c.Do(t.Context(), c.B().Flushall().Build()).Error())
			})
		}
	}
}

// TestDamagedNumbersAreRefused plants fields that are no whole numbers.
func TestDamagedNumbersAreRefused(t *testing.T) {
	r := startRedis(t, "--enable-debug-command", "yes")
	c := connect(t, r)
	e := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := filled(t, e, 1)
	fields, err := c.Do(t.Context(), c.B().Hgetall().Key("dibs:{1:0}:meta").Build()).AsStrMap()
	must(t, err)
	for field, value := range fields {
		if field == "state" || field == "token" || field == "server" {
			continue
		}
		for _, bad := range []string{"", "x", "1.5", "nan", "inf", "9007199254740992", "1e300"} {
			must(t, c.Do(t.Context(), c.B().Hset().Key("dibs:{1:0}:meta").FieldValue().FieldValue(field, bad).Build()).Error())
			before := digest(t, c, shardKeys(shard))
			for _, op := range operations[:6] {
				if err := op.call(e, shard); !errors.Is(err, dibs.ErrCorrupt) {
					t.Errorf("%s with %s=%q is %v", op.name, field, bad, err)
				}
			}
			if after := digest(t, c, shardKeys(shard)); after != before {
				t.Errorf("something was written with %s=%q", field, bad)
			}
		}
		must(t, c.Do(t.Context(), c.B().Hset().Key("dibs:{1:0}:meta").FieldValue().FieldValue(field, value).Build()).Error())
	}
	if _, err := e.Stats(t.Context(), shard); err != nil {
		t.Errorf("repaired, the shard is not counted: %v", err)
	}
}
