package redisengine_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// damage writes a stream anew with one of its elements, counted from 0, damaged.
func damage(t *testing.T, c rueidis.Client, key string, nth int, how func(fields []string) []string) {
	t.Helper()
	stream, err := c.Do(t.Context(), c.B().Xrange().Key(key).Start("-").End("+").Build()).AsXRangeSlices()
	must(t, err)
	must(t, c.Do(t.Context(), c.B().Del().Key(key).Build()).Error())
	for i, element := range stream {
		var fields []string
		for _, f := range element.FieldValues {
			fields = append(fields, f.Field, f.Value)
		}
		if i == nth {
			fields = how(fields)
		}
		must(t, c.Do(t.Context(), c.B().Arbitrary("XADD").Keys(key).Args(element.ID).Args(fields...).Build()).Error())
	}
}

// damages are ways in which an element of the journal cannot be read.
var damages = map[string]func(fields []string) []string{
	"cut payload": func(f []string) []string { f[1] = f[1][:5]; return f },
	"no payload":  func([]string) []string { return []string{"p", ""} },
	"later kind":  func(f []string) []string { f[1] = f[1][:1] + "\x63" + f[1][2:]; return f },
	"no claims":   func(f []string) []string { return f[:2] },
	"cut claims":  func(f []string) []string { f[3] = f[3][:len(f[3])-1]; return f },
	"other shape": func([]string) []string { return []string{"a", "b", "c", "d", "e", "f"} },
}

// The grants of an unreadable part of the journal are known from what users hold.
func TestUnreadableGrantsAreKnownFromTheHoldings(t *testing.T) {
	r := startRedis(t)
	c := connect(t, r)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Durability: dibs.LevelNone})
	shard := openSale(t, e, 10, func(c *dibs.Campaign) {
		withItems(c)
		c.LimitPerUser, c.PayWithin = 9, time.Minute
	})
	for i, quantity := range []int64{1, 3, 6} {
		_, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint("user-", i), Key: uint64(i), Quantity: quantity})
		must(t, err)
	}
	whole, err := e.ReadJournal(t.Context(), shard, dibs.Cursor{}, 100)
	must(t, err)
	if len(whole) != 4 {
		t.Fatalf("the journal has %d entries", len(whole))
	}
	for name, how := range damages {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprint(name, nth), func(t *testing.T) {
				undamaged, err := c.Do(t.Context(), c.B().Dump().Key("dibs:{1:0}:journal").Build()).ToString()
				must(t, err)
				damage(t, c, "dibs:{1:0}:journal", nth, how)
				for from := range 3 {
					got, err := e.ReadJournal(t.Context(), shard, dibs.Cursor{Epoch: 1, Seq: uint32(from + 1)}, 100)
					if err != nil || !reflect.DeepEqual(got, whole[from+1:]) {
						t.Errorf("after %d the journal has %+v, %v, want %+v", from+1, got, err, whole[from+1:])
					}
				}
				must(t, c.Do(t.Context(), c.B().Restore().Key("dibs:{1:0}:journal").Ttl(0).SerializedValue(undamaged).Replace().Build()).Error())
			})
		}
	}
	// An element that cannot be read has no time, or one that will never come, and
	// keeps nothing from being trimmed.
	damage(t, c, "dibs:{1:0}:journal", 1, damages["no payload"])
	damage(t, c, "dibs:{1:0}:journal", 2, func(f []string) []string {
		f[1] = f[1][:1] + "\x63\xff\xff\xff\xff\xff\xff" + f[1][8:]
		return f
	})
	must(t, e.TrimJournal(t.Context(), shard, whole[2].Cursor, time.Now().Add(time.Hour)))
	if got, err := e.ReadJournal(t.Context(), shard, dibs.Cursor{}, 100); err != nil || !reflect.DeepEqual(got, whole[3:]) {
		t.Errorf("trimmed, the journal has %+v, %v", got, err)
	}
	// While the shard is not open, what users hold is not known.
	damage(t, c, "dibs:{1:0}:journal", 0, damages["no payload"])
	must(t, c.Do(t.Context(), c.B().Hset().Key("dibs:{1:0}:meta").FieldValue().FieldValue("state", "loading").Build()).Error())
	if got, err := e.ReadJournal(t.Context(), shard, whole[2].Cursor, 100); !errors.Is(err, dibs.ErrCorrupt) {
		t.Errorf("of a shard that is not open the journal has %+v, %v", got, err)
	}
}

// An unreadable element that somebody wrote into the stream is set aside: the
// campaign goes on, every node says what is wrong, and the journal is trimmed.
func TestUnreadableEntriesAreSetAside(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 10)
	last := f.wants(f.nodes[0], dibs.Granted, "phone", "before", "k").Claim.Position.Cursor
	f.verify()
	redisDo(t, f, "XADD", "dibs:{1:0}:journal", fmt.Sprintf("%d-%d", last.Epoch, last.Seq+1), "p", "nonsense")
	redisDo(t, f, "HINCRBY", "dibs:{1:0}:meta", "seq", "1")
	for i := range 4 {
		f.wants(f.nodes[i%2], dibs.Granted, "phone", fmt.Sprint("after-", i), "k")
	}
	for i, n := range f.nodes {
		list := f.broken(n)
		if len(list) != 1 || !strings.Contains(list[0], "in quarantine: 1") || !strings.Contains(list[0], "cannot be read") {
			t.Errorf("node %d says %q", i, list)
		}
	}
	flush(t, f.redis.Addr())
	f.until("a rebuild", func() bool {
		res, err := f.nodes[1].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "after-0", Key: "k"})
		return err == nil && res.Replayed
	})
	for i := range 5 {
		f.wants(f.nodes[i%2], dibs.Granted, "phone", fmt.Sprint("late-", i), "k")
	}
	f.wants(f.nodes[0], dibs.SoldOut, "phone", "too-late", "k")
}
